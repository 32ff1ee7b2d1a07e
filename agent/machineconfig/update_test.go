package machineconfig

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

const unitText = "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"

func files(kv ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

// Statements M12 and M13: the states of an update, the strings of the drain handshake, and the files on disk.
func TestUpdateGoesFromWorkingOverARebootToDone(t *testing.T) {
	c := newCluster(t)
	c.rendered("rendered-worker-1", ign{files: files("/etc/a.conf", "1", "/etc/secret=0600", "s"), units: []map[string]any{{"name": "x.service", "enabled": true, "contents": unitText, "dropins": []map[string]any{{"name": "10-y.conf", "contents": "[Service]\nNice=1\n"}}}}})
	c.desire("rendered-worker-1", "")
	c.wantState("Done")
	if diff := cmp.Diff([]string{"Working", "Done"}, c.history); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"currentConfig": "rendered-worker-1", "currentImage": "", "reason": "", "desiredDrain": "uncordon-rendered-worker-1", "lastAppliedDrain": "uncordon-rendered-worker-1", "post-config-action": ""} {
		if got := c.annotation(name); got != want {
			t.Errorf("annotation %s = %q, want %q", name, got, want)
		}
	}
	if c.boot != 2 {
		t.Errorf("the node has booted %d times, want 2: a new unit needs a reboot", c.boot)
	}
	got := map[string]string{"/etc/a.conf": c.read("/etc/a.conf"), "/etc/secret": c.read("/etc/secret"), "unit": c.read(unitDir + "/x.service"), "drop-in": c.read(unitDir + "/x.service.d/10-y.conf")}
	if diff := cmp.Diff(map[string]string{"/etc/a.conf": "1", "/etc/secret": "s", "unit": unitText, "drop-in": "[Service]\nNice=1\n"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := c.host.Readlink(unitDir + "/multi-user.target.wants/x.service"); err != nil {
		t.Errorf("the unit is not enabled: %v", err)
	}
	drains, done := 0, 0
	for _, p := range c.api.patches {
		if strings.Contains(p, `"drain-rendered-worker-1"`) {
			drains++
		}
		if !strings.Contains(p, `/state":"Done"`) {
			continue
		}
		if done++; !strings.Contains(p, `"uncordon-rendered-worker-1"`) {
			t.Errorf("the state Done is reported apart from the request to uncordon the node: %s", p)
		}
	}
	if drains != 1 || done != 1 {
		t.Errorf("%d patches request the drain and %d report the state Done, want one of each", drains, done)
	}

	// A file of an earlier configuration goes, and the file that it replaced comes back.
	c.edit("/etc/b.conf", "of the installation", 0o640)
	c.rendered("rendered-worker-2", ign{files: files("/etc/b.conf", "2")})
	c.desire("rendered-worker-2", "")
	c.wantState("Done")
	if a, b, unit := c.read("/etc/a.conf"), c.read("/etc/b.conf"), c.read(unitDir+"/x.service"); a != "-" || b != "2" || unit != "-" {
		t.Errorf("files = %q, %q, %q, want none, 2, none", a, b, unit)
	}
	c.rendered("rendered-worker-3", ign{})
	c.desire("rendered-worker-3", "")
	c.wantState("Done")
	if st, err := c.host.Stat("/etc/b.conf"); err != nil || c.read("/etc/b.conf") != "of the installation" || st.Mode != 0o640 {
		t.Errorf("/etc/b.conf = %q with mode %v, want what was there before with 0640", c.read("/etc/b.conf"), st.Mode)
	}
}

// Statement M13: a drain that fails for an hour degrades the node, which goes on when it succeeds.
func TestDrainThatFailsForAnHourDegrades(t *testing.T) {
	c := newCluster(t)
	c.drains = false
	c.rendered("r1", ign{files: files("/etc/a.conf", "1")})
	c.desire("r1", "")
	if got := c.settle(59 * time.Minute); got != "Working" {
		t.Fatalf("state after 59 minutes = %q, want Working", got)
	}
	c.wantStateWithin("Degraded failed to drain node: node-0 after 1 hour", 10*time.Minute)
	if got := c.read("/etc/a.conf"); got != "-" {
		t.Errorf("a node that is not drained has /etc/a.conf = %q", got)
	}
	c.drains = true
	c.wantState("Done")
}

// Statement M14: a cluster of one node has nowhere to drain to.
func TestSingleNodeTopologySkipsTheDrain(t *testing.T) {
	c := newCluster(t)
	c.drains = false
	c.controllerConfig(machineconfig.Skip, map[string]any{"infra": map[string]any{"status": map[string]any{"controlPlaneTopology": "SingleReplica"}}})
	c.rendered("r1", ign{files: files("/etc/a.conf", "1")})
	c.desire("r1", "")
	c.wantState("Done")
	if got := c.annotation("desiredDrain"); got != "" {
		t.Errorf("desiredDrain = %q, want none", got)
	}
}

// Statement M15: a change that needs an installation is refused, and nothing is written.
func TestUnreconcilableChangeWritesNothing(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		next       ign
		change     func(map[string]any)
	}{
		{"disk", "disks", ign{more: map[string]any{"disks": []map[string]any{{"device": "/dev/sdb"}}}}, nil},
		{"file system", "filesystems", ign{more: map[string]any{"filesystems": []map[string]any{{"device": "/dev/sdb", "format": "xfs", "path": "/data"}}}}, nil},
		{"RAID", "raid", ign{more: map[string]any{"raid": []map[string]any{{"name": "md", "level": "raid1", "devices": []string{"/dev/sdb", "/dev/sdc"}}}}}, nil},
		{"directory", "directories", ign{more: map[string]any{"directories": []map[string]any{{"path": "/etc/d"}}}}, nil},
		{"link", "links", ign{more: map[string]any{"links": []map[string]any{{"path": "/etc/l", "target": "/etc/hosts"}}}}, nil},
		{"append", "append", ign{more: map[string]any{"files": []map[string]any{{"path": "/etc/a.conf", "append": []map[string]any{{"source": "data:,x"}}}}}}, nil},
		{"force file", ForceFile, ign{files: files(ForceFile, "")}, nil},
		{"FIPS", "fips", ign{}, func(s map[string]any) { s["fips"] = true }},
		{"user foo", "non-core user \"foo\"", ign{users: []map[string]any{{"name": "foo"}}}, nil},
		{"home of core", "only sshAuthorizedKeys", ign{users: []map[string]any{{"name": "core", "homeDir": "/x"}}}, nil},
		{"path out of the root", "not fully simplified", ign{files: files("/etc/../../x", "")}, nil},
		{"link out of the root", "leaves the root", ign{more: map[string]any{"links": []map[string]any{{"path": "/etc/l", "target": "../../x"}}}}, nil},
		{"device", "/dev", ign{files: files("/dev/sda", "")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			c.rendered("r1", ign{files: files("/etc/a.conf", "1")})
			c.desire("r1", "")
			c.wantState("Done")
			before, err := c.system.Layer()
			if err != nil {
				t.Fatal(err)
			}
			if tt.next.files == nil {
				tt.next.files = files("/etc/a.conf", "2")
			}
			if tt.change == nil {
				tt.change = func(map[string]any) {}
			}
			c.rendered("r2", tt.next, tt.change)
			c.desire("r2", "")
			c.wantState("Unreconcilable " + tt.want)
			after, err := c.system.Layer()
			if diff := cmp.Diff(before, after); diff != "" || err != nil {
				t.Errorf("the node's files changed (-before +after):\n%s%v", diff, err)
			}
			if got := c.condition(mcv1.MachineConfigNodeNodeDegraded); !strings.HasPrefix(got, "True") || !strings.Contains(got, tt.want) {
				t.Errorf("condition NodeDegraded = %q, want True and %q", got, tt.want)
			}
			c.desire("r1", "") // back to the present configuration
			c.wantState("Done")
		})
	}
}

func (c *cluster) condition(conditionType mcv1.StateProgress) string {
	m := &mcv1.MachineConfigNode{}
	c.api.get(mcnAt, m)
	for _, x := range m.Status.Conditions {
		if x.Type == string(conditionType) {
			return string(x.Status) + " " + x.Message
		}
	}
	return ""
}

// Statement M16: an error in the middle of the writes leaves nothing of them.
func TestFailedWriteIsRolledBack(t *testing.T) {
	c := newCluster(t)
	c.rendered("r1", ign{files: files("/etc/a", "1", "/etc/b", "1", "/etc/gone", "1"), units: []map[string]any{{"name": "x.service", "enabled": true, "contents": unitText}}})
	c.desire("r1", "")
	c.wantState("Done")
	c.edit("/etc/mine", "mine", 0o644)
	c.edit("/etc/z", "of the installation", 0o600)
	state := func() map[string]string {
		out := map[string]string{}
		for _, n := range []string{"/etc/a", "/etc/b", "/etc/gone", "/etc/new", "/etc/z", "/etc/zz", "/etc/mine", unitDir + "/x.service", original("/etc/z"), configState} {
			out[n] = c.read(n)
		}
		_, err := c.host.Readlink(unitDir + "/multi-user.target.wants/x.service")
		out["enabled"] = fmt.Sprint(err == nil)
		return out
	}
	before := state()
	// Every write of the update fails once, the records of the daemon excepted.
	for _, fail := range []string{"/etc/a", "/etc/b", "/etc/new", "/etc/z", "/etc/zz", original("/etc/z"), configState} {
		c.host.fail = func(name string) error {
			if name == fail && c.host.ran != nil {
				return syscall.ENOSPC
			}
			return nil
		}
		c.rendered("r2", ign{files: files("/etc/a", "2", "/etc/b", "2", "/etc/new", "2", "/etc/z", "2", "/etc/zz", "2")})
		c.desire("r2", "")
		// The writes of a rollback do not fail.
		fails := 0
		c.host.fail = func(name string) error {
			if name == fail && fails%2 == 0 {
				fails++
				return syscall.ENOSPC
			}
			return nil
		}
		c.settleFor(1, t)
		if got := c.annotation("state"); got != "Degraded" || !strings.Contains(c.annotation("reason"), "no space") {
			t.Fatalf("%s: state = %s %s, want Degraded with the reason", fail, got, c.annotation("reason"))
		}
		if diff := cmp.Diff(before, state()); diff != "" {
			t.Errorf("files after the failure of %s (-before +after):\n%s", fail, diff)
		}
		c.host.fail = nil
		c.desire("r1", "")
		c.wantState("Done")
		if diff := cmp.Diff(before, state()); diff != "" {
			t.Errorf("files after the way back (-before +after):\n%s", diff)
		}
	}
	c.desire("r2", "")
	c.wantState("Done")
	if got := c.read("/etc/a") + c.read("/etc/zz") + c.read("/etc/gone"); got != "22-" {
		t.Errorf("files of r2 = %q, want 22 and none", got)
	}
}

// settleFor runs steps until the first failure.
func (c *cluster) settleFor(failures int, t *testing.T) {
	t.Helper()
	for range 50 {
		_, err := c.daemon.step(t.Context())
		c.controllers()
		if f := new(failure); errors.As(err, &f) {
			if failures--; failures == 0 {
				return
			}
		}
	}
	t.Fatal("no step has failed")
}

// Statement M23: a rendered configuration that is missing degrades the node until it is there.
func TestMissingRenderedConfigDegradesUntilItExists(t *testing.T) {
	c := newCluster(t)
	c.desire("rendered-worker-9", "")
	c.wantState(`Degraded machineconfig.machineconfiguration.openshift.io "rendered-worker-9" not found`)
	c.rendered("rendered-worker-9", ign{files: files("/etc/a", "1")})
	c.wantState("Done")
}

// The daemon is killed before each write to the API and to the disk, and the node ends with one
// configuration.
func TestKilledDaemonGoesOn(t *testing.T) {
	type dead struct{}
	for _, image := range []bool{false, true} {
		for write := 1; ; write++ {
			c := newCluster(t)
			c.rendered("r1", ign{files: files("/etc/a", "1", "/etc/gone", "1")})
			c.desire("r1", "")
			c.wantState("Done")
			c.rendered("r2", ign{files: files("/etc/a", "2", "/etc/b", "2")})
			ref := ""
			if image {
				ref = c.push(files("/etc/os-release", "ID=image\n", "/etc/a", "2", "/etc/b", "2"))
			}
			n := 0
			count := func() {
				if n++; n == write {
					panic(dead{})
				}
			}
			c.host.fail = func(string) error { count(); return nil }
			c.api.refuse = func(r *http.Request) int {
				if r.Method == http.MethodPatch {
					c.api.mu.Unlock() // a killed client holds no lock of the server
					defer c.api.mu.Lock()
					count()
				}
				return 0
			}
			c.desire("r2", ref)
			killed := func() (killed bool) {
				defer func() {
					if p := recover(); p != nil {
						if _, ok := p.(dead); !ok {
							panic(p)
						}
						killed = true
					}
				}()
				c.settle(2 * time.Minute)
				return false
			}()
			c.host.fail, c.api.refuse = nil, nil
			if killed {
				c.nextBootOrDaemon(write%2 == 0)
			}
			c.wantState("Done")
			if got := c.read("/etc/a") + c.read("/etc/b") + c.read("/etc/gone") + c.annotation("currentConfig") + c.annotation("currentImage"); got != "22-r2"+ref {
				t.Errorf("killed at write %d: files and annotations = %q, want 22-r2%s", write, got, ref)
			}
			if got, err := c.os.Booted(t.Context()); err != nil || got.Image != ref {
				t.Errorf("killed at write %d: booted = %+v, %v, want %q", write, got, err, ref)
			}
			if !killed {
				if write < 8 {
					t.Errorf("an update has %d writes: the test kills the daemon nowhere", write-1)
				}
				break
			}
		}
	}
}

// nextBootOrDaemon starts the daemon again, or the node.
func (c *cluster) nextBootOrDaemon(node bool) {
	if node {
		c.nextBoot()
	} else {
		c.startDaemon()
	}
}

// With an override the node takes a configuration whose disks differ, leaves its own, and reports
// the difference until a configuration has none (statement M15).
func TestOverrideTakesAChangeThatNoUpdateApplies(t *testing.T) {
	c := newCluster(t)
	disk := func(device string) map[string]any {
		return map[string]any{"disks": []map[string]any{{"device": device}}}
	}
	override := func(storage ...string) {
		c.api.put(operatorPath+"/machineconfigurations/cluster", map[string]any{"spec": map[string]any{"irreconcilableValidationOverrides": map[string]any{"storage": storage}}})
	}
	changes := func() []mcv1.IrreconcilableChangeDiff {
		m := &mcv1.MachineConfigNode{}
		c.api.get(mcnAt, m)
		return m.Status.IrreconcilableChanges
	}
	c.rendered("r1", ign{files: files("/etc/a.conf", "1")})
	c.desire("r1", "")
	c.wantState("Done")
	c.rendered("r2", ign{files: files("/etc/a.conf", "2"), more: disk("/dev/sdb")})
	c.desire("r2", "")
	override("Raid", "FileSystems")
	c.wantState("Unreconcilable ignition disks section contains changes")
	override("Disks")
	c.wantState("Done")
	if got := c.read("/etc/a.conf"); got != "2" {
		t.Errorf("/etc/a.conf = %q, want that of the configuration", got)
	}
	if got := changes(); len(got) != 1 || got[0].FieldPath != "spec.config.storage.disks" || !strings.Contains(got[0].Diff, "/dev/sdb") {
		t.Errorf("irreconcilableChanges = %+v, want the disks", got)
	}
	c.rendered("r3", ign{files: files("/etc/a.conf", "3"), more: disk("/dev/sdc")})
	c.desire("r3", "")
	c.wantState("Done")
	if got := changes(); len(got) != 1 || strings.Contains(got[0].Diff, "/dev/sdb") || !strings.Contains(got[0].Diff, "/dev/sdc") {
		t.Errorf("irreconcilableChanges = %+v, want the difference from the installation", got)
	}
	c.rendered("r4", ign{files: files("/etc/a.conf", "4")})
	c.desire("r4", "")
	c.wantState("Done")
	if got := changes(); len(got) > 0 {
		t.Errorf("irreconcilableChanges = %+v, want none: the node has what it was installed with", got)
	}
	override("Raid")
	c.desire("r3", "")
	c.wantState("Unreconcilable ignition disks section contains changes")
}
