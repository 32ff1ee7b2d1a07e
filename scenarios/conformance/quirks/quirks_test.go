package quirks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
	simbmc "github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// expectedErrors are parts of the errors for quirks without a workaround, by quirk
// and operation.
var expectedErrors = map[string]map[string]string{
	"license-denied": {
		"boot and media": "the BMC cannot do that: POST",
		"settings":       "the BMC cannot do that: PATCH",
	},
	"vmedia-own-way": {"boot and media": "405 Method Not Allowed"},
	"boot-silently-ignored": {
		"boot":           "the BMC accepted it and did not set it",
		"boot and media": "the BMC accepted it and did not set it",
	},
	// The BIOS does not have the setting.
	"bios-registry-lag": {"settings": "BootRetry is Enabled (This resource has no property BootRetry"},
	// Nothing answers by IPMI; a driver with Redfish enables it there.
	"ipmi-disabled-by-default": {"register": "the BMC does not answer"},
}

// setups are what must happen before some quirks take effect.
var setups = map[string]func(*testServer) error{
	"bmc-not-ready": func(b *testServer) error {
		_, err := b.server.ApplyBMC(b.Context(), simbmc.Restart{Kind: simbmc.ForceRestart})
		b.lab.Advance(70 * time.Second)
		return err
	},
	"auth-delay": func(b *testServer) error {
		b.failLogins(2, "127.0.0.9")
		b.lab.Advance(11 * time.Second)
		return nil
	},
	"ip-block": func(b *testServer) error {
		b.failLogins(3, "127.0.0.9") // which is not the driver's address
		return nil
	},
}

// variants are quirks with parameters that differ from the defaults.
var variants = []string{
	"license-two-documents of=Manager,ComputerSystem,VirtualMedia,Bios,Drive,Storage,EventDestinationCollection,UpdateService",
	"vmedia-missing-params account=yes error=text",
	"bmc-not-ready how=400",
	"bmc-not-ready members=empty",
	"extendedinfo-object as=text",
}

// operations are what a driver does for a host, in this order.
var operations = []struct {
	name string
	web  bool // only Redfish has it
	do   func(*testServer) error
}{
	{"register", false, checkSystem},
	{"watch", false, checkSensors},
	{"inventory", true, checkInventory},
	{"power", false, checkPower},
	{"boot", false, checkBootOverride},
	{"boot and media", true, checkVirtualMedia},
	{"settings", true, checkBIOS},
	{"volumes", true, checkVolumes},
	{"subscriptions", true, checkSubscriptions},
}

// TestDriversWorkWithEveryQuirk runs all operations on a BMC with each quirk, and on
// one without quirks. A row takes less than 0.1 s of processor time: all run always.
func TestDriversWorkWithEveryQuirk(t *testing.T) {
	all := []string{""}
	for _, q := range quirk.All {
		all = append(all, q.ID)
	}
	all = append(all, variants...)
	for id := range expectedErrors {
		if !slices.Contains(all, id) {
			t.Errorf("there is no quirk %s", id)
		}
	}
	for _, id := range all {
		name := id
		if name == "" {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "raid", id)
			named, _, _ := strings.Cut(id, " ")
			if do := setups[named]; do != nil {
				if err := do(b); err != nil {
					t.Fatal(err)
				}
			}
			b.runOperations(expectedErrors[named])
		})
	}
}

// runOperations runs all operations. Those in refused must fail with these texts.
func (b *testServer) runOperations(refused map[string]string) {
	b.Helper()
	for _, w := range operations {
		if w.web && b.config.Address.Driver != "redfish" {
			continue
		}
		err := w.do(b)
		want := refused[w.name]
		switch {
		case want == "" && err != nil:
			b.Errorf("%s: %v", w.name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			b.Errorf("%s: %v, want %s", w.name, err, want)
		}
		if want != "" && w.name == "register" {
			return
		}
	}
}

func checkSystem(b *testServer) error {
	return b.retry(func(c bmc.Client) error {
		s, err := c.System(b.Context())
		if err == nil && s.Serial != b.server.Machine().Identity.Serial {
			err = fmt.Errorf("it is %+v", s)
		}
		return err
	})
}

func checkSensors(b *testServer) error {
	return b.retry(func(c bmc.Client) error {
		if _, err := c.Log(b.Context()); err != nil {
			return err
		}
		sensors, err := c.Sensors(b.Context())
		if err == nil && len(sensors) == 0 {
			err = errors.New("no sensors")
		}
		return err
	})
}

func checkInventory(b *testServer) error {
	return b.retry(func(c bmc.Client) error {
		s, err := bmc.StorerOf(c).Storage(b.Context())
		if err != nil {
			return err
		}
		drives := 0
		for _, ctl := range s.Controllers {
			drives += len(ctl.Drives)
			for _, d := range ctl.Drives {
				if d.Bytes == 0 || d.Protocol == "" || len(d.Names) == 0 {
					return fmt.Errorf("a drive is %+v", d)
				}
			}
		}
		if drives != len(b.server.Drives()) {
			return fmt.Errorf("%d drives of %d: %+v", drives, len(b.server.Drives()), s)
		}
		if _, err := c.(bmc.Setup).BIOS(b.Context()); err != nil {
			return err
		}
		parts, err := c.(bmc.Updater).Components(b.Context())
		if err == nil && len(parts) == 0 {
			err = errors.New("no components")
		}
		return err
	})
}

// checkPower ends with the power off.
func checkPower(b *testServer) error {
	if _, err := b.start(bmc.PowerOn); err != nil {
		return fmt.Errorf("on: %w", err)
	}
	if _, err := b.start(bmc.PowerReset); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if err := b.power(bmc.PowerOff, bmc.Off); err != nil {
		return fmt.Errorf("off: %w", err)
	}
	if _, err := b.start(bmc.PowerOn); err != nil { // at once
		return fmt.Errorf("on again: %w", err)
	}
	return b.power(bmc.PowerOff, bmc.Off)
}

func (b *testServer) boot(x bmc.Boot) error {
	return b.retry(func(c bmc.Client) error { return c.SetBoot(b.Context(), x) })
}

// checkBootOverride begins and ends with the power off.
func checkBootOverride(b *testServer) error {
	// The second one is only partly another.
	for _, d := range []bmc.Device{bmc.BootDisk, bmc.BootPXE} {
		if err := b.boot(bmc.Boot{Device: d, Mode: bmc.UEFI}); err != nil {
			return err
		}
	}
	if from, err := b.start(bmc.PowerOn); err != nil || from != machine.Pxe {
		return fmt.Errorf("once: it boots from %s: %w", from, err)
	}
	// While it is in POST, too.
	if err := b.retry(func(c bmc.Client) error { return c.SetPower(b.Context(), bmc.PowerReset) }); err != nil {
		return err
	}
	b.lab.Advance(15 * time.Second)
	if err := b.boot(bmc.Boot{Device: bmc.BootDisk, Mode: bmc.UEFI, Persistent: true}); err != nil {
		return fmt.Errorf("for good: %w", err)
	}
	for range 2 {
		if err := b.power(bmc.PowerOff, bmc.Off); err != nil {
			return err
		}
		if from, err := b.start(bmc.PowerOn); err != nil || from != machine.Hdd {
			return fmt.Errorf("for good: it boots from %s: %w", from, err)
		}
	}
	if err := b.boot(bmc.Boot{Mode: bmc.UEFI}); err != nil {
		return fmt.Errorf("as it likes: %w", err)
	}
	return b.power(bmc.PowerOff, bmc.Off)
}

// checkVirtualMedia begins and ends with the power off.
func checkVirtualMedia(b *testServer) error {
	insert := func(name string) error {
		urls := []string{b.httpFiles + name, b.httpsFiles + name} // some fetch by HTTPS alone
		err := b.retry(func(c bmc.Client) error { return c.InsertMedia(b.Context(), urls...) })
		if err != nil {
			return err
		}
		return b.retry(func(c bmc.Client) error {
			m, err := c.Media(b.Context())
			if err == nil && (!slices.Contains(urls, m.Image) || !m.Inserted) {
				err = fmt.Errorf("the drive shows %+v", m)
			}
			return err
		})
	}
	if err := insert("/a.iso"); err != nil {
		return err
	}
	if err := b.boot(bmc.Boot{Device: bmc.BootCD, Mode: bmc.UEFI}); err != nil {
		return err
	}
	if from, err := b.start(bmc.PowerOn); err != nil || from != machine.Cd {
		return fmt.Errorf("it boots from %s: %w", from, err)
	}
	if err := insert("/b.iso"); err != nil { // in the place of the other
		return fmt.Errorf("another image: %w", err)
	}
	if err := b.retry(func(c bmc.Client) error { return c.EjectMedia(b.Context()) }); err != nil {
		return fmt.Errorf("eject: %w", err)
	}
	if err := insert("/a.iso"); err != nil { // at once
		return fmt.Errorf("once more: %w", err)
	}
	if err := b.retry(func(c bmc.Client) error { return c.EjectMedia(b.Context()) }); err != nil {
		return fmt.Errorf("eject: %w", err)
	}
	return b.power(bmc.PowerOff, bmc.Off)
}

// choose returns two settings that can be changed, each with another value.
func choose(b bmc.BIOS) (first, second bmc.Settings) {
	for _, name := range slices.Sorted(maps.Keys(b.Settings)) {
		a := b.Registry.Attribute(name)
		if a == nil || a.ReadOnly || len(a.Values) < 2 {
			continue
		}
		other := slices.IndexFunc(a.Values, func(v string) bool { return v != b.Settings[name] })
		s := bmc.Settings{name: a.Values[other]}
		if first != nil {
			return first, s
		}
		first = s
	}
	return first, nil
}

// checkBIOS begins and ends with the power off.
func checkBIOS(b *testServer) error {
	var bios bmc.BIOS
	if err := b.retry(func(c bmc.Client) (err error) { bios, err = c.(bmc.Setup).BIOS(b.Context()); return err }); err != nil {
		return err
	}
	first, second := choose(bios)
	if second == nil {
		return fmt.Errorf("it has nothing to set: %d settings", len(bios.Settings))
	}
	want := maps.Clone(first)
	maps.Copy(want, second)
	set := func(s bmc.Settings) error {
		return b.retry(func(c bmc.Client) error { return c.(bmc.Setup).SetBIOS(b.Context(), s) })
	}
	if err := set(first); err != nil {
		return err
	}
	err := set(second)
	if errors.Is(err, bmc.ErrPending) { // the first ones have to be applied before
		if _, err := b.start(bmc.PowerOn); err != nil {
			return err
		}
		err = set(second)
	}
	if err != nil {
		return err
	}
	if _, err := b.start(bmc.PowerReset); err != nil {
		return err
	}
	if err := b.power(bmc.PowerOff, bmc.Off); err != nil {
		return err
	}
	return b.retry(func(c bmc.Client) error {
		is, err := c.(bmc.Setup).BIOS(b.Context())
		for name, v := range want {
			if err == nil && is.Settings[name] != v {
				err = fmt.Errorf("%s is %v (%s)", name, is.Settings[name], is.Failed[name])
			}
		}
		return err
	})
}

// checkVolumes creates a volume and deletes it.
func checkVolumes(b *testServer) error {
	if _, err := b.start(bmc.PowerOn); err != nil {
		return err
	}
	var of bmc.Storage
	read := func(c bmc.Client) (err error) { of, err = bmc.StorerOf(c).Storage(b.Context()); return err }
	if err := b.retry(read); err != nil {
		return err
	}
	work := func(do func(bmc.Storer) (bmc.Operation, error)) error {
		var o bmc.Operation
		err := b.retry(func(c bmc.Client) (err error) { o, err = do(bmc.StorerOf(c)); return err })
		for range 200 {
			if err != nil || o.State == bmc.OperationDone {
				return err
			}
			if o.State == bmc.OperationPending {
				if _, err := b.start(bmc.PowerReset); err != nil {
					return err
				}
			}
			b.lab.Advance(time.Minute)
			err = b.retry(func(c bmc.Client) (err error) { o, err = bmc.StorerOf(c).PollOperation(b.Context(), o.ID); return err })
		}
		return fmt.Errorf("it is still %+v", o)
	}
	i := slices.IndexFunc(of.Controllers, func(c bmc.Controller) bool { return len(c.Drives) > 1 && slices.Contains(c.Levels, bmc.Level1) })
	if i < 0 {
		return fmt.Errorf("no controller makes mirrors: %w", bmc.ErrUnsupported)
	}
	ctl := of.Controllers[i]
	pair := ctl.Drives[len(ctl.Drives)-2:]
	err := work(func(s bmc.Storer) (bmc.Operation, error) {
		return s.CreateVolume(b.Context(), bmc.NewVolume{
			Controller: ctl.ID, Name: "system", Level: bmc.Level1, Drives: []string{pair[0].ID, pair[1].ID},
		})
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := b.retry(read); err != nil {
		return err
	}
	made := b.server.Volumes()
	shown := of.Controllers[i].Volumes
	v := slices.IndexFunc(shown, func(v bmc.Volume) bool { return v.Level == bmc.Level1 })
	if v < 0 || len(made) != 1 || made[0].Type != storage.RAID1 {
		return fmt.Errorf("it shows %+v, and has %+v", shown, made)
	}
	id := shown[v].ID
	err = work(func(s bmc.Storer) (bmc.Operation, error) { return s.DeleteVolume(b.Context(), id) })
	if err == nil && len(b.server.Volumes()) > 0 {
		err = errors.New("it is still there")
	}
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return b.power(bmc.PowerOff, bmc.Off)
}

func checkSubscriptions(b *testServer) error {
	list := func() (all []bmc.Subscription, err error) {
		err = b.retry(func(c bmc.Client) (err error) { all, err = c.(bmc.Subscriber).Subscriptions(b.Context()); return err })
		return all, err
	}
	if _, err := list(); err != nil {
		return err
	}
	var id string
	err := b.retry(func(c bmc.Client) (err error) {
		id, err = c.(bmc.Subscriber).Subscribe(b.Context(), bmc.Subscription{Destination: b.httpFiles + "/events", Context: "test"})
		return err
	})
	if err != nil {
		return err
	}
	if err := b.retry(func(c bmc.Client) error { return c.(bmc.Subscriber).Unsubscribe(b.Context(), id) }); err != nil {
		return err
	}
	all, err := list()
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("there are still %+v", all)
	}
	return err
}
