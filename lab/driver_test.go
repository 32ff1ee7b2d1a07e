package lab

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// devices are the boot devices of the drivers, by those of the emulator.
var devices = map[machine.SourceKind]bmc.Device{
	machine.None: bmc.BootNone, machine.Cd: bmc.BootCD, machine.Hdd: bmc.BootDisk, machine.Pxe: bmc.BootPXE,
}

// TestDriversWorkOnTheEmulator runs the drivers' own suite against the emulated
// BMC: two implementations that share no code, over the wire.
func TestDriversWorkOnTheEmulator(t *testing.T) {
	dir := t.TempDir()
	if _, err := images.Ensure(dir); err != nil {
		t.Fatal(err)
	}
	files := httptest.NewServer(&images.Server{Dir: dir})
	t.Cleanup(files.Close)
	bmctest.Run(t, bmctest.Fixture{Open: manager.BMCs().Drivers["redfish"], New: func(t *testing.T) bmctest.BMC {
		l := racktest.Start(t, rack.Config{Events: boots(t)})
		h := l.First()
		user, password := l.Credentials(h)
		address, err := bmc.ParseAddress(control.Hosts(l.Rack)[0].BMCAddress)
		if err != nil {
			t.Fatal(err)
		}
		return bmctest.BMC{
			Config: bmc.Config{
				Address: address, Credentials: bmc.Credentials{Username: user, Password: password},
				RootCAs: l.CAs(), Clock: &bmctest.Clock{},
			},
			Images:   [2]string{files.URL + images.PathPrefix + images.DemoRaw, files.URL + images.PathPrefix + images.DemoQCOW2},
			BadImage: files.URL + images.PathPrefix + "missing.iso",
			Settle:   func() { l.Advance(10 * time.Second); l.Settle() },
			Power:    func() bmc.Power { return bmc.Power(h.Machine().Power) },
			Override: func() bmc.Boot {
				o := h.Machine().Override
				if o.Enabled == machine.Disabled {
					return bmc.Boot{}
				}
				return bmc.Boot{Device: devices[o.Target], Mode: bmc.BootMode(o.Mode), Persistent: o.Enabled == machine.Continuous}
			},
			Media:  func() string { return h.BMC().Slots[0].Image },
			Unplug: l.Stop,
		}
	}})
}

// boots lets machines boot the first source that they try.
func boots(t *testing.T) func(*rack.Host, machine.Event) {
	return func(h *rack.Host, ev machine.Event) {
		if try, ok := ev.(machine.BootAttempted); ok {
			if err := h.Apply(t.Context(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "test"}); err != nil {
				t.Logf("boot: %v", err)
			}
		}
	}
}
