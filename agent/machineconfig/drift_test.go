package machineconfig

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/ledger"
)

// running is a daemon in a bubble of virtual time.
func running(t *testing.T, c *cluster) {
	t.Helper()
	cfg := c.config()
	cfg.Clock = clock.RealClock{}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	d := newDaemon(cfg)
	c.daemon = d
	ctx := t.Context()
	go func() { done <- d.run(ctx) }()
	t.Cleanup(func() { // the context has ended
		if err := <-done; err != nil {
			t.Errorf("run = %v", err)
		}
	})
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of the bubble
	synctest.Wait()
}

func (c *cluster) state() string {
	return strings.TrimSpace(c.annotation("state") + " " + c.annotation("reason"))
}

func (c *cluster) eventReasons() (out []string) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	for _, e := range c.api.events {
		out = append(out, e["reason"].(string))
	}
	return out
}

// Statement M19: a changed file or mode degrades the node at once, with an event; a file of nobody in the
// same directory does nothing; the restored file makes the node Done.
func TestDriftDegradesUntilTheFileIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.rendered("r1", ign{files: files("/etc/x", "1", "/etc/secret=0600", "s"), units: []map[string]any{{"name": "x.service", "contents": unitText}}})
		c.desire("r1", "")
		c.wantState("Done")
		running(t, c)
		pass(time.Second)
		for _, tt := range []struct {
			file, content, restored string
			mode, restoredMode      uint32
			want                    string
		}{
			{"/etc/x", "2", "1", 0o644, 0o644, `Degraded content mismatch for file "/etc/x"`},
			{"/etc/secret", "s", "s", 0o644, 0o600, `Degraded mode mismatch for file: "/etc/secret"; expected: -rw-------; received: -rw-r--r--`},
			{unitDir + "/x.service", "[Unit]\n", unitText, 0o644, 0o644, `Degraded content mismatch for file "/etc/systemd/system/x.service"`},
		} {
			events := len(c.eventReasons())
			c.edit("/etc/nobodys", tt.file, 0o644)
			pass(time.Second)
			if got := c.state(); got != "Done" {
				t.Errorf("state after a change of an unrelated file = %q, want Done", got)
			}
			c.edit(tt.file, tt.content, modeOf(int(tt.mode)))
			pass(time.Second)
			if got := c.state(); got != tt.want {
				t.Errorf("state after a change of %s = %q, want %q", tt.file, got, tt.want)
			}
			pass(10 * time.Minute)
			if diff := cmp.Diff([]string{"ConfigDriftDetected"}, c.eventReasons()[events:]); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			c.edit(tt.file, tt.restored, modeOf(int(tt.restoredMode)))
			pass(time.Second)
			if got := c.state(); got != "Done" {
				t.Errorf("state after the restore of %s = %q, want Done", tt.file, got)
			}
		}
		if err := c.system.Remove("etc/x"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if got := c.state(); got != `Degraded content mismatch for file "/etc/x": it does not exist` {
			t.Errorf("state after the removal of /etc/x = %q", got)
		}
	})
}

// Statement M20: an update of the files is no drift, and the new configuration's files are watched.
func TestUpdateIsNoDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.rendered("r1", ign{files: files("/etc/nmstate/openshift/x", "1")})
		c.desire("r1", "")
		c.wantState("Done")
		running(t, c)
		pass(time.Second)
		c.drains = false
		c.rendered("r2", ign{files: files("/etc/nmstate/openshift/x", "2", "/etc/nmstate/openshift/y", "2")})
		c.desire("r2", "")
		pass(time.Second)
		if got := c.state() + c.annotation("currentConfig"); got != "Doner2" {
			t.Fatalf("state and configuration = %q, want Done and r2", got)
		}
		if got := c.eventReasons(); len(got) > 0 {
			t.Errorf("events of an update = %q, want none", got)
		}
		c.edit("/etc/nmstate/openshift/y", "3", 0o644)
		pass(time.Second)
		if got := c.state(); got != `Degraded content mismatch for file "/etc/nmstate/openshift/y"` {
			t.Errorf("state after a change of a file of the new configuration = %q", got)
		}
		// A change while the node is updated is found at the end, and not before.
		c.edit("/etc/nmstate/openshift/y", "2", 0o644)
		pass(time.Second)
		c.rendered("r3", ign{files: files("/etc/nmstate/openshift/x", "2", "/etc/nmstate/openshift/y", "2", "/etc/z", "3")})
		c.desire("r3", "")
		pass(time.Second)
		c.edit("/etc/nmstate/openshift/x", "drift", 0o644)
		pass(30 * time.Second)
		if got := c.state(); got != "Working" {
			t.Errorf("state while the node waits for its drain = %q, want Working", got)
		}
	})
}

// Statement M21: the force file makes the daemon apply the configuration without a look at the disk; it is
// used up.
func TestForceFileSkipsValidationAndReboots(t *testing.T) {
	c := newCluster(t)
	c.rendered("r1", ign{files: files("/etc/x", "1")})
	c.desire("r1", "")
	c.wantState("Done")
	c.edit("/etc/x", "drift", 0o644)
	c.daemon.dirty.Store(true)
	c.wantState("Degraded content mismatch")
	// Another configuration is refused while the disk is not as it should be.
	c.rendered("r2", ign{files: files("/etc/y", "2")})
	c.desire("r2", "")
	c.wantState(`Degraded unexpected on-disk state validating against r1: content mismatch for file "/etc/x"`)
	boots := c.boot
	c.edit(ForceFile, "", 0o644)
	c.wantState("Done")
	if got := c.read("/etc/x") + c.read("/etc/y") + c.read(ForceFile); got != "-2-" || c.boot != boots+1 {
		t.Errorf("files = %q after %d boots, want only /etc/y, and one boot", got, c.boot-boots)
	}
	c.edit("/etc/y", "drift", 0o644)
	c.edit(ForceFile, "", 0o644)
	boots = c.boot
	c.wantState("Done")
	if got := c.read("/etc/y") + c.read(ForceFile); got != "2-" || c.boot != boots+1 {
		t.Errorf("files = %q after %d boots, want 2 and one boot", got, c.boot-boots)
	}
}

// Files that went with the root before are written once more, as on a host whose rpm-ostree takes
// them for unchanged: the revert costs two boots there.
func TestFilesThatWentWithTheRootAreWrittenAgain(t *testing.T) {
	c := newCluster(t)
	c.rendered("r1", ign{files: files("/etc/x", "1")})
	c.desire("r1", "")
	for c.reboots == 0 {
		if _, err := c.daemon.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.controllers()
	}
	if err := c.system.Remove("etc/x"); err != nil {
		t.Fatal(err)
	}
	c.wantState("Done")
	if c.boot != 3 || c.read("/etc/x") != "1" {
		t.Errorf("%d boots and /etc/x = %q, want 3 and 1", c.boot, c.read("/etc/x"))
	}
}

// An item of another family changes a file of the configuration: the reason names it, and nobody
// writes the file again.
func TestConflictWithAnotherFamilyIsReported(t *testing.T) {
	c := newCluster(t)
	c.rendered("r1", ign{files: files("/etc/x", "1")})
	c.desire("r1", "")
	c.wantState("Done")
	guard, err := ledger.NewGuard(c.host)
	if err != nil {
		t.Fatal(err)
	}
	c.edit("/etc/x", "of the item", 0o644)
	if err := guard.End("lcm: item sysctl"); err == nil || err.Error() != "conflict: /etc/x of MachineConfig r1: change it there, or leave it out here" {
		t.Errorf("End = %v, want a conflict", err)
	}
	c.daemon.dirty.Store(true)
	c.wantStateWithin(`Degraded content mismatch for file "/etc/x"; conflict: /etc/x was changed by lcm: item sysctl`, time.Hour)
	if got := c.condition("NodeDegraded"); !strings.Contains(got, "changed by lcm: item sysctl") {
		t.Errorf("condition NodeDegraded = %q", got)
	}
	if got := c.read("/etc/x"); got != "of the item" {
		t.Errorf("/etc/x = %q: the daemon fights over it", got)
	}
	c.edit("/etc/x", "1", 0o644)
	c.wantState("Done")
	if err := guard.End("lcm: item sysctl"); err != nil {
		t.Errorf("End after the restore = %v", err)
	}
}
