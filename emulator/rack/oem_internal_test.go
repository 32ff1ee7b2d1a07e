package rack

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// ipmitool's commands for one vendor work with a BMC that has that vendor's
// commands, and fail at once with another (statements I71 and tool-19).
func TestVendorIPMICommands(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	prerequisites.Need(t, "ipmi-oem")
	r := rackfile.Default(2)
	r.Accounts = []rackfile.Account{{Name: "ADMIN", Password: "ADMIN-1", Role: "Administrator"}}
	l := open(t, Config{Rack: &r})
	record := *l.hosts[0].Dialect()
	record.IPMI.OEMCommands, record.IPMI.OEMSystemInfo = idrac.OEMCommands, idrac.OEMSystemInfo
	if err := record.Validate(); err != nil {
		t.Fatal(err)
	}
	l.hosts[0].record.Store(&record)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := l.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	defer func() {
		cancel()
		serving.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	run := func(h *Host, args ...string) (string, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience.Of(30*time.Second))
		defer cancel()
		at, _ := h.IPMI()
		all := []string{"-I", "lanplus", "-H", at.Addr().String(), "-p", fmt.Sprint(at.Port()), "-U", "ADMIN", "-P", "ADMIN-1"}
		out, err := exec.CommandContext(ctx, "ipmitool", append(all, args...)...).CombinedOutput()
		return string(out), err
	}
	h, other := l.hosts[0], l.hosts[1]
	if err := h.Power(ctx, string(machine.ResetOn)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ line, want string }{
		{"delloem mac list", strings.ToLower(h.Machine().Identity.NICs[1].MAC)},
		{"delloem mac get 0", strings.ToLower(h.Machine().Identity.NICs[0].MAC)},
		{"delloem lan get", "Dedicated"},
		{"delloem lan get active", ""},
		{"delloem powermonitor", "System Peak Power"},
		{"delloem powermonitor powerconsumptionhistory", "Max Power Consumption"},
		{"delloem powermonitor getpowerbudget", "Power cap"},
		{"delloem setled 0:0.0 online", ""},
	} {
		out, err := run(h, strings.Fields(tt.line)...)
		if err != nil || !strings.Contains(strings.ToLower(out), strings.ToLower(tt.want)) {
			t.Errorf("%s = %v, want %q in\n%s", tt.line, err, tt.want, out)
		}
	}
	for _, tt := range []struct{ line, want string }{
		{"get-active-lom-status v2", "Link Present"},
		{"get-power-consumption-statistics average", "Last Week"},
		{"get-power-capacity", "W"},
		{"get-power-capacity-status", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience.Of(30*time.Second))
		defer cancel()
		at, _ := h.IPMI()
		args := append([]string{"-h", at.String(), "-u", "ADMIN", "-p", "ADMIN-1", "-D", "LAN_2_0", "-I", "17", "-l", "ADMIN", "dell"}, strings.Fields(tt.line)...)
		out, err := exec.CommandContext(ctx, "ipmi-oem", args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("ipmi-oem dell %s = %v, want %q in\n%s", tt.line, err, tt.want, out)
		}
	}
	if out, err := run(h, "raw", "0x30", "0x28", "2", "0"); err != nil {
		t.Errorf("set NIC selection = %v\n%s", err, out)
	}
	if out, err := run(h, "delloem", "lan", "get"); err != nil || !strings.Contains(strings.ToLower(out), "lom1") {
		t.Errorf("after it was set: %v\n%s", err, out)
	}
	for _, line := range []string{"delloem lan get", "delloem powermonitor", "raw 0x30 0x70"} {
		if out, err := run(other, strings.Fields(line)...); err == nil {
			t.Errorf("%s on a BMC of another vendor succeeds:\n%s", line, out)
		}
	}
	if out, err := run(h, "raw", "0x30", "0x70"); err == nil || !strings.Contains(out, "rsp=0xc1") {
		t.Errorf("a command that the vendor has not = %v\n%s", err, out)
	}
}
