package sandbox_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// Processes see the modules that are loaded, and the values that they bring.
func TestCommandsSeeModules(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	out, code := run(t, s, `sleep 60 &
f=/proc/sys/net/bridge/bridge-nf-call-iptables
modprobe -a tun br_netfilter || exit
[ ! -e /proc/modules ] || cut -d' ' -f1 /proc/modules | tr '\n' ' ' | grep -qx 'br_netfilter tun ' || cat /proc/modules
cat $f
echo 0 > $f
/sbin/modprobe br_netfilter
cat $f /lib/modules/*/modules.builtin
kill $!`)
	if code != 0 || out != "1\n0\n" {
		t.Errorf("code %d, %q", code, out)
	}
	if out, _ := run(t, s, "cat /proc/sys/net/bridge/bridge-nf-call-iptables; lsmod | wc -l"); out != "0\n3\n" {
		t.Errorf("the next command sees %q", out)
	}
}

// Only the superuser changes the server.
func TestProgramsKnowWhoCallsThem(t *testing.T) {
	needNamespaces(t)
	if os.Getuid() != 0 { // there is the superuser alone
		return
	}
	s, _ := booted(t)
	put(t, s, sandbox.Tree{"etc/passwd": sandbox.File(0o644, "root:x:0:0:root:/root:/bin/bash\nbob:x:1000:1000::/home/bob:/bin/sh\n"), "home/bob": {Mode: fs.ModeDir | 0o755, UID: 1000, GID: 1000}})
	out, _ := run(t, s, "setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'modprobe tun; rmmod tun; lsmod' 2>&1; modprobe tun; setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'rmmod tun; systemctl stop x; systemctl is-system-running; hostnamectl hostname y; hostnamectl hostname; poweroff' 2>&1")
	want := "modprobe: ERROR: could not insert 'tun': Operation not permitted\nrmmod: ERROR: Module tun is not currently loaded\nModule                  Size  Used by\nrmmod: ERROR: could not remove 'tun': Operation not permitted\n" +
		"systemctl: Access denied: only the superuser may do this\nrunning\nhostnamectl: Access denied: only the superuser may do this\nnode\npoweroff: Access denied: only the superuser may do this\n"
	if out != want {
		t.Errorf("a user gets %q, want %q", out, want)
	}
}

// Crontabs are installed, and their jobs run as their users (crontab(1), cron(8)).
func TestCrontabs(t *testing.T) {
	c := &console{}
	s, _ := booted(t, func(conf *sandbox.Config) { conf.Report = c.write })
	put(t, s, sandbox.Tree{
		"etc/passwd":                      sandbox.File(0o644, "root:x:0:0:root:/root:/bin/bash\nbob:x:1000:1000::/home/bob:/bin/sh\n"),
		"etc/group":                       sandbox.File(0o644, "root:x:0:\nbob:x:1000:\ncrontab:x:101:\n"),
		"home/bob":                        {Mode: fs.ModeDir | 0o755, UID: 1000, GID: 1000},
		"root/good":                       sandbox.File(0o644, "# my jobs\n@reboot id -u >/tmp/of-root; pwd >>/tmp/of-root\n"),
		"root/bad":                        sandbox.File(0o644, "\n* * x * * y\n"),
		"root/cut":                        sandbox.File(0o644, "* * * * * y"),
		"etc/cron.d/two":                  sandbox.File(0o644, "A=b\n@reboot root echo $A $LOGNAME $HOME >/tmp/of-system\n@reboot root cat >/tmp/of-input%x%y\n@reboot root echo said\n@reboot root none-such\n"),
		"etc/systemd/system/cron.service": sandbox.File(0o644, "[Service]\nExecStart=/usr/sbin/cron -f\n"),
	})
	checkAnswers(t, s, []answer{
		{"crontab -l", "", "no crontab for root\n", 1},
		{"crontab bad", "", "\"bad\":2: bad day-of-month\nerrors in crontab file, can't install.\n", 1},
		{"crontab cut", "", "new crontab file is missing newline before EOF, can't install.\n", 1},
		{"crontab none", "", "file does not exist", 1},
		{"crontab -T bad", "", "Invalid crontab file", 1},
		{"crontab -T good", "", "successfully checked", 0},
		{"crontab -u none -l", "", "user `none' unknown", 1},
		{"crontab -e", "", "set VISUAL or EDITOR", 1},
		{"crontab -x", "", "usage error", 1},
		{"crontab /root/good", "", "", 0},
		{"crontab -l", "# my jobs\n@reboot id -u ", "", 0},
	})
	if _, problems, code := callWith(t, s, "crontab -u bob -", "@reboot id -u >/tmp/of-bob; pwd >>/tmp/of-bob\n"); code != 0 {
		t.Errorf("crontab -u bob - = code %d, %s", code, problems)
	}
	if n, err := s.Stat("var/spool/cron/crontabs/bob"); err != nil || n.Mode.Perm() != 0o600 || n.UID != 1000 || n.GID != 101 {
		t.Errorf("bob's crontab is %v of %d:%d, %v", n.Mode, n.UID, n.GID, err)
	}
	needNamespaces(t)
	if os.Getuid() != 0 { // there is the superuser alone
		checkAnswers(t, s, []answer{{"crontab -u bob -r", "", "", 0}})
	}
	checkAnswers(t, s, []answer{{"systemctl start cron", "", "", 0}, {"systemctl is-active cron", "active\n", "", 0}})
	want := map[string]string{"tmp/of-root": "0\n/root\n", "tmp/of-system": "b root /root\n", "tmp/of-input": "x\ny\n"}
	if os.Getuid() == 0 {
		want["tmp/of-bob"] = "1000\n/home/bob\n"
	}
	for name, text := range want {
		patience.Await(t, name+" is written by its job", func() bool {
			b, _ := s.ReadFile(name)
			return string(b) == text
		})
	}
	patience.Await(t, "what jobs print is named and discarded", func() bool {
		return c.has("cron: (root) info (No MTA installed, discarding output): echo said") && c.has("cron: (root) not run: ")
	})
	out, _ := run(t, s, `EDITOR='sh -c "echo A=more >>\$0"' crontab -e && crontab -l | tail -1; crontab -r; crontab -l 2>&1; /usr/sbin/cron 2>&1`)
	if out != "A=more\nno crontab for root\ncron: it runs as a service here: start its unit with systemctl\n" {
		t.Errorf("got %q", out)
	}
	checkAnswers(t, s, []answer{{"systemctl stop cron", "", "", 0}})
}

// What is mounted is listed, what is not is said as on a host, and nothing else is mounted (mount(8),
// swapon(8)).
func TestMountsAreThoseOfTheBoot(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t, withHardware)
	put(t, s, sandbox.Tree{
		"etc/fstab":             sandbox.File(0o644, "LABEL=root / ext4 defaults 0 1\nLABEL=EFI /boot/efi vfat umask=0077 0 1\n/dev/sda2 /srv/data xfs defaults,nofail 0 2\nproc /proc proc defaults\ntmpfs /srv/t\\040x tmpfs size=1m,noauto 0 0\n/swapfile none swap sw,nofail 0 0\n"),
		"srv/data":              {Mode: fs.ModeDir | 0o755},
		"srv/t x":               {Mode: fs.ModeDir | 0o755},
		"etc/swaps":             sandbox.File(0o644, "x"),
		"tmp/fstab":             sandbox.File(0o644, "/dev/sda2 /srv/data xfs defaults 0 2\n"),
		"usr/local/bin/answers": sandbox.File(0o755, "#!/bin/sh\nwhile read -r line; do echo \"$ $line\"; eval \"$line\" 2>&1 || echo \"code $?\"; done\n"),
	})
	lines := []struct{ line, want string }{
		{"mount | grep -c 'proc on /proc type proc (.*nosuid'", "1"},
		{"mount -t devpts | cut -d' ' -f1-5", "devpts on /dev/pts type devpts"},
		{"mount -a", "mount: /srv/data: not done here: a server of the lab mounts no file systems. An entry of /etc/fstab stays."},
		{"mount -a -T /tmp/fstab", "mount: /srv/data: not done here: a server of the lab mounts no file systems. An entry of /etc/fstab stays.\ncode 32"},
		{"mount /srv/data", "mount: /srv/data: not done here: a server of the lab mounts no file systems. An entry of /etc/fstab stays.\ncode 32"},
		{"mount '/srv/t x'", "mount: /srv/t x: not done here: a server of the lab mounts no file systems. An entry of /etc/fstab stays.\ncode 32"},
		{"mount /none", "mount: /none: can't find in /etc/fstab.\ncode 1"},
		{"mount /proc", "mount: /proc: proc already mounted on /proc.\ncode 32"},
		{"mount /dev/sdz /srv/data", "mount: /srv/data: special device /dev/sdz does not exist.\ncode 32"},
		{"cd /srv; mount -t tmpfs t none", "mount: /srv/none: mount point does not exist.\ncode 32"},
		{"mount -o remount,rw /", ""},
		{"mount -o remount,nodev,usrquota /", "mount: /: remount with usrquota is not done here: a server of the lab mounts no file systems. An entry of /etc/fstab stays.\ncode 32"},
		{"mount -o remount /srv/data", "mount: /srv/data: mount point not mounted or bad option.\ncode 32"},
		{"mount --frobnicate", "mount: unrecognized option '--frobnicate'\ncode 1"},
		{"umount /srv/data", "umount: /srv/data: not mounted.\ncode 32"},
		{"umount /none", "umount: /none: no mount point specified.\ncode 32"},
		{"umount /proc", "umount: /proc: not done here: a server of the lab keeps the mounts that it has when it has booted.\ncode 32"},
		{"swapoff -a", ""},
		{"swapoff /swapfile", "swapoff: /swapfile: swapoff failed: Invalid argument\ncode 255"},
		{"swapon --show", ""},
		{"swapon -a", ""},
		{"swapon /swapfile", "swapon: cannot open /swapfile: No such file or directory\ncode 255"},
		{"swapon /dev/sda2", "swapon: /dev/sda2: not done here: a server of the lab has no swap. An entry of /etc/fstab stays.\ncode 255"},
		{"cat /proc/swaps", ""},
	}
	var in, want strings.Builder
	for _, l := range lines {
		in.WriteString(l.line + "\n")
		want.WriteString("$ " + l.line + "\n")
		if l.want != "" {
			want.WriteString(l.want + "\n")
		}
	}
	out, problems, _ := callWith(t, s, "/usr/local/bin/answers", in.String())
	if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(out, "\n")); diff != "" || problems != "" {
		t.Error(diff, problems)
	}
}
