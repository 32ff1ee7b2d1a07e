package lcm

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/broker"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// shared is the broker of a server with other agents.
func shared(s *server) *broker.Broker {
	return broker.New(s.Reboot, func(err error) { slog.Error("no reboot", "error", err) })
}

var update = broker.Operation{Family: broker.MachineConfig, Name: "update to rendered-worker-1"}

// An item waits until another agent's operation on the server ends; its status names that
// operation.
func TestItemWaitsForAnotherAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		c := config(f, s)
		c.Broker = shared(s)
		end, err := c.Broker.Try(update)
		if err != nil {
			t.Fatal(err)
		}
		start(t, c)
		pass(time.Hour)
		m := f.machine()
		if got := m.Status.StateItemStatuses["a"]; got.Message != "blocked by machineconfig: update to rendered-worker-1" || got.Attempt != 0 || len(s.commands()) > 0 {
			t.Errorf("status = %+v, %d commands; want the operation that it waits for, and none", got, len(s.commands()))
		}
		if got := item.ProgressOf(m.Spec.StateItems[0], m.Status.StateItemStatuses, m.Status.AgentVersion); got != item.NotStarted {
			t.Errorf("progress = %d, want NotStarted", got)
		}
		end()
		pass(minRetry)
		check(t, f, map[string]string{"a": "0 after 1"})
		if got := f.machine().Status.StateItemStatuses["a"].Message; got != "" {
			t.Errorf("message of the item that was executed = %q, want none", got)
		}
	})
}

// A reboot waits until another agent's operation on the server ends; its status names that
// operation.
// It comes when that ends, and once.
func TestRebootWaitsForAnotherAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		c := config(f, s)
		c.Broker = shared(s)
		start(t, c)
		pass(0)
		end, err := c.Broker.Try(update)
		if err != nil {
			t.Fatal(err)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.RebootRequired = true })
		pass(3 * rebootTimeout)
		if got := f.machine().Status.Reboot; s.reboots != 0 || got == nil || got.ErrorMessage != "blocked by machineconfig: update to rendered-worker-1" {
			t.Errorf("%d reboots, status %+v; want none and the operation that it waits for", s.reboots, got)
		}
		end()
		if s.reboots != 1 {
			t.Errorf("%d reboots after the operation, want 1", s.reboots)
		}
	})
}

// An agent that is ended while it executes an item holds nothing.
func TestEndedAgentFreesTheLock(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.change(machineWith(script("a", "echo >"+s.path("/begun")+"; sleep 1000", lcmv1.PhaseDeploy)))
	c := config(f, s)
	c.Broker = shared(s)
	r := start(t, c)
	patience.Await(t, "the item begins", func() bool { return s.read(t, "/begun") != "" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Broker.Begin(ctx, update); err == nil {
		t.Error("another agent begins while the item is executed")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	end, err := c.Broker.Try(update)
	if err != nil {
		t.Fatalf("after the agent has ended: %v", err)
	}
	end()
}
