package sandbox_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// console keeps the lines of a server's console.
type console struct {
	mu    sync.Mutex
	lines []string
}

func (c *console) write(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

func (c *console) has(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.lines, func(l string) bool { return strings.Contains(l, text) })
}

// withUnits returns a system with units, each the lines of its file.
func withUnits(t *testing.T, units map[string]string) (*sandbox.System, *console) {
	t.Helper()
	c := &console{}
	s, _ := booted(t, func(conf *sandbox.Config) { conf.Report = c.write })
	files := sandbox.Tree{
		"etc/passwd": sandbox.File(0o644, "root:x:0:0:root:/root:/bin/bash\nweb:x:2001:2002::/var/web:/bin/sh\n"),
		"etc/group":  sandbox.File(0o644, "root:x:0:\nweb:x:2002:\nlog:x:40:web\n"),
	}
	for name, text := range units {
		if !strings.Contains(name, "/") {
			name = "etc/systemd/system/" + name
		}
		files[name] = sandbox.File(0o644, text)
	}
	put(t, s, files)
	return s, c
}

// checkRuns runs lines of a shell one after the other, and compares their output.
func checkRuns(t *testing.T, s *sandbox.System, lines ...[2]string) {
	t.Helper()
	var script strings.Builder
	for _, l := range lines {
		script.WriteString(l[0] + "\necho ==\n")
	}
	out, _ := run(t, s, script.String())
	got := strings.Split(out, "==\n")
	for i, l := range lines {
		if i >= len(got)-1 || got[i] != l[1] {
			t.Errorf("%s = %q, want %q", l[0], got[min(i, len(got)-1)], l[1])
		}
	}
}

// Units of user data that are found in the field.
func TestUnitsOfTheField(t *testing.T) {
	needNamespaces(t)
	s, _ := withUnits(t, map[string]string{
		"foo@.service":    "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo instance %i >> /etc/foo-instances'\n[Install]\nWantedBy=multi-user.target\n",
		"etc/default/bar": "BAR_OPTS=--verbose\n",
		"bar.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\nEnvironmentFile=/etc/default/bar\nEnvironment=NAME=value\nExecStart=/bin/echo ${NAME} $BAR_OPTS\n" +
			"ExecStartPost=/bin/sh -c 'echo post > /etc/bar-post'\nExecStop=/bin/sh -c 'echo stop > /etc/bar-stop'\nStandardOutput=file:/etc/bar-out\n",
		"usr/lib/systemd/system/kubelet.service":               "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo base > /etc/kubelet-args'\n[Install]\nWantedBy=multi-user.target\n",
		"etc/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nEnvironment=\"KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf\"\nExecStart=\nExecStart=/bin/sh -c 'echo dropin $KUBELET_KUBECONFIG_ARGS > /etc/kubelet-args'\n",
	})
	checkRuns(t, s,
		[2]string{"systemctl daemon-reload; systemctl start foo@a.service foo@b; cat /etc/foo-instances", "instance a\ninstance b\n"},
		[2]string{"systemctl start bar; cat /etc/bar-out /etc/bar-post; ls /etc/bar-stop 2>/dev/null; systemctl is-active bar foo@a", "value --verbose\npost\nactive\nactive\n"},
		[2]string{"systemctl stop bar; cat /etc/bar-stop; systemctl is-active bar", "stop\ninactive\n"},
		[2]string{"systemctl enable --now kubelet foo@c 2>/dev/null; cat /etc/kubelet-args; readlink /etc/systemd/system/multi-user.target.wants/foo@c.service", "dropin --kubeconfig=/etc/kubernetes/kubelet.conf\n/etc/systemd/system/foo@.service\n"},
	)
}

func TestServicesRunAsTheirUnitsSay(t *testing.T) {
	needNamespaces(t)
	const shows = "/bin/sh -c 'systemctl show -p ActiveState,SubState --value states >> /etc/states'\n"
	s, c := withUnits(t, map[string]string{
		"user.service": "[Service]\nType=oneshot\nUser=web\nWorkingDirectory=~\nUMask=0077\nStateDirectory=app\nStateDirectoryMode=0750\nRuntimeDirectory=app\nExecStartPre=+/bin/chown web /var/web\n" +
			"ExecStart=/bin/sh -c 'id -u; id -g; id -G; pwd; echo $HOME $USER $STATE_DIRECTORY; umask; stat -c \"%%a %%U\" /var/lib/app /run/app'\nStandardOutput=append:/etc/user-out\n",
		"var/web/x":       "",
		"nobody.service":  "[Service]\nType=oneshot\nUser=none\nExecStart=/bin/true\n",
		"console.service": "[Service]\nType=oneshot\nStandardOutput=journal+console\nExecStart=/bin/sh -c 'echo to all; printf more'\n",
		"plain.service":   "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo \"$HOME|$USER|$PWD\" >&2'\nExecStart=@/bin/sh other -c 'echo $0 >&2'\nStandardError=append:/etc/plain-out\nStandardOutput=null\n",
		"main.service": "[Service]\nExecStart=/bin/sleep 1000\nExecStartPost=/bin/sh -c 'echo post $MAINPID > /etc/main'\nExecReload=/bin/kill -HUP $MAINPID\nExecStop=/bin/sh -c 'echo stop $MAINPID >> /etc/main'\n" +
			"ExecStopPost=/bin/sh -c 'echo $SERVICE_RESULT $EXIT_CODE $EXIT_STATUS >> /etc/main'\nProtectSystem=strict\nFoo=bar\nNice=5\n",
		"fork.service":   "[Service]\nType=forking\nPIDFile=/run/fork.pid\nExecStart=/bin/sh -c '/bin/sleep 1000 & echo $! > /run/fork.pid'\n",
		"notify.service": "[Service]\nType=notify\nExecStart=/usr/bin/python3 -c 'import os,socket,time; s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); open(\"/etc/notified\",\"w\").write(\"1\"); s.sendto(b\"READY=1\",os.environ[\"NOTIFY_SOCKET\"]); time.sleep(1000)'\n",
		"mute.service":   "[Service]\nType=notify\nTimeoutStartSec=200ms\nExecStart=/bin/sleep 1000\n",
		"abrt.service":   "[Service]\nExecStart=/bin/sh -c 'echo run >> /etc/abrt; kill -ABRT $$$$'\nRestart=on-abnormal\nStartLimitBurst=3\n",
		"code.service":   "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'exit 75'\nSuccessExitStatus=TEMPFAIL\n",
		"pre.service":    "[Service]\nType=oneshot\nExecStartPre=-/bin/false\nExecCondition=/bin/sh -c 'exit 1'\nExecStart=/bin/touch /etc/pre-ran\n",
		"mode.service":   "[Service]\nKillMode=process\nKillSignal=INT\nExecStart=/bin/sh -c 'trap \"echo usr >> /etc/mode\" USR1; trap \"echo int >> /etc/mode; exit 0\" INT; /bin/sleep 4321 & while :; do /bin/sleep 0.02; done'\n",
		"states.service": "[Service]\nType=oneshot\nExecCondition=" + shows + "ExecStartPre=" + shows + "ExecStart=" + shows + "ExecStartPost=" + shows + "ExecStopPost=" + shows,
		"left.service":   "[Service]\nType=oneshot\nExecStart=/bin/sh -c '/bin/sleep 1234 &'\n",
	})
	if os.Getuid() == 0 {
		checkRuns(t, s, [2]string{"systemctl start user; cat /etc/user-out; ls -d /run/app 2>/dev/null", "2001\n2002\n2002 40\n/var/web\n/var/web web /var/lib/app\n0077\n750 web\n755 web\n"})
	} else if out, code := run(t, s, "systemctl start user"); code == 0 || !strings.Contains(out, "run the lab as root") {
		t.Errorf("a user without privileges: code %d, %q", code, out)
	}
	checkRuns(t, s,
		[2]string{"systemctl start nobody 2>&1 | grep -c 'no such user'", "1\n"},
		[2]string{"systemctl start console; systemctl status console | tail -2", "to all\nmore\n"},
		[2]string{"systemctl start plain; cat /etc/plain-out", "||/\nother\n"},
		[2]string{"systemctl start main 2>/dev/null; systemctl is-active main; systemctl reload main 2>/dev/null; until [ $(systemctl is-active main) = inactive ]; do sleep 0.05; done; sed 's/[0-9]\\+/PID/' /etc/main", "active\npost PID\nstop\nsuccess killed HUP\n"},
		[2]string{"systemctl start main 2>/dev/null; systemctl stop main; sed 's/[0-9]\\+/PID/' /etc/main | tail -3", "post PID\nstop PID\nsuccess killed TERM\n"},
		[2]string{"systemctl start fork; systemctl is-active fork; kill $(cat /run/fork.pid); until [ $(systemctl is-active fork) = inactive ]; do sleep 0.05; done; systemctl is-failed fork", "active\ninactive\n"},
		[2]string{"systemctl start notify; cat /etc/notified; systemctl is-active notify; systemctl stop notify", "1active\n"},
		[2]string{"systemctl start mute 2>&1 | grep -c 'has not started in 200ms'; systemctl is-failed mute", "1\nfailed\n"},
		[2]string{"systemctl start abrt; until systemctl is-failed -q abrt; do sleep 0.05; done; cat /etc/abrt", "run\nrun\nrun\n"},
		[2]string{"systemctl start code && echo fine; systemctl is-failed code", "fine\ninactive\n"},
		[2]string{"systemctl start pre && echo fine; ls /etc/pre-ran 2>/dev/null; systemctl is-failed pre", "fine\ninactive\n"},
		[2]string{"systemctl start mode; until grep -qszx '432[1]' /proc/[0-9]*/cmdline; do :; done; systemctl kill -s USR1 --kill-whom=main mode; until test -s /etc/mode; do sleep 0.02; done; systemctl stop mode; cat /etc/mode; grep -qszx '432[1]' /proc/[0-9]*/cmdline && echo left", "usr\nint\nleft\n"},
		[2]string{"systemctl start states; until [ $(systemctl is-active states) = inactive ]; do sleep 0.05; done; paste -sd' ' /etc/states", "activating condition activating start-pre activating start activating start-post deactivating stop-post\n"},
		[2]string{"systemctl start left; while grep -qszx '123[4]' /proc/[0-9]*/cmdline; do sleep 0.05; done; echo gone", "gone\n"},
	)
	for _, want := range []string{"sh: to all", "main.service: no effect in a server of the lab: ProtectSystem= Nice=", "main.service:8: Unknown key name 'Foo' in section 'Service'", "abrt.service failed: /bin/sh was killed by the signal ABRT", "pre.service was skipped"} {
		if !c.has(want) {
			t.Errorf("the console does not show %q: %q", want, c.lines)
		}
	}
}

// Units start, stop and restart with those that they depend on.
func TestUnitsDependOnOthers(t *testing.T) {
	agent := func(lines string) string {
		return "[Service]\nExecStart=/usr/local/bin/agent\n[Unit]\n" + lines + "\n"
	}
	a := newAgents()
	c := &console{}
	s := a.system(t, c.write)
	files := sandbox.Tree{}
	for name, lines := range map[string]string{
		"db": "", "web": "Requires=db.service\nAfter=db.service", "part": "PartOf=db.service", "bound": "BindsTo=db.service\nAfter=db.service", "other": "Conflicts=db.service",
		"lonely": "Requires=none.service", "needs": "Requisite=db.service", "refuses": "RefuseManualStart=yes", "cond": "ConditionPathExists=/etc/none", "assert": "AssertPathExists=/etc/none",
		"self": "Requires=self.service\nAfter=self.service\nConflicts=self.service\nPartOf=self.service",
		"one":  "Requires=two.service\nAfter=two.service", "two": "Requires=one.service\nAfter=one.service",
		"after": "Requires=bad.service\nAfter=bad.service",
	} {
		files["etc/systemd/system/"+name+".service"] = sandbox.File(0o644, agent(lines))
	}
	files["etc/systemd/system/bad.service"] = sandbox.File(0o644, "[Service]\nExecStart=-\nOnFailure=x\n")
	files["etc/systemd/system/group.target"] = sandbox.File(0o644, "[Unit]\nWants=part.service\n")
	put(t, s, files)
	states := func(want string, names ...string) {
		t.Helper()
		patience.Await(t, "the states are "+want, func() bool {
			out, _ := ctl(t, s, append([]string{"is-active"}, names...)...)
			return strings.Join(strings.Fields(out), " ") == want
		})
	}
	fine := func(args ...string) {
		t.Helper()
		if out, code := ctl(t, s, args...); code != 0 {
			t.Errorf("systemctl %v = code %d, %q", args, code, out)
		}
	}
	fine("start", "web", "bound", "group.target")
	states("active active active active active", "db", "web", "bound", "part", "group.target")
	fine("restart", "db")
	states("active active active active", "db", "web", "bound", "part")
	fine("stop", "db")
	states("inactive inactive inactive inactive", "db", "web", "bound", "part")
	fine("start", "web")
	fine("start", "other")
	states("inactive inactive active", "db", "web", "other")
	fine("start", "self", "one", "cond")
	states("active active active inactive", "self", "one", "two", "cond")
	fine("restart", "self", "one")
	fine("stop", "self", "one")
	states("inactive inactive inactive", "self", "one", "two")
	for name, want := range map[string]string{
		"lonely": "Unit none.service not found", "needs": "Requisite=db.service", "refuses": "requested by dependency only", "assert": "Assertion failed", "after": "names no program", "bad": "names no program",
	} {
		if out, code := ctl(t, s, "start", name); code == 0 || !strings.Contains(out, want) {
			t.Errorf("start of %s = code %d, %q, want %q", name, code, out, want)
		}
	}
	if want := "cond.service was skipped because of an unmet condition check (ConditionPathExists=/etc/none)"; !c.has(want) {
		t.Errorf("the console does not show %q: %q", want, c.lines)
	}
}

// A oneshot that stops itself, one that never ends, and a unit that stops its own timer hold nothing.
func TestUnitsCannotHoldTheBoot(t *testing.T) {
	link := func(name string) sandbox.Node {
		return sandbox.Node{Mode: fs.ModeSymlink | 0o777, Link: "/etc/systemd/system/" + name}
	}
	s, _ := booted(t)
	files := sandbox.Tree{}
	for name, text := range map[string]string{
		"stops.service":   "[Service]\nType=oneshot\nExecStart=systemctl stop stops\n",
		"starts.service":  "[Service]\nType=oneshot\nExecStartPre=systemctl start starts\nExecStart=systemctl start starts\nExecStop=systemctl restart starts\nTimeoutStopSec=100ms\n",
		"another.service": "[Service]\nType=oneshot\nExecStart=systemctl start stops starts\nExecStop=systemctl stop another\nTimeoutStopSec=100ms\n",
		"target.service":  "[Service]\nType=oneshot\nExecStart=systemctl isolate rescue.target\n",
		"needs.service":   "[Unit]\nRequires=multi-user.target\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=systemctl is-system-running\n",
	} {
		files["etc/systemd/system/"+name] = sandbox.File(0o644, text)
		files["etc/systemd/system/multi-user.target.wants/"+name] = link(name)
	}
	put(t, s, files)
	ended := make(chan error)
	go func() { ended <- s.Boot() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-patience.Within(t, time.Minute).Done():
		t.Fatal("the boot does not end")
	}
}
