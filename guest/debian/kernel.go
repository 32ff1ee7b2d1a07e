package debian

import "io/fs"

// This file has the settings of the kernel, its modules and device files, and what boots it.

func (b *builder) kernel() {
	b.dirs("etc/sysctl.d", "etc/modules-load.d", "etc/modprobe.d", "etc/udev/rules.d", "etc/udev/hwdb.d")
	b.file("etc/udev/udev.conf", "# See udev.conf(5).\n")
	if b.family != debian || b.version < 13 { // systemd-sysctl of Debian 13 does not read it
		b.file("etc/sysctl.conf", "# NAME = VALUE, see sysctl.conf(5).\n")
		b.link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")
	}
	if b.family == ubuntu {
		for name, text := range map[string]string{
			"10-console-messages": "kernel.printk = 4 4 1 7\n",
			"10-kernel-hardening": "kernel.kptr_restrict = 1\n",
			"10-network-security": "net.ipv4.conf.default.rp_filter = 2\nnet.ipv4.conf.all.rp_filter = 2\n",
			"10-ptrace":           "kernel.yama.ptrace_scope = 1\n",
			"10-zeropage":         "vm.mmap_min_addr = 65536\n",
		} {
			b.file("etc/sysctl.d/"+name+".conf", text)
		}
		b.file("etc/modprobe.d/blacklist.conf", "# Modules that are not loaded for a device, see modprobe.d(5).\nblacklist pcspkr\n")
	}
	if b.isDebian() {
		b.file("etc/modules", "# Modules that are loaded at each boot, one a line, see modules-load.d(5).\n")
		b.link("etc/modules-load.d/modules.conf", "../modules")
		b.dirs("etc/kernel/postinst.d", "etc/kernel/postrm.d", "etc/kernel/preinst.d", "etc/kernel/install.d")
		b.dirs("etc/initramfs-tools/conf.d", "etc/initramfs-tools/hooks", "etc/initramfs-tools/scripts")
		b.file("etc/initramfs-tools/initramfs.conf", "# See initramfs.conf(5).\nMODULES=most\nBUSYBOX=auto\nCOMPRESS=zstd\n")
		b.file("etc/initramfs-tools/modules", "# Modules of the initramfs, one a line, see initramfs-tools(7).\n")
		b.file("etc/initramfs-tools/update-initramfs.conf", "update_initramfs=yes\nbackup_initramfs=no\n")
	}
}

// boot adds a kernel, what it boots with, and the settings of GRUB. The files of /boot say what
// they stand for: a server of a lab loads none of them.
func (b *builder) boot() {
	b.file("etc/default/grub", b.grub())
	b.dirs("boot/grub", "etc/grub.d")
	b.script("etc/grub.d/40_custom", "#!/bin/sh\nexec tail -n +3 \"$0\"\n# Entries of the menu that follow are copied as they are.\n")
	if !b.isDebian() {
		return
	}
	b.dirs("etc/default/grub.d", "boot/efi")
	v := b.kernelVersion()
	mode := map[family]fs.FileMode{debian: 0o644, ubuntu: 0o600}[b.family]
	const none = "A server of a lab does not load this file.\n"
	b.fileAs(mode, "root:root", "boot/vmlinuz-"+v, none)
	b.file("boot/initrd.img-"+v, none)
	b.fileAs(0o600, "root:root", "boot/System.map-"+v, none)
	b.file("boot/config-"+v, "# Linux "+v+"\nCONFIG_64BIT=y\nCONFIG_MODULES=y\nCONFIG_CGROUPS=y\nCONFIG_NAMESPACES=y\nCONFIG_OVERLAY_FS=m\nCONFIG_BRIDGE_NETFILTER=m\nCONFIG_IP_VS=m\n")
	links, to := "", "boot/"
	if b.family == ubuntu {
		links, to = "boot/", ""
	}
	b.link(links+"vmlinuz", to+"vmlinuz-"+v)
	b.link(links+"initrd.img", to+"initrd.img-"+v)
	b.fileAs(0o600, "root:root", "boot/grub/grub.cfg", "set default=0\nset timeout=5\nmenuentry 'Linux "+v+"' {\n\tlinux /boot/vmlinuz-"+v+" root=LABEL=root ro\n\tinitrd /boot/initrd.img-"+v+"\n}\n")
	b.fileAs(0o600, "root:root", "boot/grub/grubenv", grubenv)
}

// grubenv is an environment block without variables: GRUB wants 1,024 bytes.
var grubenv = pad("# GRUB Environment Block\n", 1024, '#')

func pad(s string, size int, with byte) string {
	out := []byte(s)
	for len(out) < size {
		out = append(out, with)
	}
	return string(out)
}

func (b *builder) grub() string {
	text := "# After a change run update-grub.\nGRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=\"$(sed 's, release .*$,,g' /etc/system-release)\"\nGRUB_CMDLINE_LINUX=\"\"\n"
	switch b.family {
	case debian:
		text = "# After a change run update-grub.\nGRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=\"$(. /etc/os-release; echo \"$NAME\")\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n"
	case ubuntu:
		text = "# After a change run update-grub.\nGRUB_DEFAULT=0\nGRUB_TIMEOUT_STYLE=hidden\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=\"$(. /etc/os-release; echo \"$NAME\")\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\nGRUB_CMDLINE_LINUX=\"\"\n"
	}
	return text
}
