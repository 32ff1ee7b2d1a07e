package sandbox_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

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

// answer is what a program answers to a line: parts of its output, and its code.
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
		"etc/modules-load.d/a.conf":   sandbox.File(0o644, "# what is needed\nbr_netfilter\n; no\nip-vs\n"),
		"etc/modprobe.d/a.conf":       sandbox.File(0o644, "alias netdev-* tun\ninstall cramfs /bin/false\ninstall udf /bin/true\ninstall sctp /sbin/x y\nblacklist pcspkr\noptions tun a=b\n"),
		"lib/modules/1.2/modules.dep": sandbox.File(0o644, strings.ReplaceAll("br_netfilter ip_vs tun cramfs udf sctp pcspkr overlay xfs", " ", ".ko: \nkernel/")+".ko.xz: kernel/x.ko\n"),
	})
	if err := s.Boot(); err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, s, []answer{
		{"lsmod", "Module                  Size  Used by\nip_vs                  36864  0\nbr_netfilter           32768  0\n", "", 0},
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
		{"lsmod", "Used by\ntun                    28672  0\noverlay                45056  0\nip_vs ", "", 0},
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
