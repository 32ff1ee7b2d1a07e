package debian

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// debian adds what Debian and Ubuntu have, and other distributions have not.
func (b *builder) debian() {
	b.file("etc/debian_version", b.debianVersion+"\n")
	b.file("etc/timezone", "Etc/UTC\n")
	b.file("etc/locale.gen", "# Locales that locale-gen(8) makes, one a line.\n# en_US.UTF-8 UTF-8\n")
	if b.family == debian && b.version >= 13 {
		b.file("etc/locale.conf", "LANG=C.UTF-8\n")
		b.link("etc/default/locale", "../locale.conf")
	} else {
		b.file("etc/default/locale", "LANG=C.UTF-8\n")
	}
	b.file("etc/default/keyboard", "XKBMODEL=pc105\nXKBLAYOUT=us\nXKBVARIANT=\"\"\nXKBOPTIONS=\"\"\nBACKSPACE=guess\n")
	b.file("etc/default/console-setup", "ACTIVE_CONSOLES=\"/dev/tty[1-6]\"\nCHARMAP=\"UTF-8\"\nCODESET=guess\nFONTFACE=Fixed\nFONTSIZE=8x16\n")
	b.file("etc/default/cron", "# Options of cron(8).\nEXTRA_OPTS=\"\"\n")
	b.file("etc/default/ssh", "# Options of sshd(8).\nSSHD_OPTS=\n")
	b.file("etc/default/chrony", "# Options of chronyd(8).\nDAEMON_OPTS=\"-F 1\"\n")
	b.file("etc/adduser.conf", "# See adduser.conf(5).\n")
	b.file("etc/deluser.conf", "# See deluser.conf(5).\n")
	b.file("etc/ca-certificates.conf", "# Certificates below /usr/share/ca-certificates, one a line; one that is not trusted begins with !.\n")
	b.dirs("etc/ca-certificates/update.d", "usr/local/share/ca-certificates", "etc/apparmor.d/local", "etc/update-motd.d")
	if b.family == ubuntu {
		b.file("etc/lsb-release", "DISTRIB_ID="+cmp.Or(b.fields["NAME"], "Ubuntu")+"\nDISTRIB_RELEASE="+b.fields["VERSION_ID"]+"\nDISTRIB_CODENAME="+b.codename+"\nDISTRIB_DESCRIPTION=\""+b.prettyName()+"\"\n")
		b.script("etc/update-motd.d/00-header", "#!/bin/sh\n. /etc/lsb-release\nprintf 'Welcome to %s (%s)\\n' \"$DISTRIB_DESCRIPTION\" \"$(uname -srm)\"\n")
		b.file("etc/default/motd-news", "ENABLED=0\n")
		return
	}
	b.file("etc/motd", "\nThe programs of this server are free software; /usr/share/doc/*/copyright has their licences.\n")
	b.script("etc/update-motd.d/10-uname", "#!/bin/sh\nuname -snrvm\n")
}

// cloudUser is the account that cloud-init creates if the user data name no other.
type cloudUser struct {
	name, gecos string
	groups      []string
}

// cloudUser returns the account as cloud-init's package of the distribution has it.
func (b *builder) cloudUser() cloudUser {
	all := []string{"adm", "audio", "cdrom", "dialout", "dip", "floppy", "netdev", "plugdev", "sudo", "video"}
	switch {
	case b.family == debian:
		return cloudUser{"debian", "Debian", all}
	case b.family == ubuntu && b.version >= 24:
		return cloudUser{"ubuntu", "Ubuntu", []string{"adm", "cdrom", "dip", "lxd", "sudo"}}
	case b.family == ubuntu:
		return cloudUser{"ubuntu", "Ubuntu", append(slices.Clone(all[:6]), append([]string{"lxd"}, all[6:]...)...)}
	}
	switch id := b.id(); id {
	case "centos", "rhel":
		return cloudUser{"cloud-user", "Cloud User", []string{"adm", "systemd-journal"}}
	case "almalinux", "rocky":
		return cloudUser{id, id + " Cloud User", []string{"adm", "systemd-journal"}}
	default:
		return cloudUser{id, id + " Cloud User", []string{"wheel", "adm", "systemd-journal"}}
	}
}

// cloud adds the settings of cloud-init.
func (b *builder) cloud() {
	u := b.cloudUser()
	b.file("etc/cloud/cloud.cfg", `# See https://cloudinit.readthedocs.io/, and add files to cloud.cfg.d.
users: [default]
disable_root: true
preserve_hostname: false
system_info:
  default_user:
    name: `+strconv.Quote(u.name)+`
    lock_passwd: true
    gecos: `+strconv.Quote(u.gecos)+`
    groups: [`+strings.Join(u.groups, ", ")+`]
    sudo: ["ALL=(ALL) NOPASSWD:ALL"]
    shell: /bin/bash
`)
	b.dirs("etc/cloud/cloud.cfg.d", "etc/cloud/templates", "etc/cloud/clean.d")
}
