package lcm

import (
	"errors"
	"strings"
	"testing"
	"time"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// statement H33: the agent reports the lines of /run/day2/reboot-required, and no
// reboot follows. A boot clears it.
func TestRebootRequestOfAPlaybookIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", "mkdir -p "+s.path("/run/day2")+"; echo kernel >>"+s.path(rebootRequestFile), lcmv1.PhaseReconfigure)))
		r := start(t, config(f, s))
		pass(0)
		check := func(required bool, reason string) {
			t.Helper()
			if h := f.machine().Status.HostInfo; h.RebootRequired != required || h.RebootReason != reason {
				t.Errorf("rebootRequired = %t, reason %q, want %t, %q", h.RebootRequired, h.RebootReason, required, reason)
			}
		}
		check(true, "kernel")
		s.write(t, rebootRequestFile, "kernel\nfirmware\n", 0o644)
		pass(time.Hour) // by any other hand
		check(true, "kernel\nfirmware")
		if s.reboots != 0 || f.machine().Status.Reboot != nil {
			t.Errorf("%d reboots, status %+v, want none", s.reboots, f.machine().Status.Reboot)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		s.nextBoot(t)
		start(t, config(f, s))
		pass(0)
		check(false, "")
		if got := f.machine().Status.HostInfo.BootTime; !got.Time.Equal(s.boot.Time) {
			t.Errorf("bootTime = %s, want %s", got, s.boot.Time)
		}
	})
}

// statement H34: the agent reboots the server once when spec.rebootRequired demands it, not
// before its items are done, and reports that the reboot is completed in the next boot.
func TestDemandedReboot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", "[ -e "+s.path("/repaired")+" ]", lcmv1.PhaseReconfigure)))
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true })
		r := start(t, config(f, s))
		pass(time.Hour)
		if s.reboots != 0 {
			t.Errorf("%d reboots before the items are done", s.reboots)
		}
		s.write(t, "/repaired", "", 0o600)
		pass(maxRetry)
		if got := f.machine().Status.Reboot; s.reboots != 1 || got == nil || got.Completed || got.RequestedAt == nil {
			t.Fatalf("%d reboots, status %+v, want one that is requested", s.reboots, got)
		}
		pass(rebootTimeout / 2) // the server goes down
		if s.reboots != 1 {
			t.Errorf("%d reboots within %s, want 1", s.reboots, rebootTimeout/2)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		// An agent that starts again in the same boot does not take it for the next one.
		r = start(t, config(f, s))
		pass(0)
		if f.machine().Status.Reboot.Completed || s.reboots != 1 {
			t.Errorf("the same boot: status %+v, %d reboots", f.machine().Status.Reboot, s.reboots)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		s.nextBoot(t)
		start(t, config(f, s))
		pass(time.Hour)
		if got := f.machine().Status.Reboot; !got.Completed || got.ErrorMessage != "" || s.reboots != 1 {
			t.Errorf("the next boot: status %+v, %d reboots, want completed and 1", got, s.reboots)
		}
		if state := item.ComputeState(f.machine()); state != lcmv1.StateReady {
			t.Errorf("state = %s, want Ready", state)
		}
		// The status is there until the demand and its annotation are gone.
		f.change(func(m *lcmv1.LCMMachine) {
			m.Spec.RebootRequired, m.Annotations = false, map[string]string{item.GracefulRebootAnnotation: "true"}
		})
		pass(0)
		if f.machine().Status.Reboot == nil || item.GracefulRebootRequired(f.machine()) {
			t.Errorf("status %+v, want completed still", f.machine().Status.Reboot)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Annotations = nil })
		pass(0)
		if got := f.machine().Status.Reboot; got != nil {
			t.Errorf("status = %+v, want none", got)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true })
		pass(0)
		if s.reboots != 2 {
			t.Errorf("%d reboots after the second demand, want 2", s.reboots)
		}
	})
}

// statement H34: a reboot that cannot begin, or does not happen, is reported and tried
// again.
func TestRebootThatDoesNotHappen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		s.fail = errors.New("systemctl reboot ended with code 1")
		f.change(machineWith(script("a", ":", lcmv1.PhaseReconfigure)))
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true })
		start(t, config(f, s))
		message := func(want string) {
			t.Helper()
			if got := f.machine().Status.Reboot; got == nil || got.Completed || !strings.Contains(got.ErrorMessage, want) {
				t.Errorf("status = %+v, want %q", got, want)
			}
		}
		pass(0)
		message("systemctl reboot ended with code 1")
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		pass(rebootTimeout)
		message("the server has not rebooted within 10m")
		if s.reboots != 1 {
			t.Errorf("%d reboots, want 1", s.reboots)
		}
	})
}

// An agent whose disk is full does not reboot: the next boot could not be recognized.
func TestNoRebootWithoutItsRecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseReconfigure)))
		start(t, config(f, s))
		pass(0)
		if err := s.Remove(stateFile); err != nil {
			t.Fatal(err)
		}
		s.write(t, stateFile+"/directory", "", 0o600) // it cannot be written
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true })
		pass(0)
		if got := f.machine().Status.Reboot; s.reboots != 0 || got == nil || got.ErrorMessage == "" {
			t.Errorf("%d reboots, status %+v, want none and the reason", s.reboots, got)
		}
	})
}
