package sandbox_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
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
