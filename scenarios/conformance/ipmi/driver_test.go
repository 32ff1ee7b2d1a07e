package ipmi

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	driver "github.com/metalab-dev/metalab/controller/bmc/ipmi"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	simbmc "github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// devices are the boot devices of the driver, by what the emulator calls them.
var devices = map[machine.SourceKind]bmc.Device{
	machine.None: bmc.BootNone, machine.Cd: bmc.BootCD, machine.Hdd: bmc.BootDisk, machine.Pxe: bmc.BootPXE,
}

// TestDriverWorksOnTheEmulator runs the driver's own suite against the emulated
// BMC: two implementations that share no code, over the wire.
func TestDriverWorksOnTheEmulator(t *testing.T) {
	bmctest.Run(t, bmctest.Fixture{Open: driver.Open, New: func(t *testing.T) bmctest.BMC {
		l := racktest.Start(t, rack.Config{Events: boots(t)})
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
			Event: func() {
				target := Target{Address: at.String(), Admin: Account{user, password}}
				if _, err := target.session(t).Do(t.Context(), platformEvent); err != nil {
					t.Fatal(err)
				}
			},
			Unplug: l.Stop,
			SetPassword: func(password string) {
				a, _ := h.Admin()
				change := simbmc.ChangeAccount{ID: a.ID, AccountChange: simbmc.AccountChange{Password: &password}}
				if _, err := h.ApplyBMC(t.Context(), change); err != nil {
					t.Fatal(err)
				}
			},
		}
	}})
}

// platformEvent is software that says that a temperature is too high (§29.3):
// upper critical, going high.
var platformEvent = Request{NetFn: SensorEvent, Command: 0x02, Data: []byte{0x04, 0x01, 0x30, 0x01, 0x09, 0xFF, 0xFF}, Name: "Platform Event"}

// Whoever looks, over IPMI or over Redfish, sees the same server.
func TestDriversAgree(t *testing.T) {
	l := racktest.Start(t, rack.Config{Events: boots(t)})
	h := l.First()
	user, password := l.Credentials(h)
	at, _ := h.IPMI()
	open := func(address string, open bmc.Open) bmc.Client {
		a, err := bmc.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := open(t.Context(), bmc.Config{
			Address: a, Credentials: bmc.Credentials{Username: user, Password: password}, RootCAs: l.CAs(), Clock: &bmctest.Clock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	overIPMI := open("ipmi://"+at.String(), driver.Open)
	overRedfish := open("redfish://"+h.Address().String(), redfish.Open)
	agree := func(when string) {
		t.Helper()
		a, err := overIPMI.System(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := overRedfish.System(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.ID, b.ID = "", "" // each protocol's own
		a.BMCVersion, b.BMCVersion = "", ""
		if a.Boot.Device == bmc.BootNone {
			b.Boot.Mode = "" // IPMI has none without a device
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s (-IPMI +Redfish):\n%s", when, diff)
		}
		x, err := overIPMI.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		y, err := overRedfish.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		when += ": the log"
		if len(x) != len(y) {
			t.Fatalf("%s: %d entries over IPMI, %d over Redfish:\n%+v\n%+v", when, len(x), len(y), x, y)
		}
		for i := range x {
			if !x[i].Time.Equal(y[i].Time) {
				t.Errorf("%s: %+v over IPMI, %+v over Redfish", when, x[i], y[i])
			}
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"as it comes", func() error { return nil }},
		{"switched on over IPMI", func() error { return overIPMI.SetPower(t.Context(), bmc.PowerOn) }},
		{"its light switched on over Redfish", func() error { return overRedfish.Identify(t.Context(), true) }},
		{"its light switched off over IPMI", func() error { return overIPMI.Identify(t.Context(), false) }},
		{"booting persistently from its disk, set over IPMI", func() error {
			return overIPMI.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootDisk, Mode: bmc.UEFI, Persistent: true})
		}},
		{"booting once from the network, set over Redfish", func() error {
			return overRedfish.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE, Mode: bmc.UEFI})
		}},
		{"with an event", func() error {
			_, err := Target{Address: at.String(), Admin: Account{user, password}}.session(t).Do(t.Context(), platformEvent)
			return err
		}},
		{"its log cleared over IPMI", func() error { return overIPMI.ClearLog(t.Context()) }},
		{"its log cleared over Redfish", func() error { return overRedfish.ClearLog(t.Context()) }},
		{"switched off over Redfish", func() error { return overRedfish.SetPower(t.Context(), bmc.PowerOff) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if step.what != "booting once from the network, set over Redfish" {
			l.Advance(5 * time.Minute)
		}
		agree(step.what)
	}
}

// The numbers of the sensors are the same, as far as eight bits carry them.
func TestSensorsAgree(t *testing.T) {
	l := racktest.Start(t, rack.Config{Events: boots(t)})
	h := l.First()
	user, password := l.Credentials(h)
	at, _ := h.IPMI()
	numbers := map[string]map[string]bmc.Sensor{}
	if err := h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}); err != nil {
		t.Fatal(err)
	}
	l.Advance(10 * time.Minute)
	for address, open := range map[string]bmc.Open{"ipmi://" + at.String(): driver.Open, "redfish://" + h.Address().String(): redfish.Open} {
		a, err := bmc.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := open(t.Context(), bmc.Config{
			Address: a, Credentials: bmc.Credentials{Username: user, Password: password}, RootCAs: l.CAs(), Clock: &bmctest.Clock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		all, err := c.Sensors(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		numbers[a.Driver] = map[string]bmc.Sensor{}
		for _, s := range all {
			numbers[a.Driver][s.Name] = s
		}
	}
	same := 0
	for name, a := range numbers["ipmi"] {
		b, ok := numbers["redfish"][name]
		if !ok || a.Unit != b.Unit {
			continue // another name, or Redfish tells of a fan in percent
		}
		same++
		if a.Enabled != b.Enabled || a.Health != b.Health || math.Abs(a.Reading-b.Reading) > max(1, b.Reading/50) {
			t.Errorf("%s is %+v over IPMI, %+v over Redfish", name, a, b)
		}
	}
	if same < 10 {
		t.Errorf("%d sensors have the same name and unit, of %d over IPMI and %d over Redfish", same, len(numbers["ipmi"]), len(numbers["redfish"]))
	}
}

// The level of an address is the level of the session.
func TestDriverLevels(t *testing.T) {
	_, target := emulated(t, "")
	for _, tt := range []struct {
		who   Account
		level string
		open  error
		power error
	}{
		{target.Operator, "OPERATOR", nil, nil},
		{target.Operator, "ADMINISTRATOR", bmc.ErrUnauthorized, nil},
		{target.User, "USER", bmc.ErrPrivilege, nil},
		{target.User, "OPERATOR", bmc.ErrUnauthorized, nil},
		{target.Admin, "USER", bmc.ErrPrivilege, nil},
		{target.Admin, "ADMINISTRATOR", nil, nil},
	} {
		a, err := bmc.ParseAddress("ipmi://" + target.Address + "?privilegelevel=" + tt.level)
		if err != nil {
			t.Fatal(err)
		}
		c, err := driver.Open(t.Context(), bmc.Config{
			Address: a, Credentials: bmc.Credentials{Username: tt.who.Name, Password: tt.who.Password}, Clock: &bmctest.Clock{},
		})
		if !errors.Is(err, tt.open) {
			t.Errorf("Open as %s at %s: error = %v, want %v", tt.who.Name, tt.level, err, tt.open)
		}
		if err != nil {
			continue
		}
		if err := c.SetPower(t.Context(), bmc.PowerReset); !errors.Is(err, tt.power) {
			t.Errorf("SetPower(reset) as %s at %s: error = %v, want %v", tt.who.Name, tt.level, err, tt.power)
		}
		c.Close()
	}
}

// An operator may set boot flags, but not the bit that makes them persistent (IPMI
// v2.0 rev 1.1, table 28-14): the driver asks for the next boot only, and says so.
func TestDriverAsOperatorSetsBootFlagsForOneBoot(t *testing.T) {
	_, target := emulated(t, "")
	for _, tt := range []struct {
		who   Account
		level string
		once  bool
	}{
		{target.Operator, "OPERATOR", true},
		{target.Admin, "OPERATOR", true},
		{target.Admin, "ADMINISTRATOR", false},
	} {
		a, err := bmc.ParseAddress("ipmi://" + target.Address + "?privilegelevel=" + tt.level)
		if err != nil {
			t.Fatal(err)
		}
		c, err := driver.Open(t.Context(), bmc.Config{
			Address: a, Credentials: bmc.Credentials{Username: tt.who.Name, Password: tt.who.Password}, Clock: &bmctest.Clock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootDisk, Mode: bmc.UEFI, Persistent: true}); err != nil {
			t.Errorf("SetBoot(disk, persistent) as %s at %s: error = %v, want none", tt.who.Name, tt.level, err)
		}
		got, err := c.System(t.Context())
		want := bmc.Boot{Device: bmc.BootDisk, Mode: bmc.UEFI, Persistent: !tt.once}
		if err != nil || got.Boot != want || got.BootOnce != tt.once {
			t.Errorf("System() as %s at %s: boot %+v, once %t, error %v, want %+v, %t", tt.who.Name, tt.level, got.Boot, got.BootOnce, err, want, tt.once)
		}
		c.Close()
	}
}

// boots lets machines boot whatever they try first.
func boots(t *testing.T) func(*rack.Host, machine.Event) {
	return func(h *rack.Host, ev machine.Event) {
		if try, ok := ev.(machine.BootAttempted); ok {
			if err := h.Apply(t.Context(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "test"}); err != nil {
				t.Logf("boot: %v", err)
			}
		}
	}
}
