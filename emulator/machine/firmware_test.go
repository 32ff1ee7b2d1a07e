package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/fixtures"
)

func registryYAML(name string) ([]byte, error) {
	return fixtures.Profiles.ReadFile("registries/" + name + ".yaml")
}

// newServer is a bench with the generic server.
func newServer(t *testing.T) *bench {
	t.Helper()
	raw, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseProfile("profile.yaml", raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Equip(registryYAML); err != nil {
		t.Fatal(err)
	}
	m, err := New(p, NewIdentity(1, 0, "node-0", p), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, m: m, now: origin}
}

func set(pairs ...any) Firmware {
	var c firmware.SetAttributes
	for i := 0; i < len(pairs); i += 2 {
		v, _ := firmware.ValueOf(pairs[i+1])
		c.Settings = append(c.Settings, firmware.Setting{Name: pairs[i].(string), Value: v})
	}
	return Firmware{c}
}

// on switches the machine on and leaves it where a boot source is tried.
func (b *bench) on() (post time.Duration) {
	b.t.Helper()
	b.do(Reset{Kind: ResetOn})
	b.next()
	begun := b.now
	for b.m.st.Phase == POST {
		b.next()
	}
	return b.now.Sub(begun)
}

func (b *bench) off() {
	b.t.Helper()
	b.do(Reset{Kind: ForceOff})
	for b.m.st.Phase != Off {
		b.next()
	}
}

func (b *bench) setting(name string) string {
	for _, s := range new(b.m.View()).BIOSSettings() {
		if s.Name == name {
			return s.Value.String()
		}
	}
	return "?"
}

func TestPOSTAppliesSettings(t *testing.T) {
	b := newServer(t)
	b.do(set("BootMode", "LegacyBios", "ProcHyperThreading", "Disabled", "ProcCores", 4, "ProcVirtualization", "Disabled"))
	if got := b.setting("BootMode"); got != "Uefi" {
		t.Errorf("BootMode = %s before POST", got)
	}
	before := b.m.State()
	b.on()
	v := b.m.View()
	if got := b.setting("BootMode"); got != "LegacyBios" || v.Override.Mode != Legacy {
		t.Errorf("BootMode = %s, override mode %s", got, v.Override.Mode)
	}
	if p := v.Processors(); p.Cores != 4 || p.Threads != 4 || strings.Contains(fmt.Sprint(p.Flags), "vmx") {
		t.Errorf("processors = %+v", p)
	}
	if p := v.Profile.Processors; p.Cores != 16 || !strings.Contains(fmt.Sprint(p.Flags), "vmx") {
		t.Errorf("the profile's processors = %+v", p)
	}
	b.m.Restore(before)
	if got := b.setting("BootMode"); got != "Uefi" {
		t.Errorf("BootMode = %s after it was put back", got)
	}
	if b.m.View().Firmware.Pending() == nil {
		t.Error("nothing is pending after it was put back")
	}
}

func TestSettingsDecideWhatIsBooted(t *testing.T) {
	hdd0, hdd1, nic1, nic2 := disk, Source{Kind: Hdd, Device: "Disk.1"}, nic, Source{Kind: Pxe, Device: "2"}
	for _, tt := range []struct {
		set  Firmware
		want []Source
	}{
		{set("NumLock", "Off"), []Source{hdd0, hdd1, nic1, nic2}},
		{set("Nic1Pxe", "Disabled"), []Source{hdd0, hdd1, nic2}},
		{set("PxeBoot", "Disabled"), []Source{hdd0, hdd1}},
		{set("StorageRom1", "Disabled"), []Source{nic1, nic2}},
		{set("StorageRom1", "Disabled", "PxeBoot", "Disabled"), nil},
	} {
		b := newServer(t)
		b.do(tt.set)
		b.on()
		if d := cmp.Diff(tt.want, b.tried()); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.set, d)
		}
	}
	b := newServer(t)
	b.do(set("UsbBoot", "Disabled"))
	b.do(SetOverride{Override{Enabled: Once, Target: Cd, Mode: UEFI}})
	b.on()
	if got := b.tried(); got[0] != hdd0 {
		t.Errorf("tried %v first, want no CD", got[0])
	}
}

func TestSettingsChangeHowLongPOSTTakes(t *testing.T) {
	for _, tt := range []struct {
		set  Firmware
		want time.Duration
	}{
		{set("NumLock", "Off"), 90 * time.Second},
		{set("MemoryTest", "Enabled"), 270 * time.Second},
		{set("FastBoot", "Enabled"), 54 * time.Second},
	} {
		b := newServer(t)
		b.do(tt.set)
		if got := b.on(); got != tt.want {
			t.Errorf("POST with %+v took %v, want %v", tt.set, got, tt.want)
		}
	}
}

func biosImage(version string) firmware.Image {
	return firmware.Image{Kind: firmware.KindBIOS, Vendor: "Metalab", Model: "Generic Server G1", Version: version, SHA256: version}
}

func TestPOSTWaitsForWhatIsWrittenInIt(t *testing.T) {
	b := newServer(t)
	b.do(Firmware{firmware.Stage{ID: "u", Task: "1", Image: biosImage("2.4.0"), When: firmware.When{Apply: firmware.OnReset}}})
	b.next()
	b.next()
	if got := b.on(); got != 90*time.Second+240*time.Second {
		t.Errorf("POST took %v, want that of the update and its own", got)
	}
	v := b.m.View()
	if got := v.BIOSVersion(); got != "2.4.0" || b.setting("SystemBiosVersion") != got {
		t.Errorf("BIOS version = %s, and its attribute %s", got, b.setting("SystemBiosVersion"))
	}
	if v.BMCVersion() != "1.4.2" {
		t.Errorf("BMC version = %s", v.BMCVersion())
	}
}

func TestPowerLossBreaksUpdates(t *testing.T) {
	b := newServer(t)
	b.on()
	nicImage := firmware.Image{Kind: firmware.KindNIC, Vendor: "Metalab", Model: "ML25G-2P", Version: "23.0.0", SHA256: "n"}
	b.do(Firmware{firmware.Stage{ID: "u", Task: "1", Image: nicImage}})
	b.next()
	b.next()
	var got []string
	evs, err := b.m.Apply(b.now, Reset{Kind: ForceOff})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range evs {
		if n, ok := ev.(event.Note); ok {
			got = append(got, string(n.Kind))
		}
	}
	if d := cmp.Diff([]string{"component.broken", "update.failed"}, got); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	if x, _ := b.m.View().Firmware.Component("NIC.1"); !x.Broken {
		t.Errorf("NIC.1 = %+v, want it broken", x)
	}
}

// A machine whose BIOS is broken in both slots prints nothing; with a good second
// slot, it starts from that one.
func TestABrokenBIOSHangs(t *testing.T) {
	for _, backup := range []string{"2.2.4", ""} {
		b := newServer(t)
		m := *b.m.profile.Firmware.Model
		m.Components = append([]firmware.Component(nil), m.Components...)
		m.Components[0].Backup = backup
		b.m.profile.Firmware.Model = &m
		if err := b.m.newFirmware(); err != nil {
			t.Fatal(err)
		}
		b.do(Firmware{firmware.Break{Component: "BIOS", Phase: firmware.Applying}})
		b.do(Firmware{firmware.Stage{ID: "u", Image: biosImage("2.4.0"), When: firmware.When{Apply: firmware.OnReset}}})
		b.next()
		b.next()
		b.do(Reset{Kind: ResetOn})
		for {
			if _, ok := b.m.Deadline(); !ok {
				break
			}
			b.next()
		}
		want := Selecting
		if backup == "" {
			want = POST
		}
		if b.m.st.Phase != want {
			t.Errorf("backup %q: phase = %s, want %s", backup, b.m.st.Phase, want)
		}
		if got := b.m.View(); got.BIOSVersion() != backup {
			t.Errorf("backup %q: version = %q", backup, got.BIOSVersion())
		}
		if backup != "" {
			continue
		}
		b.off()
		b.do(Firmware{firmware.Stage{ID: "v", Image: biosImage("2.4.0")}}) // the BMC can still write it
		for {
			if _, ok := b.m.Deadline(); !ok {
				break
			}
			b.next()
		}
		b.do(Reset{Kind: ResetOn})
		b.until(Selecting)
	}
}

func TestAMaintenanceWindowRestartsTheSystem(t *testing.T) {
	b := newServer(t)
	c := set("BootMode", "LegacyBios").Command.(firmware.SetAttributes)
	c.When = firmware.When{Apply: firmware.AtMaintenanceWindowStart, Start: origin.Add(time.Hour), Length: time.Hour}
	b.on()
	b.load(disk)
	if b.m.st.Phase != Running {
		t.Fatal(b.m.st.Phase)
	}
	b.do(Firmware{c})
	b.next()
	if b.m.st.Phase != Stopping || !b.m.st.RestartAfterOff || !b.now.Equal(origin.Add(time.Hour)) {
		t.Errorf("at %v: phase = %s, again %v, want a restart at the start of the window", b.now, b.m.st.Phase, b.m.st.RestartAfterOff)
	}
	for b.m.st.Phase != Selecting {
		b.next()
	}
	if got := b.setting("BootMode"); got != "LegacyBios" {
		t.Errorf("BootMode = %s", got)
	}

	b = newServer(t) // one that is off is left alone
	b.do(Firmware{c})
	b.next()
	if b.m.st.Phase != Off {
		t.Errorf("phase = %s, want off", b.m.st.Phase)
	}
}

func TestParseProfileRefusesInvalidFirmware(t *testing.T) {
	raw, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, by, want string }{
		{"kind: cpld", "kind: toaster", "firmware.components[1].kind: must be one of"},
		{"id: CPLD", "id: BIOS", "firmware.components[1].id: must be there, and differ"},
		{"version: 1.0.9", "version: ''", "firmware.components[1]: must have vendor, model and version"},
		{"2025-01-20", "20.1.2025", "firmware.components[0].released: must be a date"},
		{"lowest: {BIOS", "lowest: {Bios", "firmware.lowest.Bios: must be of a component"},
		{"  registry: generic", "  registry: generic\n  timings: {toaster: {apply: 1s}}", "firmware.timings.toaster: must be one of"},
	} {
		if !strings.Contains(string(raw), tt.old) {
			t.Fatal(tt.old)
		}
		_, err := ParseProfile("profile.yaml", []byte(strings.Replace(string(raw), tt.old, tt.by, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("with %q: %v, want %q", tt.by, err, tt.want)
		}
	}
	p, err := ParseProfile("profile.yaml", raw)
	if err != nil {
		t.Fatal(err)
	}
	odd := func(string) ([]byte, error) {
		raw, err := registryYAML("generic")
		return []byte(strings.Replace(string(raw), "fact: serial", "fact: colour", 1)), err
	}
	if err := p.Equip(odd); err == nil || !strings.Contains(err.Error(), `SystemSerialNumber: fact "colour": must be one of`) {
		t.Errorf("Equip() with an unknown fact = %v", err)
	}
}

func TestWorkOfFirmwareCanBeStopped(t *testing.T) {
	b := newServer(t)
	c := set("BootMode", "LegacyBios").Command.(firmware.SetAttributes)
	c.Task = "1"
	b.do(Firmware{c})
	b.do(Firmware{firmware.Stage{ID: "u", Task: "2", Image: biosImage("2.4.0")}})
	for _, job := range []string{"1", "2"} {
		if !b.m.RunsTask(job) {
			t.Errorf("nobody works for job %s", job)
		}
	}
	done := b.do(StopTask{Task: "1"})
	done = append(done, b.do(StopTask{Task: "2"})...)
	want := []Event{event.TaskDone{At: origin, Task: "1", Cancelled: true}, event.TaskDone{At: origin, Task: "2", Cancelled: true}}
	if d := cmp.Diff(want, done); d != "" {
		t.Errorf("StopJob (-want +got):\n%s", d)
	}
	if b.m.State().Firmware != nil || b.m.RunsTask("1") || b.m.RunsTask("2") {
		t.Error("stopped, and it goes on")
	}
	b.do(Firmware{firmware.Stage{ID: "v", Task: "3", Image: biosImage("2.4.0")}})
	b.next()
	b.next()
	if _, err := b.m.Apply(b.now, StopTask{Task: "3"}); !errors.Is(err, ErrUnstoppable) {
		t.Errorf("StopJob while it is written = %v, want %v", err, ErrUnstoppable)
	}
}

func TestADriveThatIsPulledTakesItsFirmwareAlong(t *testing.T) {
	b := newServer(t)
	b.on()
	ids := func() (out []string) {
		for _, x := range new(b.m.View()).Components() {
			if x.Kind == firmware.KindDrive {
				out = append(out, x.ID)
			}
		}
		return out
	}
	all := ids()
	if len(all) < 2 {
		t.Fatalf("drives = %q", all)
	}
	drive, _ := b.m.View().Firmware.Component(all[0])
	stage := firmware.Stage{ID: "u", Task: "1", Image: firmware.Image{
		Kind: drive.Kind, Vendor: drive.Vendor, Model: drive.Model, Version: "ML09", SHA256: "m",
	}, Only: all[:1]}
	b.do(Firmware{stage})
	for b.m.fw.View().Updates()[0].Phase != firmware.Applying {
		b.next()
	}
	done := b.do(Storage{storage.PullDrive{Drive: all[0]}})
	if got := done[len(done)-1].(event.TaskDone); got.Task != "1" || got.Fault != "writing the image was interrupted" {
		t.Errorf("the update ended with %+v", got)
	}
	if d := cmp.Diff(all[1:], ids()); d != "" {
		t.Errorf("drives with firmware (-want +got):\n%s", d)
	}
	stage.ID, stage.Only = "v", nil // for all that there are
	b.do(Firmware{stage})
	for len(b.m.fw.View().Updates()) > 0 {
		b.next()
	}
	if got := b.m.View().Firmware.Version(all[1]); got != "ML09" {
		t.Errorf("%s runs %s", all[1], got)
	}
	b.do(Storage{storage.InsertDrive{Drive: all[0], What: storage.InsertNew}})
	if d := cmp.Diff(all[1:], ids()); d != "" {
		t.Errorf("with a new drive in the bay (-want +got):\n%s", d)
	}
	b.do(Storage{storage.PullDrive{Drive: all[0]}})
	b.do(Storage{storage.InsertDrive{Drive: all[0], What: storage.InsertSame, Serial: b.m.identity.Storage[0].Drives[0].Serial}})
	if x, _ := b.m.View().Firmware.Component(all[0]); len(ids()) != len(all) || !x.Broken {
		t.Errorf("with its own drive back: %q, %s is broken: %v", ids(), all[0], x.Broken)
	}
}
