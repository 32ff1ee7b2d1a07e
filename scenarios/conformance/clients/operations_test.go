package clients

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// client is a program or library that manages servers, used by somebody who knows
// the client and the BMC.
type client interface {
	inventory() (inventory, error)
	reset(kind string) error
	boot(target, mode string) error // once
	insert(image string) error
	eject() error
	settings() (map[string]any, error)
	set(name, value, when string) error
	createMirror(name string) error // mirrors the last two drives of the first controller that makes mirrors
	deleteVolumes() error           // the volumes of that controller
	// raw sends a request for which the client has no command.
	raw(method, uri string, body any) (map[string]any, error)
}

// inventory is what a client reads of a server; nil: it does not read it.
type inventory struct {
	Serials      []string // serial numbers and service tags of the system
	Power        string
	Drives, NICs *int
}

// operations are what a client does with a server. Each begins with the server off.
var operations = []struct {
	name string
	has  func(*testServer) bool // whether the server supports it; nil: every server does
	do   func(*testServer, client) error
}{
	{"inventory", nil, checkInventory},
	{"power", nil, checkPower},
	{"boot", nil, checkBootOverride},
	{"media", nil, checkVirtualMedia},
	{"bios", hasSettings, checkBIOS},
	{"raid", (*testServer).supportsMirrors, checkRAID},
}

// modelsPerClient is how many server models a sample has for each client.
const modelsPerClient = 6

// runOnModels runs a client's operations on a server of each model.
func runOnModels(t *testing.T, name string, does []string, open func(*testServer) client) {
	for _, profile := range sample.Rows(t, "the models for "+name, modelsPerClient, profiles(t)) {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, profile)
			c := open(b)
			for _, j := range operations {
				if slices.Contains(does, j.name) && (j.has == nil || j.has(b)) {
					b.runOperation(name, j.name, c, j.do)
				}
			}
		})
	}
	for _, r := range limitations {
		if !slices.Contains(names, r.client) {
			t.Errorf("there is no client %s", r.client)
		}
	}
}

// runOperation runs an operation as the client does it for any BMC. If the client
// has a limitation with this dialect, it must fail in that way, and succeed with the
// workaround.
func (b *testServer) runOperation(name, job string, c client, do func(*testServer, client) error) {
	b.Helper()
	b.reset()
	err := do(b, c)
	r := limitationOf(name, b.dialect(), job)
	switch {
	case r == nil && err != nil:
		b.Errorf("%s: %v", job, err)
		return
	case r == nil:
		return
	case err == nil:
		b.Errorf("%s: done, although %s", job, r.why)
		return
	case !strings.Contains(err.Error(), r.err):
		b.Errorf("%s: %v, want %q, as %s", job, err, r.err, r.why)
		return
	case r.workaround == nil:
		return
	}
	b.reset()
	if err := do(b, r.workaround(b, c)); err != nil {
		b.Errorf("%s, in the vendor's way: %v", job, err)
	}
}

func checkInventory(b *testServer, c client) error {
	is, err := c.inventory()
	if err != nil {
		return err
	}
	m := b.server.Machine()
	if !slices.Contains(is.Serials, m.Identity.Serial) {
		return fmt.Errorf("serial numbers are %q, want %s", is.Serials, m.Identity.Serial)
	}
	if is.Power != "Off" {
		return fmt.Errorf("the power is %s", is.Power)
	}
	if is.Drives != nil && *is.Drives != len(b.server.Drives()) {
		return fmt.Errorf("%d drives, want %d", *is.Drives, len(b.server.Drives()))
	}
	if is.NICs != nil && *is.NICs != len(m.Identity.NICs) {
		return fmt.Errorf("%d interfaces, want %d", *is.NICs, len(m.Identity.NICs))
	}
	return nil
}

func checkPower(b *testServer, c client) error {
	if _, err := b.start(c, "On"); err != nil {
		return err
	}
	if _, err := b.start(c, b.vendor.restart); err != nil {
		return err
	}
	if err := b.power(c, b.vendor.shutdown, machine.PowerOff); err != nil {
		return err
	}
	if err := b.power(c, "On", machine.PowerOn); err != nil {
		return err
	}
	return b.power(c, "ForceOff", machine.PowerOff)
}

func checkBootOverride(b *testServer, c client) error {
	for _, try := range []struct {
		target string
		want   machine.SourceKind
	}{{"Pxe", machine.Pxe}, {"Hdd", machine.Hdd}} {
		if err := c.boot(try.target, b.vendor.bootMode); err != nil {
			return fmt.Errorf("boot from %s: %w", try.target, err)
		}
		if from, err := b.start(c, "On"); err != nil || from != try.want {
			return fmt.Errorf("boot from %s: it boots from %s: %w", try.target, from, err)
		}
		if err := b.power(c, "ForceOff", machine.PowerOff); err != nil {
			return err
		}
	}
	return nil
}

func checkVirtualMedia(b *testServer, c client) error {
	image := b.files + "/a.iso"
	if err := c.insert(image); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	if err := b.until("inserted", func() bool { return len(b.slots()) == 1 }); err != nil {
		return err
	}
	if err := c.boot(b.vendor.cdTarget, b.vendor.bootMode); err != nil {
		return fmt.Errorf("boot from %s: %w", b.vendor.cdTarget, err)
	}
	if from, err := b.start(c, "On"); err != nil || from != machine.Cd {
		return fmt.Errorf("it boots from %s: %w", from, err)
	}
	if err := c.eject(); err != nil {
		return fmt.Errorf("eject: %w", err)
	}
	return b.until("ejected", func() bool { return len(b.slots()) == 0 })
}

func registry(b *testServer) *firmware.Registry {
	if m := b.server.Machine().Profile.Firmware.Model; m != nil {
		return m.Registry()
	}
	return nil
}

// hasSettings reports whether the BIOS has attributes that Redfish shows.
func hasSettings(b *testServer) bool {
	r := registry(b)
	return r != nil && len(r.Attributes) > 0 && !slices.Contains(withoutBIOSAttributes, b.dialect())
}

// setting returns the value of a BIOS setting of the server.
func (b *testServer) setting(name string) string {
	for _, s := range b.server.Machine().BIOSSettings() {
		if s.Name == name {
			return s.Value.String()
		}
	}
	return ""
}

// choose returns a setting that can be changed, and another value for it.
func (b *testServer) choose(shown map[string]any) (name, value string) {
	for _, a := range registry(b).Attributes {
		is, has := shown[a.Name]
		if !has || a.Type != firmware.Enumeration || a.ReadOnly || a.Immutable || a.Hidden || a.GrayOut {
			continue
		}
		for _, v := range a.Values {
			if v.Name != fmt.Sprint(is) {
				return a.Name, v.Name
			}
		}
	}
	return "", ""
}

func checkBIOS(b *testServer, c client) error {
	shown, err := c.settings()
	if err != nil {
		return err
	}
	name, value := b.choose(shown)
	if name == "" {
		return fmt.Errorf("of %d settings none can be set", len(shown))
	}
	if err := c.set(name, value, b.vendor.applyTime); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if b.setting(name) == value {
		return fmt.Errorf("%s is %s before the server has started", name, value)
	}
	if _, err := b.start(c, "On"); err != nil {
		return err
	}
	if is := b.setting(name); is != value {
		return fmt.Errorf("%s is %s, want %s", name, is, value)
	}
	shown, err = c.settings()
	if err != nil || fmt.Sprint(shown[name]) != value {
		return fmt.Errorf("%s is shown as %v, want %s: %w", name, shown[name], value, err)
	}
	return nil
}

// checkRAID creates and deletes a RAID1 volume. Some controllers do so at the next
// boot.
func checkRAID(b *testServer, c client) error {
	if _, err := b.start(c, "On"); err != nil {
		return err
	}
	b.lab.Advance(5 * time.Minute)
	after := func(what string, is func() bool) error {
		for range 30 {
			b.lab.Settle()
			if is() {
				return nil
			}
			b.lab.Advance(20 * time.Second)
		}
		if _, err := b.start(c, b.vendor.restart); err != nil {
			return err
		}
		return b.until(what, is)
	}
	if err := c.createMirror("system"); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	err := after("made", func() bool {
		all := b.server.Volumes()
		return len(all) == 1 && all[0].Type == storage.RAID1
	})
	if err != nil {
		return err
	}
	if err := c.deleteVolumes(); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return after("deleted", func() bool { return len(b.server.Volumes()) == 0 })
}

// errNone says that the client has no command for an operation.
var errNone = errors.New("the client has no command for it")
