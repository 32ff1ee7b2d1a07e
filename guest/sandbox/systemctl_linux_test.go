package sandbox_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// split runs systemctl, and returns its standard output, its standard error and its code.
func split(t *testing.T, s *sandbox.System, line string) (out, problems string, code int) {
	t.Helper()
	var b, e strings.Builder
	code, err := s.Exec(t.Context(), sandbox.Command{Args: append([]string{"systemctl"}, strings.Fields(line)...), Stdout: &b, Stderr: &e})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), e.String(), code
}

const oneshot = "[Unit]\nDescription=Some service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=systemctl is-system-running --quiet\nExecReload=systemctl --version\n[Install]\nWantedBy=multi-user.target\n"

// The verbs of systemctl(1), their output and their codes, without a process. Each is called behind
// those before it.
func TestVerbsOfSystemctl(t *testing.T) {
	c := &console{}
	s, _ := booted(t, func(conf *sandbox.Config) { conf.Report = c.write })
	put(t, s, sandbox.Tree{
		"etc/systemd/system/a.service":              sandbox.File(0o644, oneshot),
		"etc/systemd/system/bad.service":            sandbox.File(0o644, "[Service]\nType=oneshot\nExecStart=systemctl is-active none\n"),
		"etc/systemd/system/t@.service":             sandbox.File(0o644, oneshot+"DefaultInstance=d\n"),
		"run/systemd/system/alias.service":          {Mode: fs.ModeSymlink | 0o777, Link: "a.service"},
		"etc/systemd/system/odd.service":            sandbox.File(0o644, "[Service]\nExecStart=x\nMemoryMax=1G\nFoo=1\n"),
		"usr/local/lib/systemd/system/b.service":    sandbox.File(0o644, oneshot),
		"usr/local/lib/systemd/system/other.target": sandbox.File(0o644, "[Unit]\nAllowIsolate=yes\n"),
		"opt/l.service":                             sandbox.File(0o644, oneshot),
	})
	for _, tt := range []struct {
		line, out, problems string // parts of the output
		code                int
	}{
		{"start a none.service", "", "Failed to start none.service: Unit none.service not found.", 5},
		{"is-active a b alias", "active\ninactive\nactive\n", "", 0},
		{"-q is-active b", "", "", 3},
		{"start bad", "", "Job for bad.service failed: systemctl ended with code 3", 1},
		{"is-failed bad", "failed\n", "", 0},
		{"is-system-running", "degraded\n", "", 1},
		{"--failed --no-legend list-units --plain", "bad.service loaded failed failed bad.service\n", "", 0},
		{"reset-failed", "", "", 0},
		{"is-system-running", "running\n", "", 0},
		{"is-enabled a", "disabled\n", "", 1},
		{"is-enabled none", "", "Failed to get unit file state for none.service: No such file or directory", 1},
		{"enable a --no-block", "", "Created symlink /etc/systemd/system/multi-user.target.wants/a.service → /etc/systemd/system/a.service.", 0},
		{"is-enabled a bad alias t@d", "enabled\nstatic\nalias\ndisabled\n", "", 0},
		{"enable t@.service", "", "multi-user.target.wants/t@d.service → /etc/systemd/system/t@.service", 0},
		{"is-enabled t@.service t@d", "enabled\nenabled\n", "", 0},
		{"enable bad", "", "The unit files have no installation config", 0},
		{"enable none", "", "Failed to enable unit: Unit file none.service does not exist.", 1},
		{"list-unit-files --no-legend a.service bad* t@*", "a.service   enabled enabled\nbad.service static  -\nt@.service  enabled enabled\n", "", 0},
		{"disable a -q", "", "", 0},
		{"is-enabled a", "disabled\n", "", 1},
		{"mask a", "", "Failed to mask unit: File /etc/systemd/system/a.service already exists.", 1},
		{"mask b --now", "", "Created symlink /etc/systemd/system/b.service → /dev/null.", 0},
		{"is-enabled b", "masked\n", "", 1},
		{"start b", "", "Failed to start b.service: Unit b.service is masked.", 1},
		{"show b -p LoadState --value", "masked\n", "", 0},
		{"unmask b", "", "Removed \"/etc/systemd/system/b.service\".", 0},
		{"show -p ActiveState,SubState --property=Type a", "Type=oneshot\nActiveState=active\nSubState=exited\n", "", 0},
		{"show -P Id alias b", "a.service\n\nb.service\n", "", 0},
		{"show none --property LoadState", "LoadState=not-found\n", "", 0},
		{"show a -p ExecStart", "ExecStart={ path=systemctl ; argv[]=systemctl is-system-running --quiet ; ignore_errors=no ;", "", 0},
		{"show -p SystemState", "SystemState=running\n", "", 0},
		{"show odd -p MemoryMax", "MemoryMax=1G\n", "", 0},
		{"status a", "● a.service - Some service\n     Loaded: loaded (/etc/systemd/system/a.service; disabled; preset: enabled)\n     Active: active (exited)", "", 0},
		{"status b", "○ b.service - Some service\n", "", 3},
		{"status none", "", "Unit none.service could not be found.", 4},
		{"status odd", "    Warning: odd.service: no effect in a server of the lab: MemoryMax=\n", "", 3},
		{"daemon-reload", "", "/etc/systemd/system/odd.service:4: Unknown key name 'Foo' in section 'Service', ignoring.\nodd.service: no effect in a server of the lab: MemoryMax=", 0},
		{"reload a", "", "", 0},
		{"try-restart b", "", "", 0},
		{"is-active b", "inactive\n", "", 3},
		{"reload-or-restart b", "", "", 0},
		{"is-active b", "active\n", "", 0},
		{"stop b none", "", "Failed to stop none.service: Unit none.service not loaded.", 5},
		{"kill -s KILL a", "", "No main process to kill", 1},
		{"kill -s WRONG a", "", "Failed to parse signal string WRONG.", 1},
		{"link /opt/l.service", "", "Created symlink /etc/systemd/system/l.service → /opt/l.service.", 0},
		{"is-enabled l", "linked\n", "", 1},
		{"enable --now /opt/l.service", "", "multi-user.target.wants/l.service", 0},
		{"is-active l", "active\n", "", 0},
		{"disable l", "", "Removed \"/etc/systemd/system/l.service\".", 0},
		{"add-wants other b", "", "Created symlink /etc/systemd/system/other.target.wants/b.service → /usr/local/lib/systemd/system/b.service.", 0},
		{"list-dependencies other.target --plain", "other.target\n  b.service\n", "", 0},
		{"isolate other", "", "", 0},
		{"is-active b a other.target", "active\ninactive\nactive\n", "", 0},
		{"isolate b", "", "Failed to start b.target: Unit b.target not found.", 5},
		{"set-property a MemoryMax=2G", "", "no effect in a server of the lab: MemoryMax=", 0},
		{"cat a", "# /etc/systemd/system/a.service\n[Unit]", "", 0},
		{"cat a", "# /etc/systemd/system.control/a.service.d/50-MemoryMax.conf\n", "", 0},
		{"set-property a Wrong=1", "", "Cannot set property Wrong", 1},
		{"revert a", "", "Removed \"/etc/systemd/system.control/a.service.d\".", 0},
		{"set-default multi-user", "", "Created symlink /etc/systemd/system/default.target", 0},
		{"get-default", "multi-user.target\n", "", 0},
		{"list-jobs", "No jobs running.\n", "", 0},
		{"edit a", "", "not on a tty", 1},
		{"suspend", "", "not supported", 1},
		{"frobnicate a", "", "Unknown command verb frobnicate.", 1},
		{"start", "", "Too few arguments.", 1},
		{"start --frobnicate a", "", "unrecognized option '--frobnicate'", 1},
		{"show -p", "", "requires an argument", 1},
		{"--user start a", "", "Failed to connect to bus", 1},
		{"start ../../etc/passwd", "", "Invalid unit name", 1},
		{"stop [*", "", "", 0},
		{"-tservice --state=active,failed --no-legend --plain", "b.service loaded active exited Some service\n", "", 0},
	} {
		if strings.HasPrefix(tt.line, "set-default") { // where this machine has the file
			if _, _, code := split(t, s, "cat multi-user.target"); code != 0 {
				continue
			}
		}
		out, problems, code := split(t, s, tt.line)
		if fits := strings.Contains(out, tt.out) && (tt.out != "" || out == "") && strings.Contains(problems, tt.problems) && (tt.problems != "" || problems == ""); !fits || code != tt.code {
			t.Errorf("systemctl %s = code %d, %q, %q\nwant code %d, %q, %q", tt.line, code, out, problems, tt.code, tt.out, tt.problems)
		}
	}
}

// Programs find systemd by its directory and the name of process 1, and service(8) by them.
func TestSystemdIsFound(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	put(t, s, sandbox.Tree{"etc/systemd/system/a.service": sandbox.File(0o644, oneshot)})
	checkRuns(t, s,
		[2]string{"cat /proc/1/comm; test -d /run/systemd/system && echo booted", "systemd\nbooted\n"},
		[2]string{"test ! -e /usr/sbin/service || service a start; test -e /usr/sbin/service || systemctl start a; systemctl is-active a", "active\n"},
		[2]string{"systemctl start none 2>/dev/null; systemctl start none 2>&1 >/dev/null", "Failed to start none.service: Unit none.service not found.\n"},
	)
	if changes, err := s.Changes(); err != nil || strings.Contains(strings.Join(changed(changes), " "), "run/systemd") {
		t.Errorf("changes = %v, %v", changes, err)
	}
}

func changed(all []sandbox.Change) (out []string) {
	for _, c := range all {
		out = append(out, c.Name)
	}
	return out
}

// Ansible's modules of services find systemd and its units.
func TestAnsibleManagesUnits(t *testing.T) {
	needNamespaces(t)
	prerequisites.Need(t, "ansible-playbook")
	s, _ := booted(t, func(c *sandbox.Config) {
		machine := sandbox.MachineFiles()
		for name, n := range c.Base {
			machine[name] = n
		}
		c.Base = machine
	})
	put(t, s, sandbox.Tree{
		"etc/systemd/system/a.service": sandbox.File(0o644, oneshot),
		"etc/systemd/system/b.service": sandbox.File(0o644, oneshot),
		"root/play.yaml": sandbox.File(0o644, `- hosts: localhost
  connection: local
  gather_facts: true
  tasks:
    - service: {name: a, state: started, enabled: true}
    - systemd: {name: b, state: restarted, daemon_reload: true}
    - service_facts:
    - assert: {that: [ansible_service_mgr == 'systemd', "ansible_facts.services is contains('a.service')", "ansible_facts.services['a.service'].status == 'enabled'", "ansible_facts.services['b.service'].status == 'disabled'"]}
    - service: {name: a, state: stopped, enabled: false}
      when: ansible_facts.services is contains('a.service')
`),
	})
	run(t, s, "rm -f /usr/lib/systemd/system/[b-z]*.service") // service_facts runs systemctl for each
	ctx := patience.Within(t, 2*time.Minute)
	var b strings.Builder
	code, err := s.Exec(ctx, sandbox.Command{Args: []string{"ansible-playbook", "-i", "localhost,", "/root/play.yaml"}, Stdout: &b, Stderr: &b})
	if err != nil || code != 0 {
		t.Fatalf("ansible-playbook = code %d, %v:\n%s", code, err, b.String())
	}
	if out, _, _ := split(t, s, "is-active a"); out != "inactive\n" {
		t.Errorf("a is %q", out)
	}
}

// The values of sysctl.d are those of /proc/sys from the boot on.
func TestBootSetsTheValuesOfSysctl(t *testing.T) {
	needNamespaces(t)
	c := &console{}
	s, _ := booted(t, func(conf *sandbox.Config) { conf.Report = c.write })
	put(t, s, sandbox.Tree{
		"etc/sysctl.d/k8s.conf":         sandbox.File(0o644, "# Kubernetes\nnet.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables=1\nvm.swappiness=7\nnet/ipv4/conf/lo/rp_filter = 2\nvm.nothing=1\n-vm.optional=1\n"),
		"etc/sysctl.d/a.conf":           sandbox.File(0o644, "vm.swappiness=3\nnet.ipv4.conf.*.log_martians=1\n-net.ipv4.conf.default.log_martians\n"),
		"usr/local/lib/sysctl.d/a.conf": sandbox.File(0o644, "kernel.panic=44\n"),
		"etc/modules-load.d/k8s.conf":   sandbox.File(0o644, "br_netfilter\n"),
		"etc/sysctl.conf":               sandbox.File(0o644, "kernel.panic=9\n"),
		"etc/sysctl.d/zero.conf":        {Mode: fs.ModeSymlink | 0o777, Link: "/dev/zero"},
	})
	if err := s.Boot(); err != nil {
		t.Fatal(err)
	}
	checkRuns(t, s,
		[2]string{"cd /proc/sys; cat net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables vm/swappiness net/ipv4/conf/lo/rp_filter kernel/panic net/ipv4/conf/all/log_martians net/ipv4/conf/default/log_martians", "1\n1\n7\n2\n9\n1\n0\n"},
	)
	if want := "Couldn't write '1' to 'vm/nothing'"; !c.has(want) || c.has("optional") {
		t.Errorf("the console shows %q, want %q", c.lines, want)
	}
}
