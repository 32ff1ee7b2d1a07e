package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
)

var dialectOf = regexp.MustCompile(`(?m)^dialect: (\S+)`)

// profiles returns the names of the server models. Under the race detector, which
// makes each a long test, it returns the first model of each dialect.
func profiles(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d profiles, %v", len(files), err)
	}
	var names []string
	seen := map[string]bool{}
	for _, file := range files {
		text, err := fs.ReadFile(fixtures.Profiles, file)
		if err != nil {
			t.Fatal(err)
		}
		dialect := dialectOf.FindString(string(text))
		if !raceDetector || !seen[dialect] {
			names = append(names, strings.TrimSuffix(path.Base(file), ".yaml"))
		}
		seen[dialect] = true
	}
	return names
}

// testServer is a server of a model in a lab of its own, whose clock stands still
// while a client works.
type testServer struct {
	*testing.T
	lab    *racktest.Rack
	server *rack.Host
	vendor vendorSettings
	files  string          // URL of a server of images, by HTTP or HTTPS as the BMC needs it
	boots  *racktest.Boots // the sources from which the server has booted
}

func newBench(t *testing.T, profile string) *testServer {
	t.Helper()
	b := &testServer{T: t, boots: racktest.NewBoots(t)}
	r := rackfile.Default(1)
	r.Hosts[0].Profile = profile
	files, secure, roots := racktest.ServeImages(t)
	b.lab = racktest.Start(t, rack.Config{Rack: &r, Events: b.boots.Answer, Media: outbound.Config{RootCAs: roots}})
	b.server = b.lab.First()
	b.vendor = settingsOf(b.dialect())
	b.files = files
	if b.vendor.https {
		b.files = secure
	}
	return b
}

func (b *testServer) dialect() string { return b.server.Dialect().Name }

// until advances the clock until a condition holds.
func (b *testServer) until(what string, is func() bool) error {
	for range 240 {
		b.lab.Settle()
		if is() {
			return nil
		}
		b.lab.Advance(10 * time.Second)
	}
	return fmt.Errorf("never %s: the server is %s", what, b.server.Machine().Phase)
}

// power resets the system through a client and waits for a power state. It waits 30 s
// before: some BMCs refuse a reset right after another.
func (b *testServer) power(c client, reset string, want machine.Power) error {
	b.lab.Advance(30 * time.Second)
	if err := c.reset(reset); err != nil {
		return fmt.Errorf("reset %s: %w", reset, err)
	}
	b.lab.Advance(time.Second)
	return b.until(string(want)+" after "+reset, func() bool { return b.server.Machine().Power == want })
}

// start resets the system through a client and returns what it has booted from.
func (b *testServer) start(c client, reset string) (machine.SourceKind, error) {
	before := len(b.boots.Sources())
	if err := b.power(c, reset, machine.PowerOn); err != nil {
		return "", err
	}
	if err := b.until("booted after "+reset, func() bool { return len(b.boots.Sources()) > before }); err != nil {
		return "", err
	}
	return b.boots.Sources()[before], nil
}

// reset switches the server off and ejects its images, without a client.
func (b *testServer) reset() {
	b.Helper()
	b.lab.Settle()
	ctx := b.Context()
	if b.server.Machine().Power != machine.PowerOff {
		if err := b.server.Power(ctx, string(machine.ForceOff)); err != nil && !errors.Is(err, machine.ErrPower) {
			b.Fatal(err)
		}
	}
	for _, s := range b.slots() {
		if _, err := b.server.ApplyBMC(ctx, bmc.EjectMedia{Slot: s}); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.until("off", func() bool { return b.server.Machine().Power == machine.PowerOff }); err != nil {
		b.Fatal(err)
	}
}

// slots returns the IDs of the virtual media slots that have an image.
func (b *testServer) slots() (ids []string) {
	for _, s := range b.server.BMC().Slots {
		if s.Image != "" {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// supportsMirrors reports whether the server has a controller that creates RAID1
// volumes.
func (b *testServer) supportsMirrors() bool {
	return slices.ContainsFunc(b.server.Machine().Storage.Controllers(), func(c storage.ControllerView) bool {
		return c.RAID != nil && len(c.Drives) > 1 &&
			slices.ContainsFunc(c.RAID.Types, func(t storage.TypeRule) bool { return t.Type == storage.RAID1 })
	})
}
