package ipmi

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	driver "github.com/metalab-dev/metalab/controller/bmc/ipmi"
	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// devices are the boot devices of the driver, by what the emulator calls them.
var devices = map[machine.SourceKind]bmc.Device{
	machine.None: bmc.BootNone, machine.Cd: bmc.BootCD, machine.Hdd: bmc.BootDisk, machine.Pxe: bmc.BootPXE,
}

// TestDriverWorksOnTheEmulator runs the driver's own suite against the emulated
// BMC: two implementations that share no code, over the wire.
func TestDriverWorksOnTheEmulator(t *testing.T) {
	bmctest.Run(t, bmctest.Fixture{Open: driver.Open, New: func(t *testing.T) bmctest.BMC {
		l := labtest.Start(t, lab.Config{Events: boots(t)})
		h := l.First()
		at, _ := h.IPMI()
		user, password := l.Credentials(h)
		address, err := bmc.ParseAddress("ipmi://" + at.String())
		if err != nil {
			t.Fatal(err)
		}
		return bmctest.BMC{
			Config: bmc.Config{
				Address: address, Credentials: bmc.Credentials{Username: user, Password: password},
				Clock: &bmctest.Clock{}, Timeout: 4 * time.Second,
			},
			Settle: func() { l.Advance(10 * time.Second); l.Settle() },
			Power:  func() bmc.Power { return bmc.Power(h.Machine().Power) },
			Override: func() bmc.Boot {
				o := h.Machine().Override
				if o.Enabled == machine.Disabled {
					return bmc.Boot{}
				}
				return bmc.Boot{Device: devices[o.Target], Persistent: o.Enabled == machine.Continuous}
			},
			Unplug: l.Stop,
		}
	}})
}

// boots lets machines boot whatever they try first.
func boots(t *testing.T) func(*lab.Host, machine.Event) {
	return func(h *lab.Host, ev machine.Event) {
		if try, ok := ev.(machine.BootTried); ok {
			if err := h.Apply(t.Context(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "test"}); err != nil {
				t.Logf("boot: %v", err)
			}
		}
	}
}
