package sandbox_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// call runs a line of plain words without a shell, and returns its standard output, its standard error
// and its code.
func call(t *testing.T, s *sandbox.System, line string) (out, problems string, code int) {
	t.Helper()
	return callWith(t, s, line, "")
}

func callWith(t *testing.T, s *sandbox.System, line, stdin string) (out, problems string, code int) {
	t.Helper()
	var b, e strings.Builder
	code, err := s.Exec(t.Context(), sandbox.Command{Args: strings.Fields(line), Stdin: strings.NewReader(stdin), Stdout: &b, Stderr: &e})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), e.String(), code
}

// answer is the expected answer of a program: parts of its output, and its code.
type answer struct {
	line, out, problems string
	code                int
}

func checkAnswers(t *testing.T, s *sandbox.System, all []answer) {
	t.Helper()
	for _, a := range all {
		out, problems, code := call(t, s, a.line)
		if code != a.code || !strings.Contains(out, a.out) || a.out == "" && out != "" || !strings.Contains(problems, a.problems) || a.problems == "" && problems != "" {
			t.Errorf("%s = code %d, %q, %q; want code %d, %q, %q", a.line, code, out, problems, a.code, a.out, a.problems)
		}
	}
}

// Modules are loaded until the boot ends, by their names and aliases, without a process.
func TestModulesOfTheKernel(t *testing.T) {
	s, m := booted(t)
	put(t, s, sandbox.Tree{
		"etc/modules-load.d/a.conf":           sandbox.File(0o644, "# what is needed\nbr_netfilter\n; no\nip-vs\n"),
		"usr/local/lib/modules-load.d/a.conf": sandbox.File(0o644, "covered\n"),
		"usr/local/lib/modules-load.d/0.conf": sandbox.File(0o644, "dummy\n"),
		"etc/modprobe.d/a.conf":               sandbox.File(0o644, "alias netdev-* tun\ninstall cramfs /bin/false\ninstall udf /bin/true\ninstall sctp /sbin/x y\nblacklist pcspkr\noptions tun a=b\n"),
		"lib/modules/1.2/modules.dep":         sandbox.File(0o644, strings.ReplaceAll("br_netfilter ip_vs tun cramfs udf sctp pcspkr overlay xfs", " ", ".ko: \nkernel/")+".ko.xz: kernel/x.ko\n"),
	})
	if err := s.Boot(); err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, s, []answer{
		{"lsmod", "ip_vs                  36864  0\nbr_netfilter           32768  0\ndummy                  36864  0\n", "", 0},
		{"modprobe overlay", "", "", 0},
		{"modprobe overlay a=b", "", "", 0},
		{"modprobe --first-time overlay", "", "modprobe: ERROR: could not insert 'overlay': Module already in kernel\n", 1},
		{"modprobe -v xfs", "/kernel/xfs.ko.xz \n", "", 0},
		{"modprobe -v xfs", "", "", 0},
		{"modprobe netdev-x", "", "", 0},
		{"modprobe -R netdev-x", "tun\n", "", 0},
		{"modprobe nothing", "", "modprobe: FATAL: Module nothing not found in directory /lib/modules/", 1},
		{"modprobe -q nothing", "", "", 1},
		{"modprobe -a nothing sctp pcspkr", "", "only /bin/true and /bin/false are done here\n", 1},
		{"modprobe -n -v cramfs", "install /bin/false \n", "", 0},
		{"modprobe cramfs", "", "Error running install command '/bin/false' for module cramfs: retcode 1\n", 1},
		{"modprobe -i cramfs", "", "", 0},
		{"modprobe -nv udf", "install /bin/true \n", "", 0},
		{"modprobe udf", "", "", 0},
		{"modprobe -n sctp", "", "", 0},
		{"modprobe -b --dry-run pcspkr", "", "", 0},
		{"modprobe -r cramfs xfs", "", "", 0},
		{"modprobe -r cramfs", "", "", 0},
		{"modprobe -r --first-time cramfs", "", "modprobe: FATAL: Module cramfs is not in kernel.\n", 1},
		{"modprobe -r nothing", "", "modprobe: FATAL: Module nothing not found.\n", 1},
		{"modprobe -c", "", "not done here", 1},
		{"modprobe --frobnicate x", "", "unrecognized option '--frobnicate'", 1},
		{"modprobe", "", "missing parameters", 1},
		{"rmmod pcspkr", "", "", 0},
		{"rmmod pcspkr", "", "rmmod: ERROR: Module pcspkr is not currently loaded\n", 1},
		{"lsmod", "Used by\ntun                    28672  0\noverlay                45056  0\n", "", 0},
		{"modinfo -F name ip-vs", "ip_vs\n", "", 0},
		{"modinfo -n tun", "/kernel/tun.ko\n", "", 0},
		{"modinfo nothing", "", "modinfo: ERROR: Module nothing not found.\n", 1},
		{"modinfo tun", "license:        GPL\n", "", 0},
		{"insmod /x.ko", "", "not done here", 1},
		{"depmod", "", "", 0},
	})
	next, _ := booted(t, func(c *sandbox.Config) { c.Store = m })
	if out, _, _ := call(t, next, "lsmod"); strings.Count(out, "\n") != 1 {
		t.Errorf("the next boot begins with modules: %s", out)
	}
}

// hardware has a disk with two partitions, and an array.
var hardware = fstest.MapFS{
	"proc/cmdline":         {Data: []byte("BOOT_IMAGE=/vmlinuz root=LABEL=root ro quiet\n")},
	"sys/class/block/sda":  {Mode: fs.ModeSymlink, Data: []byte("../../devices/pci0/block/sda")},
	"sys/class/block/sda1": {Mode: fs.ModeSymlink, Data: []byte("../../devices/pci0/block/sda/sda1")},
	"sys/class/block/sda2": {Mode: fs.ModeSymlink, Data: []byte("../../devices/pci0/block/sda/sda2")},
	"sys/class/block/md0":  {Mode: fs.ModeSymlink, Data: []byte("../../devices/virtual/block/md0")},
}

func withHardware(c *sandbox.Config) {
	c.Hardware = func() fs.FS { return hardware }
}

const grubSettings = "GRUB_DEFAULT=0\nGRUB_TIMEOUT=3\nGRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX='console=ttyS0,115200n8'\n"

// What update-grub writes is what the next boot's kernel is told, and not before.
func TestUpdateGrub(t *testing.T) {
	files := sandbox.Tree{
		"etc/default/grub":               sandbox.File(0o644, grubSettings),
		"etc/default/grub.d/50-a.cfg":    sandbox.File(0o644, "# more\nexport GRUB_CMDLINE_LINUX\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ${NONE:-mitigations=auto} \\\"q\\\"\" ; GRUB_TIMEOUT=9\n"),
		"etc/grub.d/09_own":              sandbox.File(0o755, "#!/bin/sh\n"),
		"etc/fstab":                      sandbox.File(0o644, "LABEL=root / ext4 errors=remount-ro 0 1\n"),
		"etc/machine-id":                 sandbox.File(0o444, "0123456789abcdef0123456789abcdef\n"),
		"etc/os-release":                 sandbox.File(0o644, "NAME=\"Debian GNU/Linux\"\n"),
		"boot/vmlinuz-6.1.0-9-amd64":     sandbox.File(0o644, "none\n"),
		"boot/vmlinuz-6.1.0-18-amd64":    sandbox.File(0o644, "none\n"),
		"boot/initrd.img-6.1.0-18-amd64": sandbox.File(0o644, "none\n"),
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(c *sandbox.Config) {
		withHardware(c)
		c.Now = func() time.Time { return now }
	}
	s, m := booted(t, in)
	put(t, s, files)
	checkAnswers(t, s, []answer{
		{"update-grub", "", "Generating grub configuration file ...\nSourcing file `/etc/default/grub.d/50-a.cfg'\nWarning: /etc/grub.d/09_own is not run here.\nFound linux image: /boot/vmlinuz-6.1.0-18-amd64\nFound initrd image: /boot/initrd.img-6.1.0-18-amd64\nFound linux image: /boot/vmlinuz-6.1.0-9-amd64\ndone\n", 0},
		{"grub-mkconfig -o /boot/grub/other.cfg", "", "done\n", 0},
		{"grub-mkconfig", "set timeout=9\nmenuentry 'Debian GNU/Linux' {\n\tlinux /boot/vmlinuz-6.1.0-18-amd64 root=LABEL=root ro console=ttyS0,115200n8 mitigations=auto \"q\" quiet\n\tinitrd /boot/initrd.img-6.1.0-18-amd64\n}\n", "done\n", 0},
		{"update-grub x", "", "takes no arguments", 1},
		{"grub-probe --target=device /", "/dev/sda1\n", "", 0},
		{"grub-probe -t fs /boot", "ext2\n", "", 0},
		{"grub-probe -t fs_uuid /", "01234567-89ab-cdef-0123-456789abcdef\n", "", 0},
		{"grub-probe --target fs_label /", "root\n", "", 0},
		{"grub-probe -t drive /", "(hostdisk//dev/sda,gpt1)\n", "", 0},
		{"grub-probe -d /dev/sda1 -t compatibility_hint", "hd0,gpt1\n", "", 0},
		{"grub-probe -d /dev/sdz", "", "cannot find a GRUB drive for /dev/sdz", 1},
		{"grub-probe /none", "", "failed to get canonical path of `/none'", 1},
		{"grub-probe -t other /", "", "not done here", 1},
		{"grub-install /dev/sda", "", "Installation finished. No error reported.\nA server of the lab boots without GRUB: nothing was written to the disk.\n", 0},
		{"grub-install --target=x86_64-efi", "", "Installing for x86_64-efi platform.\n", 0},
		{"grub-install /dev/md0", "", "cannot find a GRUB drive for /dev/md0", 1},
		{"grub-install", "", "install device isn't specified", 1},
		{"update-initramfs -u", "update-initramfs: Generating /boot/initrd.img-6.1.0-18-amd64\n", "", 0},
		{"update-initramfs -c -k all", "update-initramfs: Generating /boot/initrd.img-6.1.0-18-amd64\nupdate-initramfs: Generating /boot/initrd.img-6.1.0-9-amd64\n", "", 0},
		{"update-initramfs -u -k all", "Generating /boot/initrd.img-6.1.0-9-amd64\nupdate-initramfs: Generating /boot/initrd.img-6.1.0-18-amd64\n", "", 0},
		{"update-initramfs -d -k 6.1.0-9-amd64", "update-initramfs: Deleting /boot/initrd.img-6.1.0-9-amd64\n", "", 0},
		{"update-initramfs -u -k 5", "", "/boot/initrd.img-5 does not exist. Cannot update.\n", 1},
		{"update-initramfs -u -k ../x", "", "no version of a kernel", 1},
		{"update-initramfs", "", "Usage: update-initramfs", 1},
	})
	if n, err := s.Stat("boot/initrd.img-6.1.0-18-amd64"); err != nil || !n.Modified.Equal(now) {
		t.Errorf("the initramfs is of %v, %v", n.Modified, err)
	}
	checkNoFile(t, s, "boot/initrd.img-6.1.0-9-amd64")
	next, _ := booted(t, in, func(c *sandbox.Config) { c.Store, c.Boot = m, sys.Boot{ID: "second"} })
	const want = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-18-amd64 root=LABEL=root ro console=ttyS0,115200n8 mitigations=auto \"q\" quiet\n"
	if n, err := next.Stat("boot/grub/grub.cfg"); err != nil || n.Mode.Perm() != 0o600 {
		t.Errorf("grub.cfg has the mode %v, %v", n.Mode, err)
	}
	if out, _, _ := call(t, next, "lsmod"); out == "" {
		t.Error("the next boot runs nothing")
	}
	needNamespaces(t)
	if out, _ := run(t, s, "cat /proc/cmdline"); out != "BOOT_IMAGE=/vmlinuz root=LABEL=root ro quiet\n" {
		t.Errorf("the kernel of the present boot was told %q", out)
	}
	if out, _ := run(t, next, "cat /proc/cmdline"); out != want {
		t.Errorf("the kernel of the next boot was told %q, want %q", out, want)
	}
}

// Settings that only a shell could read are an error, which says where, and nothing is written.
func TestUpdateGrubReadsAssignmentsAlone(t *testing.T) {
	for text, problem := range map[string]string{
		"A=1\nif true; then B=2; fi\n": "/etc/default/grub: line 2: only assignments are read here",
		"A=$(uname -r)\n":              "A: commands are not run here",
		"\nA=\"x\n":                    "a quote has no end",
		"A=${B#x}\n":                   "of ${…} only ${NAME} and ${NAME:-TEXT} are read here",
		"A=a&\n":                       "is not read here",
		"A='":                          "a quote has no end",
		"A=$(":                         "a command has no end",
		"A=`":                          "a command has no end",
	} {
		s, _ := booted(t)
		put(t, s, sandbox.Tree{"etc/default/grub": sandbox.File(0o644, text), "boot/vmlinuz-1": sandbox.File(0o644, "x")})
		if _, got, code := call(t, s, "update-grub"); code != 1 || !strings.Contains(got, problem) {
			t.Errorf("%q: code %d, %q, want %q", text, code, got, problem)
		}
		checkNoFile(t, s, "boot/grub/grub.cfg")
	}
}

// The rules of the audit system are a boot's (auditctl(8), augenrules(8)).
func TestAuditRules(t *testing.T) {
	s, m := booted(t)
	put(t, s, sandbox.Tree{
		"etc/audit/rules.d/audit.rules":  sandbox.File(0o640, "## first\n-D\n-b 8192\n-f 1\n"),
		"etc/audit/rules.d/30-a.rules":   sandbox.File(0o640, "-w /etc/passwd -p wa -k identity\n-a exit,always -S adjtimex,settimeofday -F arch=b64 -k \"time\"\n"),
		"etc/audit/rules.d/99-end.rules": sandbox.File(0o640, "-e 2\n"),
		"tmp/bad.rules":                  sandbox.File(0o640, "-D\n\n-w etc -p wa\n"),
		"tmp/open.rules":                 sandbox.File(0o666, "-D\n"),
	})
	const made = "## This file is automatically generated from /etc/audit/rules.d\n-D\n-b 8192\n-f 1\n-w /etc/passwd -p wa -k identity\n-a exit,always -S adjtimex,settimeofday -F arch=b64 -k \"time\"\n-e 2\n"
	checkAnswers(t, s, []answer{
		{"auditctl -l", "No rules\n", "", 0},
		{"auditctl -s", "enabled 1\nfailure 1\npid 0\nrate_limit 0\nbacklog_limit 64\n", "", 0},
		{"auditctl -w /etc/shadow -p aw", "", "", 0},
		{"auditctl -w /etc/shadow -p wa", "", "Error sending add rule data request (Rule exists)\n", 255},
		{"auditctl -a never,exclude -F msgtype=CWD", "", "", 0},
		{"auditctl -A always,exit -F path=/bin/su -F perm=x", "", "", 0},
		{"auditctl -l", "-a always,exit -S all -F path=/bin/su -F perm=x\n-w /etc/shadow -p wa\n-a never,exclude -F msgtype=CWD\n", "", 0},
		{"auditctl -W /etc/shadow -p wa", "", "", 0},
		{"auditctl -W /etc/shadow -p wa", "", "No such file or directory", 255},
		{"auditctl -w /etc -p x1", "", "Permission x1 isn't supported", 1},
		{"auditctl -a some,exit", "", "bad keyword some,exit", 1},
		{"auditctl --signal x", "", "not done here", 1},
		{"auditctl -R /tmp/bad.rules", "No rules\n", "The path must start with '/'\nThere was an error in line 3 of /tmp/bad.rules\n", 1},
		{"auditctl -R /tmp/open.rules", "", "world writable", 1},
		{"auditctl -R /tmp/none", "", "Error opening rule file /tmp/none", 1},
		{"augenrules --check", "/usr/sbin/augenrules: Rules have changed and should be updated\n", "", 0},
		{"augenrules --load", "No rules\n", "", 0},
		{"augenrules", "/usr/sbin/augenrules: No change\n", "", 0},
		{"auditctl -l", "-w /etc/passwd -p wa -k identity\n-a always,exit -F arch=b64 -S adjtimex,settimeofday -F key=time\n", "", 0},
		{"auditctl -s", "enabled 2\nfailure 1\npid 0\nrate_limit 0\nbacklog_limit 8192\n", "", 0},
		{"auditctl -D", "", "immutable mode", 1},
		{"augenrules x", "", "Usage", 1},
	})
	checkFile(t, s, "etc/audit/audit.rules", made)
	next, _ := booted(t, func(c *sandbox.Config) { c.Store = m })
	if out, _, _ := call(t, next, "auditctl -l"); out != "No rules\n" {
		t.Errorf("the next boot begins with %q", out)
	}
}

// chronyd answers where it runs.
func TestChronyc(t *testing.T) {
	a := newAgents()
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Programs, c.Run, c.Now = []string{"agent"}, a.run, func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	})
	put(t, s, sandbox.Tree{
		"etc/chrony/chrony.conf":            sandbox.File(0o644, "pool 2.pool.ntp.org iburst\n"),
		"etc/chrony/sources.d/x.sources":    sandbox.File(0o644, "server 10.0.0.1\n"),
		"etc/systemd/system/chrony.service": sandbox.File(0o644, "[Service]\nExecStart=/usr/local/bin/agent\n"),
	})
	checkAnswers(t, s, []answer{{"chronyc tracking", "506 Cannot talk to daemon\n", "", 1}, {"timedatectl show -p NTP", "NTP=no\n", "", 0}, {"systemctl start chrony", "", "", 0}})
	checkAnswers(t, s, []answer{
		{"chronyc tracking", "Reference ID    : C6120001 (2.pool.ntp.org)\nStratum         : 3\nRef time (UTC)  : Fri Jan 02 03:04:05 2026\n", "", 0},
		{"chronyc -n sources", "^* 2.pool.ntp.org              2   6   377", "", 0},
		{"chronyc sources", "^+ 10.0.0.1 ", "", 0},
		{"chronyc makestep", "200 OK\n", "", 0},
		{"chronyc waitsync 1", "try: 1, refid: C6120001", "", 0},
		{"chronyc activity", "2 sources online", "", 0},
		{"chronyc shutdown", "Unrecognized command\n", "of its commands are", 1},
		{"chronyc -c tracking", "", "not done here", 1},
		{"chronyc", "", "no prompt here", 1},
		{"timedatectl show -p NTP --value", "yes\n", "", 0},
	})
	call(t, s, "systemctl stop chrony")
}

// What asks systemd's daemons over D-Bus answers without a bus.
func TestClientsOfSystemdsDaemons(t *testing.T) {
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Now = func() time.Time { return time.Date(2026, 7, 2, 3, 4, 5, 0, time.UTC) }
	})
	zone := "TZif2" + strings.Repeat("\x00", 15)
	put(t, s, sandbox.Tree{
		"etc/passwd":                        sandbox.File(0o644, "root:x:0:0:root:/root:/bin/bash\nbob:x:1000:1000::/home/bob:/bin/sh\n"),
		"etc/timezone":                      sandbox.File(0o644, "Etc/UTC\n"),
		"etc/default/locale":                sandbox.File(0o644, "LANG=C.UTF-8\n"),
		"etc/default/keyboard":              sandbox.File(0o644, "XKBLAYOUT=\"us\"\n"),
		"usr/share/zoneinfo/Europe/Nowhere": sandbox.File(0o644, zone),
		"usr/share/zoneinfo/tzdata.zi":      sandbox.File(0o644, "# version\nZ Europe/Nowhere 1 - CET\nL Europe/Nowhere Other/Nowhere\nR x 1 o - 1 1 1 1 -\n"),
	})
	checkAnswers(t, s, []answer{
		{"timedatectl", "                Time zone: Etc/UTC (UTC, +0000)\nSystem clock synchronized: no\n              NTP service: inactive\n          RTC in local TZ: no\n", "", 0},
		{"timedatectl set-timezone Europe/Nowhere", "", "", 0},
		{"timedatectl show --property=Timezone,LocalRTC", "Timezone=Europe/Nowhere\nLocalRTC=no\n", "", 0},
		{"timedatectl status", "Time zone: Europe/Nowhere (", "", 0},
		{"timedatectl set-timezone ../passwd", "", "Failed to set time zone: Invalid or not installed time zone '../passwd'", 1},
		{"timedatectl set-timezone Europe", "", "Invalid or not installed", 1},
		{"timedatectl set-local-rtc 1", "", "", 0},
		{"timedatectl show -P LocalRTC", "yes\n", "", 0},
		{"timedatectl list-timezones", "Europe/Nowhere\nOther/Nowhere\n", "", 0},
		{"timedatectl set-time 10:00", "", "a server's clock is the lab's", 1},
		{"timedatectl set-ntp true", "", "NTP not supported", 1},
		{"timedatectl frobnicate", "", "Unknown command verb frobnicate", 1},
		{"timedatectl -H x", "", "there is no bus", 1},
		{"localectl", "System Locale: LANG=C.UTF-8\n    VC Keymap: n/a\n   X11 Layout: us\n", "", 0},
		{"localectl set-locale LANG=de_DE.UTF-8 LC_TIME=C", "", "", 0},
		{"localectl set-locale X=y", "", "Invalid Locale data", 1},
		{"localectl list-locales", "C.UTF-8\n", "", 0},
		{"localectl set-keymap de", "", "Unknown command verb set-keymap", 1},
		{"loginctl --no-legend", "No sessions.\n", "", 0},
		{"loginctl enable-linger bob", "", "", 0},
		{"loginctl show-user bob -p Linger", "Linger=yes\n", "", 0},
		{"loginctl disable-linger 1000", "", "", 0},
		{"loginctl show-user bob", "", "not logged in or lingering", 1},
		{"loginctl enable-linger none", "", "Failed to look up user none", 1},
		{"loginctl terminate-session 1", "", "No session is open", 1},
	})
	checkFile(t, s, "etc/timezone", "Europe/Nowhere\n")
	checkFile(t, s, "etc/default/locale", "LANG=de_DE.UTF-8\nLC_TIME=C\n")
	checkFile(t, s, "etc/adjtime", "0.0 0 0.0\n0\nLOCAL\n")
}

// Each of the names of a host is set and shown (hostnamectl(1)).
func TestHostnamectl(t *testing.T) {
	s, m := booted(t)
	checkAnswers(t, s, []answer{
		{"hostnamectl", " Static hostname: node\n", "", 0},
		{"hostnamectl --static status", "node\n", "", 0},
		{"hostnamectl --pretty status", "\n", "", 0},
		{"hostnamectl --transient set-hostname web-1", "", "", 0},
		{"hostnamectl --transient status", "web-1\n", "", 0},
		{"hostnamectl --static status", "node\n", "", 0},
		{"hostnamectl", " Static hostname: node\nTransient hostname: web-1\n", "", 0},
		{"hostnamectl --pretty set-hostname Web", "", "", 0},
		{"hostnamectl --pretty status", "Web\n", "", 0},
		{"hostnamectl set-hostname web-2", "", "", 0},
		{"hostnamectl hostname", "web-2\n", "", 0},
		{"hostnamectl --transient", "web-2\n", "", 0},
		{"hostnamectl hostname a/b", "", "Invalid hostname 'a/b'", 1},
		{"hostnamectl --frobnicate", "", "unrecognized option '--frobnicate'", 1},
		{"hostnamectl set-chassis vm", "", "Unknown command verb set-chassis", 1},
	})
	checkFile(t, s, "etc/hostname", "web-2\n")
	call(t, s, "hostnamectl --transient set-hostname web-3")
	next, _ := booted(t, func(c *sandbox.Config) { c.Store = m })
	checkAnswers(t, next, []answer{{"hostnamectl --transient status", "web-2\n", "", 0}})
	needNamespaces(t)
	if out, _ := run(t, s, "hostname; hostnamectl set-hostname web-4; hostname; uname -n"); out != "web-3\nweb-4\nweb-4\n" {
		t.Errorf("a command sees the host names %q", out)
	}
}

// A server has all its devices when it boots: there is nothing to wait for (udevadm(8)).
func TestUdevadm(t *testing.T) {
	s, _ := booted(t)
	checkAnswers(t, s, []answer{
		{"udevadm settle --timeout=30", "", "", 0},
		{"udevadm trigger --subsystem-match=net", "", "", 0},
		{"udevadm control --reload", "", "", 0},
		{"udevadm control", "", "control needs an option", 1},
		{"udevadm -d test-builtin net_setup_link /sys/class/net/eno1", "", "", 0},
		{"udevadm --version", "252\n", "", 0},
		{"udevadm info /dev/sda", "", "info is not done here", 1},
		{"udevadm settel", "", "unknown command 'settel'", 1},
	})
}
