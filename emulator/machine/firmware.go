package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// Firmware is a command to the machine's firmware.
type Firmware struct{ firmware.Command }

func (c Firmware) apply(m *Machine, now time.Time) ([]Event, error) {
	if s, ok := c.Command.(firmware.Stage); ok {
		s.Not = slices.Concat(s.Not, m.absentComponents())
		c.Command = s
	}
	evs, err := m.fw.Apply(now, c.Command)
	return m.firmwareEvents(now, evs), err
}

// FirmwareModel is the firmware section of a profile. Versions of most
// components are in the sections of their parts.
type FirmwareModel struct {
	Registry   string                     `json:"registry"` // BIOS attribute registry; "": none
	Lowest     map[string]string          `json:"lowest"`   // lowest version that a component accepts, by its ID
	Backup     map[string]string          `json:"backup"`   // version in a component's second slot, by its ID
	Components []FirmwarePart             `json:"components"`
	Timings    map[string]FirmwareTimings `json:"timings"` // by kind, where they differ from the defaults
	Model      *firmware.Model            `json:"-"`       // built by Equip; shared by all machines of the profile
}

// FirmwarePart is a firmware component that no other section of a profile
// describes.
type FirmwarePart struct {
	ID       string        `json:"id"` // ID of the SoftwareInventory resource
	Kind     firmware.Kind `json:"kind"`
	Name     string        `json:"name"`     // for display
	Vendor   string        `json:"vendor"`   // manufacturer
	Model    string        `json:"model"`    // model of the device
	Version  string        `json:"version"`  // installed version
	Released string        `json:"released"` // release date of that version
	Of       string        `json:"of"`       // ID of the part that it runs on: a NIC, a power supply
	Fixed    bool          `json:"fixed"`    // clients cannot update the component
}

// FirmwareTimings are the durations of the steps of an update.
type FirmwareTimings struct {
	Transfer Duration `json:"transfer"` // transfer of the image to the component
	Verify   Duration `json:"verify"`   // verification of the image
	Apply    Duration `json:"apply"`    // writing of the image
	Restart  Duration `json:"restart"`  // restart of the component
}

// kindDefaults holds the part, activation method and timings of each kind of
// component.
var kindDefaults = map[firmware.Kind]struct {
	part       event.Part
	activation firmware.Activation
	hostPower  bool
	timings    firmware.Timings
}{
	firmware.KindBIOS:    {event.System, firmware.ByHost, false, updateSeconds(10, 15, 180, 60)},
	firmware.KindBMC:     {event.BMC, firmware.ByBMC, false, updateSeconds(10, 20, 150, 90)},
	firmware.KindNIC:     {event.NIC, firmware.ByHost, true, updateSeconds(5, 5, 45, 10)},
	firmware.KindStorage: {event.Controller, firmware.ByHost, true, updateSeconds(5, 5, 60, 10)},
	firmware.KindDrive:   {event.Drive, firmware.BySelf, true, updateSeconds(3, 2, 20, 5)},
	firmware.KindSupply:  {event.Supply, firmware.BySelf, false, updateSeconds(5, 5, 120, 10)},
	firmware.KindCPLD:    {event.System, firmware.ByHost, false, updateSeconds(2, 3, 60, 10)},
	firmware.KindTPM:     {event.System, firmware.ByHost, false, updateSeconds(2, 2, 10, 5)},
}

func updateSeconds(transfer, verify, apply, restart int) firmware.Timings {
	s := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return firmware.Timings{Transfer: s(transfer), Verify: s(verify), Apply: s(apply), Restart: s(restart)}
}

// noFirmware is the firmware model of a profile without Equip.
var noFirmware = new(firmware.Model)

// Equip builds the profile's firmware model. read returns the YAML of an
// attribute registry by name.
func (p *Profile) Equip(read func(name string) ([]byte, error)) error {
	r, err := p.registry(read)
	if err != nil {
		return err
	}
	p.equip(func() *firmware.Registry { return r })
	return nil
}

// EquipLater is Equip for a registry that is known to be valid: it is read at
// the first use, since reading it takes longer than everything else.
func (p *Profile) EquipLater(read func(name string) ([]byte, error)) {
	p.equip(sync.OnceValue(func() *firmware.Registry {
		r, err := p.registry(read)
		if err != nil {
			panic(err)
		}
		return r
	}))
}

func (p *Profile) equip(read func() *firmware.Registry) {
	p.Firmware.Model = &firmware.Model{Components: p.components()}
	if p.Firmware.Registry != "" {
		p.Firmware.Model.Read = read
	}
}

// registry reads the attribute registry, if there is one.
func (p *Profile) registry(read func(name string) ([]byte, error)) (*firmware.Registry, error) {
	name := p.Firmware.Registry
	if name == "" {
		return nil, nil
	}
	raw, err := read(name)
	if err != nil {
		return nil, yamlfile.Errorf("firmware.registry", "%q: %v", name, err)
	}
	file := "registries/" + name + ".yaml"
	r, err := firmware.ParseRegistry(file, raw, map[string]int{
		"nic": len(p.NICs), "controller": len(p.Storage), "socket": p.Processors.Sockets, "module": p.Memory.Modules,
	})
	if err != nil {
		return nil, err
	}
	for _, a := range r.Attributes {
		if a.Fact != "" && attributeFacts[a.Fact] == nil {
			return nil, fmt.Errorf("%s: attribute %s: fact %q: must be one of %v", file, a.Name, a.Fact, sorted(attributeFacts))
		}
	}
	return r, nil
}

// components returns the firmware components of the model.
func (p *Profile) components() []firmware.Component {
	var out []firmware.Component
	add := func(c firmware.Component, of event.Subject) {
		u := kindDefaults[c.Kind]
		c.Subject, c.Activation, c.HostPower, c.Timings = of, u.activation, u.hostPower, u.timings
		if t, ok := p.Firmware.Timings[string(c.Kind)]; ok {
			c.Timings = firmware.Timings{Transfer: t.Transfer.Duration, Verify: t.Verify.Duration, Apply: t.Apply.Duration, Restart: t.Restart.Duration}
		}
		c.Lowest, c.Backup = p.Firmware.Lowest[c.ID], p.Firmware.Backup[c.ID]
		out = append(out, c)
	}
	released := ""
	if d, err := time.Parse("01/02/2006", p.BIOS.Date); err == nil {
		released = d.Format(time.DateOnly)
	}
	add(firmware.Component{
		ID: "BIOS", Kind: firmware.KindBIOS, Name: "System BIOS", Vendor: p.BIOS.Vendor, Model: p.Model, Version: p.BIOS.Version, Released: released,
	}, event.Subject{Part: event.System})
	add(firmware.Component{
		ID: "BMC", Kind: firmware.KindBMC, Name: "Management Controller", Vendor: p.Manufacturer, Model: p.Model, Version: p.BMCFirmware,
	}, event.Subject{Part: event.BMC})
	disks := 0
	for _, s := range p.Storage {
		add(firmware.Component{
			ID: "Storage." + s.ID, Kind: firmware.KindStorage, Name: s.Name, Vendor: s.Vendor, Model: s.Product, Version: s.Firmware,
		}, event.Subject{Part: event.Controller, ID: s.ID})
		for _, b := range s.Bays {
			id := "Disk." + strconv.Itoa(disks)
			disks++
			add(firmware.Component{
				ID: id, Kind: firmware.KindDrive, Name: b.Product, Vendor: b.Vendor, Model: b.Product, Version: b.Revision,
			}, event.Subject{Part: event.Drive, ID: id, In: s.ID})
		}
	}
	for _, c := range p.Firmware.Components {
		add(firmware.Component{
			ID: c.ID, Kind: c.Kind, Name: c.Name, Vendor: c.Vendor, Model: c.Model, Version: c.Version, Released: c.Released, Fixed: c.Fixed,
		}, event.Subject{Part: kindDefaults[c.Kind].part, ID: c.Of})
	}
	slices.SortStableFunc(out, func(a, b firmware.Component) int {
		return cmp.Compare(slices.Index(firmware.Kinds, a.Kind), slices.Index(firmware.Kinds, b.Kind))
	})
	return out
}

// checkFirmware reports errors in the profile's firmware section.
func (p *Profile) checkFirmware(need func(ok bool, field, must string, args ...any)) {
	seen := map[string]bool{}
	for _, c := range (&Profile{BIOS: p.BIOS, Storage: p.Storage}).components() {
		seen[c.ID] = true
	}
	for i, c := range p.Firmware.Components {
		need(c.ID != "" && !seen[c.ID], "firmware.components[%d].id", "be there, and differ from the others", i)
		seen[c.ID] = true
		need(slices.Contains(firmware.Kinds, c.Kind), "firmware.components[%d].kind", fmt.Sprintf("be one of %v", firmware.Kinds), i)
		need(c.Vendor != "" && c.Model != "" && c.Version != "", "firmware.components[%d]", "have vendor, model and version", i)
		_, err := time.Parse(time.DateOnly, c.Released)
		need(c.Released == "" || err == nil, "firmware.components[%d].released", "be a date like 2026-03-14", i)
	}
	for _, of := range []struct {
		field string
		ids   map[string]string
	}{{"lowest", p.Firmware.Lowest}, {"backup", p.Firmware.Backup}} {
		for _, id := range sorted(of.ids) {
			need(seen[id], "firmware."+of.field+"."+id, "be of a component")
		}
	}
	for _, k := range sorted(p.Firmware.Timings) {
		need(slices.Contains(firmware.Kinds, firmware.Kind(k)), "firmware.timings."+k, fmt.Sprintf("be one of %v", firmware.Kinds))
	}
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// attributeFacts are the values that BIOS attributes can show of a machine.
var attributeFacts = map[string]func(v *View) firmware.Value{
	"serial":         func(v *View) firmware.Value { return firmware.Text(v.Identity.Serial) },
	"uuid":           func(v *View) firmware.Value { return firmware.Text(v.Identity.UUID) },
	"model":          func(v *View) firmware.Value { return firmware.Text(v.Identity.Model) },
	"manufacturer":   func(v *View) firmware.Value { return firmware.Text(v.Identity.Manufacturer) },
	"biosVersion":    func(v *View) firmware.Value { return firmware.Text(v.BIOSVersion()) },
	"processorModel": func(v *View) firmware.Value { return firmware.Text(v.Profile.Processors.Model) },
	"processors":     func(v *View) firmware.Value { return firmware.Integer(int64(v.Profile.Processors.Sockets)) },
	"memoryMiB":      func(v *View) firmware.Value { return firmware.Integer(int64(v.Profile.MemoryMiB)) },
}

// BIOSSettings returns the values of all BIOS attributes.
func (v *View) BIOSSettings() []firmware.Setting {
	return v.Firmware.Settings(func(fact string) (firmware.Value, bool) {
		of := attributeFacts[fact]
		if of == nil {
			return firmware.Value{}, false
		}
		return of(v), true
	})
}

// BIOSVersion returns the running BIOS version; "" when no slot holds a usable
// one.
func (v *View) BIOSVersion() string { return v.version("BIOS", v.Profile.BIOS.Version) }

// BMCVersion returns the version of the BMC firmware.
func (v *View) BMCVersion() string { return v.version("BMC", v.Profile.BMCFirmware) }

func (v *View) version(id, came string) string {
	if _, ok := v.Firmware.Component(id); !ok {
		return came
	}
	return v.Firmware.Version(id)
}

// Processors returns the processors as the BIOS settings present them to an
// operating system.
func (v *View) Processors() Processors {
	p := v.Profile.Processors
	cores := p.Cores
	if as, ok := v.Firmware.Acts(firmware.Cores, ""); ok {
		if n, err := strconv.Atoi(as); err == nil && n > 0 && n < p.Cores {
			p.Threads, p.Cores = p.Threads/cores*n, n
		}
	}
	if _, ok := v.Firmware.Acts(firmware.OneThread, ""); ok {
		p.Threads = p.Cores
	}
	if _, ok := v.Firmware.Acts(firmware.NoVirtual, ""); ok {
		p.Flags = slices.DeleteFunc(slices.Clone(p.Flags), func(f string) bool { return f == "vmx" || f == "svm" })
	}
	return p
}

// newFirmware creates or restores the machine's firmware.
func (m *Machine) newFirmware() error {
	model := m.profile.Firmware.Model
	if model == nil {
		model = noFirmware
	}
	fw, err := firmware.New(model, m.st.Firmware)
	if err != nil {
		return fmt.Errorf("%s: %w", m.identity.Name, err)
	}
	m.fw = *fw
	m.st.Firmware = m.fw.State()
	m.fw.Power(phases[m.st.Phase].power != PowerOff)
	return nil
}

// restoreFirmware sets the firmware to the stored state.
func (m *Machine) restoreFirmware() {
	m.fw.Restore(m.st.Firmware)
	m.fw.Power(phases[m.st.Phase].power != PowerOff)
}

// firmwareEvents handles events of the firmware: a requested reset is done, and
// a machine whose BIOS is broken hangs.
func (m *Machine) firmwareEvents(now time.Time, evs []event.Event) []Event {
	m.st.Firmware = m.fw.State()
	var out []Event
	for _, ev := range evs {
		if _, ok := ev.(firmware.ResetWanted); !ok {
			out = append(out, ev)
			continue
		}
		kind := ForceRestart
		if m.st.Phase == Running {
			kind = GracefulRestart
		}
		more, err := Reset{Kind: kind}.apply(m, now)
		if err == nil { // otherwise it is off, and the next start suffices
			out = append(out, more...)
		}
	}
	if m.st.Phase == POST && m.biosBroken() {
		m.main().Deadline = time.Time{}
	}
	return out
}

// biosBroken reports whether the BIOS cannot run at all.
func (m *Machine) biosBroken() bool {
	x, ok := m.fw.View().Component("BIOS")
	return ok && x.Broken
}

// bootFirmware begins POST: the firmware applies pending settings and updates,
// and POST takes correspondingly long.
func (m *Machine) bootFirmware(now time.Time) []Event {
	evs, hold := m.fw.Boot(now)
	out := m.firmwareEvents(now, evs)
	v := m.fw.View()
	post := m.profile.Timings.POST.Duration
	if as, ok := v.Acts(firmware.POSTPercent, ""); ok {
		if percent, err := strconv.Atoi(as); err == nil {
			post = post * time.Duration(percent) / 100
		}
	}
	if m.biosBroken() {
		return out
	}
	m.printUpdate(hold)
	m.main().Deadline = now.Add(post + hold)
	if as, ok := v.Acts(firmware.BootMode, ""); ok && m.st.Override.Enabled == Disabled {
		m.main().Override.Mode = Mode(as)
	}
	return out
}

// firmwareRunsTask reports whether a task waits for settings to be applied or
// belongs to an update.
func firmwareRunsTask(m *Machine, task string) bool { return m.fw.View().Works(task) }

// stopFirmwareTask cancels the work of such a task while that is possible.
func stopFirmwareTask(m *Machine, now time.Time, task string) ([]Event, error) {
	var c firmware.Command = firmware.CancelUpdate{Task: task}
	if p := m.fw.View().Pending(); p != nil && slices.Contains(p.Tasks, task) {
		c = firmware.ClearPending{}
	}
	if e := m.fw.View().Finishing(); e != nil && slices.Contains(e.Tasks, task) {
		return nil, fmt.Errorf("%w: the settings were applied", ErrUnstoppable)
	}
	evs, err := Firmware{c}.apply(m, now)
	if errors.Is(err, firmware.ErrBusy) {
		err = fmt.Errorf("%w: %w", ErrUnstoppable, err)
	}
	return evs, err
}

// drivesRemoved tells the firmware that drives were removed.
func (m *Machine) drivesRemoved(now time.Time, evs []event.Event) []Event {
	var out []Event
	for _, ev := range evs {
		if n, ok := ev.(event.Note); ok && n.Kind == event.DriveRemoved {
			out = append(out, m.firmwareEvents(now, m.fw.Unplug(now, n.Subject.ID))...)
		}
	}
	return out
}

// Components returns the firmware components that are present. A drive that was
// inserted later is not one: its firmware is unknown.
func (v *View) Components() []firmware.Inventory {
	return slices.DeleteFunc(v.Firmware.Components(), func(x firmware.Inventory) bool { return x.Kind == firmware.KindDrive && !v.hasOriginalDrive(x.ID) })
}

// absentComponents returns the IDs of the components that are not present.
func (m *Machine) absentComponents() []string {
	v := m.View()
	there := v.Components()
	var out []string
	for _, x := range v.Firmware.Components() {
		if !slices.ContainsFunc(there, func(o firmware.Inventory) bool { return o.ID == x.ID }) {
			out = append(out, x.ID)
		}
	}
	return out
}

// hasOriginalDrive reports whether a bay holds the drive that the machine came
// with.
func (v *View) hasOriginalDrive(bay string) bool {
	d, ok := v.Storage.Drive(bay)
	if !ok {
		return false
	}
	for _, c := range v.Identity.Storage {
		for _, o := range c.Drives {
			if o.ID == bay {
				return o.Serial == d.Serial
			}
		}
	}
	return false
}

// cutFirmwarePower tells the firmware that the host's power is lost; all means
// standby power too.
func (m *Machine) cutFirmwarePower(now time.Time, all bool) []Event {
	return m.firmwareEvents(now, m.fw.Cut(now, all))
}

// biosOffers reports whether the BIOS settings allow a boot source.
func biosOffers(fw firmware.View, id *Identity, disks []storage.Device, s Source) bool {
	off := func(d firmware.Does, on string) bool {
		_, ok := fw.Acts(d, on)
		return ok
	}
	switch s.Kind {
	case Cd, Usb:
		return !off(firmware.NoUSB, "")
	case UefiHTTP:
		return !off(firmware.NoHTTP, "")
	case Pxe:
		i := slices.IndexFunc(id.NICs, func(n NIC) bool { return n.ID == s.Device })
		return !off(firmware.NoPXE, strconv.Itoa(i+1))
	case Hdd:
		i := slices.IndexFunc(disks, func(d storage.Device) bool { return d.ID == s.Device })
		if i < 0 {
			return false
		}
		i = slices.IndexFunc(id.Storage, func(c storage.Controller) bool { return c.ID == disks[i].In })
		return !off(firmware.NoDrives, strconv.Itoa(i+1))
	}
	return true
}

// HasTPM reports whether an operating system sees a TPM: the machine has one,
// and the BIOS settings enable it.
func (v *View) HasTPM() bool {
	_, off := v.Firmware.Acts(firmware.NoTPM, "")
	return v.Profile.TPM != nil && !off
}
