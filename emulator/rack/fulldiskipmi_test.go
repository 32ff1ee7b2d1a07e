package rack_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

// outOfSpace is how ipmitool shows the completion code C4h (IPMI v2.0 rev 1.1, table
// 5-2).
const outOfSpace = "rsp=0xc4): Out of space"

// toolFor returns ipmitool for a host.
func toolFor(t *testing.T, l *racktest.Rack, h *rack.Host) tool {
	t.Helper()
	at, ok := h.IPMI()
	if !ok {
		t.Fatal("IPMI is off")
	}
	user, password := l.Credentials(h)
	return tool{t: t, at: at, kind: "lanplus", user: user, pass: password}
}

// Commands that change something, in ipmitool's syntax for raw requests.
var changes = map[string][]string{
	"Chassis Control, power down":            {"raw", "0x00", "0x02", "0x00"},
	"Set System Boot Options, boot from PXE": {"raw", "0x00", "0x08", "0x05", "0x80", "0x04", "0x00", "0x00", "0x00"},
	"Set Power Restore Policy, always on":    {"raw", "0x00", "0x06", "0x02"},
}

// checkIPMIWithoutSpace expects that a BMC reads, and answers C4h to what it would have
// to store.
func checkIPMIWithoutSpace(t *testing.T, c tool) {
	t.Helper()
	c.want("System Power         : on", "chassis", "status")
	for name, request := range changes {
		if out, ok := c.run(request...); ok || !strings.Contains(out, outOfSpace) {
			t.Errorf("%s succeeds: %t, want %q in\n%s", name, ok, outOfSpace, out)
		}
	}
}

// When the file system itself refuses writes, IPMI clients log in and read, and changes
// have the completion code C4h; with space they succeed.
func TestIPMIAnswersC4OnAFullDisk(t *testing.T) {
	smalldisk.Run(t, 16<<20, func(dir string) {
		prerequisites.Need(t, "ipmitool")
		l := racktest.Start(t, rack.Config{Dir: dir, Rack: ipmiHost(t), Clock: clock.NewVirtual(racktest.Origin)})
		h := l.First()
		power(t, h, machine.ResetOn)
		c := toolFor(t, l, h)
		empty := smalldisk.Fill(t, dir, 0)
		for i := 0; l.Storage() == nil && i < 10_000; i++ { // the log's last block may have room
			code, _ := call(t, l, h, "PATCH", systemPath, `{"AssetTag":"`+strings.Repeat("x", i%30+1)+`"}`)
			if code >= 300 && code != http.StatusInsufficientStorage {
				t.Fatalf("PATCH = %d", code)
			}
		}
		checkIPMIWithoutSpace(t, c)
		empty()
		var failed error
		patience.Await(t, "changes are stored again", func() bool { failed = l.Storage(); return failed == nil }, &failed)
		for name, request := range changes {
			if out, ok := c.run(request...); !ok {
				t.Errorf("%s with space fails:\n%s", name, out)
			}
		}
	})
}

// Below the reserve IPMI answers as on a full disk, although there is space still.
func TestIPMIAnswersC4BelowTheReserve(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	dir := t.TempDir()
	var free atomic.Int64
	free.Store(2 << 20)
	watch := space.New(space.Config{Dir: dir, Reserve: 1 << 20, Free: func() (int64, error) { return free.Load(), nil }})
	watch.Look()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: ipmiHost(t), Space: watch})
	h := l.First()
	power(t, h, machine.ResetOn)
	free.Store(1000)
	watch.Look()
	checkIPMIWithoutSpace(t, toolFor(t, l, h))
	free.Store(2 << 20)
	watch.Look()
	for name, request := range changes {
		if out, ok := toolFor(t, l, h).run(request...); !ok {
			t.Errorf("%s with space fails:\n%s", name, out)
		}
	}
}

func ipmiHost(t *testing.T) *rackfile.Lab {
	t.Helper()
	r, err := rackfile.Parse("rack.yaml", []byte("kind: Lab\naccounts: [{name: ADMIN, password: ADMIN}]\nhosts: [{count: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &r
}
