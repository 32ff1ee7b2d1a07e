package sandbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/hosttest"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

var _ hosttest.Host = sandbox.Host{}

// The tests that this machine's system passes, with and without running processes.
func TestHost(t *testing.T) {
	t.Run("files without processes", func(t *testing.T) {
		s, _ := booted(t)
		hosttest.Files(t, s.Host(), "/root/test")
	})
	t.Run("running", func(t *testing.T) {
		needNamespaces(t)
		s, _ := booted(t)
		run(t, s, "sleep 600 > /dev/null 2>&1 &")
		hosttest.Files(t, s.Host(), "/root/test")
		hosttest.Commands(t, s.Host(), "/root/test")
		hosttest.ContextEndsCommand(t, s.Host(), "/root/test")
	})
}

// Units and boots as on a host with systemd: a boot is a System of the same layer.
func TestHostBoots(t *testing.T) {
	needNamespaces(t)
	rebooted := make(chan struct{}, 1)
	config := func(number int) func(*sandbox.Config) {
		return func(c *sandbox.Config) {
			c.Boot = sys.Boot{ID: fmt.Sprint("boot-", number), Time: time.Unix(int64(number), 0)}
			c.Reboot = func() { rebooted <- struct{}{} }
		}
	}
	number := 1
	s, m := booted(t, config(number))
	if err := s.Boot(); err != nil {
		t.Fatal(err)
	}
	next := func() sandbox.Host {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		number++
		s, _ = booted(t, config(number), func(c *sandbox.Config) { c.Store = m })
		if err := s.Boot(); err != nil {
			t.Fatal(err)
		}
		return s.Host()
	}
	hosttest.Units(t, s.Host(), "/var/units", func() hosttest.Host { return next() })
	hosttest.Boots(t, s.Host(), func() hosttest.Rebooter { <-rebooted; return next() })
}

func TestBootOfASystem(t *testing.T) {
	boot := sys.Boot{ID: "5c2d87f0-9c51-4bd4-a2a1-3cbb1b8a4a0d", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Boot, c.Now = boot, func() time.Time { return boot.Time.Add(90 * time.Second) }
	})
	if got, err := s.Host().Boot(); got != boot || err != nil {
		t.Errorf("Boot() = %v, %v, want %v", got, err, boot)
	}
	if err := s.Host().Reboot(t.Context()); err == nil {
		t.Error("a system without power to control reboots")
	}
	needNamespaces(t)
	if got, _ := run(t, s, "cat /proc/sys/kernel/random/boot_id /proc/uptime"); got != boot.ID+"\n90.00 90.00\n" {
		t.Errorf("commands see %q", got)
	}
}
