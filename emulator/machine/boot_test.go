package machine

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func optionIDs(all []BootOption) []string {
	var out []string
	for _, b := range all {
		out = append(out, b.ID)
	}
	return out
}

// sourcesOf boots a machine and lists what it tries.
func (b *bench) sourcesOf() []Source {
	b.t.Helper()
	if b.m.st.Phase == Off {
		b.do(Reset{Kind: ResetOn})
	} else {
		b.do(Reset{Kind: ForceRestart})
	}
	b.until(Selecting)
	return slices.Clone(b.m.st.PendingSources)
}

func TestBootOptionsFollowTheHardware(t *testing.T) {
	b := newBench(t)
	v := b.m.View()
	want := []string{"Boot0001", "Boot0002", "Boot0100", "Boot0101", "Boot0200", "Boot0201", "Boot0300", "Boot0301"}
	if d := cmp.Diff(want, optionIDs(v.BootOptions())); d != "" {
		t.Errorf("boot options (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want[2:6], optionIDs(v.EffectiveBootOrder())); d != "" {
		t.Errorf("boot order (-want +got):\n%s", d)
	}
	const uri = "http://images.test/grub.efi"
	b.do(SetHTTPBoot{URI: uri})
	v = b.m.View()
	i := slices.IndexFunc(v.BootOptions(), func(o BootOption) bool { return o.ID == "Boot0003" })
	if i < 0 || v.BootOptions()[i].Source != (Source{Kind: UefiHTTP, Device: "1", URI: uri}) {
		t.Errorf("with an HTTP boot URI the options are %+v", v.BootOptions())
	}
	b.do(SetHTTPBoot{})
	if d := cmp.Diff(want, optionIDs(new(b.m.View()).BootOptions())); d != "" {
		t.Errorf("boot options without the URI (-want +got):\n%s", d)
	}
	paths := map[string]string{}
	for _, o := range v.BootOptions() {
		if other, ok := paths[o.Path]; ok {
			t.Errorf("%s and %s are both at %s", o.ID, other, o.Path)
		}
		paths[o.Path] = o.ID
	}
	for _, bad := range []string{"ftp://x/y", "/y", "http:", "://"} {
		if _, err := b.m.Apply(b.now, SetHTTPBoot{URI: bad}); !errors.Is(err, ErrUnknown) {
			t.Errorf("SetHTTPBoot(%q) = %v, want %v", bad, err, ErrUnknown)
		}
	}
}

func TestBootFollowsTheOrder(t *testing.T) {
	b := newBench(t)
	b.do(SetBootOrder{[]string{"Boot0201", "Boot0001", "Boot0100"}})
	disk1 := Source{Kind: Hdd, Device: "Disk.1"}
	want := []Source{{Kind: Pxe, Device: "2"}, cd, disk}
	if d := cmp.Diff(want, b.sourcesOf()); d != "" {
		t.Errorf("sources (-want +got):\n%s", d)
	}
	b.do(SetBootOption{ID: "Boot0001"})
	b.do(SetBootOption{ID: "Boot0201"})
	b.do(SetBootOption{ID: "Boot0201", Enabled: true})
	if d := cmp.Diff([]Source{want[0], disk}, b.sourcesOf()); d != "" {
		t.Errorf("sources without a disabled one (-want +got):\n%s", d)
	}
	if got := optionIDs(new(b.m.View()).EffectiveBootOrder()); len(got) != 3 {
		t.Errorf("a disabled option is out of the order: %v", got)
	}
	b.do(SetBootOrder{})
	if d := cmp.Diff([]Source{disk, disk1, nic, {Kind: Pxe, Device: "2"}}, b.sourcesOf()); d != "" {
		t.Errorf("sources of the model's order (-want +got):\n%s", d)
	}
	before := b.m.State()
	for _, tt := range []struct {
		order []string
		want  error
	}{{[]string{"Boot0100", "Boot0100"}, ErrConflict}, {[]string{"Boot0999"}, ErrUnknown}, {[]string{"Disk.0"}, ErrUnknown}} {
		if _, err := b.m.Apply(b.now, SetBootOrder{tt.order}); !errors.Is(err, tt.want) || b.m.State().Boot != before.Boot {
			t.Errorf("SetBootOrder(%v) = %v, want %v and no change", tt.order, err, tt.want)
		}
	}
	if _, err := b.m.Apply(b.now, SetBootOption{ID: "Boot0999"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("SetBootOption(Boot0999) = %v, want %v", err, ErrUnknown)
	}
}

// Boot options that appear after the boot order was set come last in it; options
// that existed then and were left out stay out.
func TestBootOrderIncludesNewOptions(t *testing.T) {
	small, large := *profile, *profile
	small.NICs = profile.NICs[:1]
	m, err := New(&small, NewIdentity(1, 0, "node-0", &small), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Apply(origin, SetBootOrder{[]string{"Boot0200", "Boot0100"}}); err != nil {
		t.Fatal(err)
	}
	m, err = New(&large, NewIdentity(1, 0, "node-0", &large), new(m.State()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Boot0200", "Boot0100", "Boot0201"}, optionIDs(new(m.View()).EffectiveBootOrder())); d != "" {
		t.Errorf("boot order with another NIC (-want +got):\n%s", d)
	}
	m, err = New(&small, NewIdentity(1, 0, "node-0", &small), new(m.State()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Boot0200", "Boot0100"}, optionIDs(new(m.View()).EffectiveBootOrder())); d != "" {
		t.Errorf("boot order without it (-want +got):\n%s", d)
	}
}

func TestOverrideChoosesItsSources(t *testing.T) {
	const uri = "https://images.test/boot.efi"
	second := Source{Kind: Pxe, Device: "2"}
	var path string // device path of second's boot option
	for _, o := range new(newMachine(t).View()).BootOptions() {
		if o.Source == second {
			path = o.Path
		}
	}
	for _, tt := range []struct {
		name string
		o    Override
		uri  string
		want []Source // first
	}{
		{"pxe", Override{Target: Pxe}, "", []Source{nic, second}},
		{"http from DHCP", Override{Target: UefiHTTP}, "", []Source{{Kind: UefiHTTP, Device: "1"}, {Kind: UefiHTTP, Device: "2"}}},
		{"http", Override{Target: UefiHTTP}, uri, []Source{{Kind: UefiHTTP, Device: "1", URI: uri}, {Kind: UefiHTTP, Device: "1"}}},
		{"usb", Override{Target: Usb}, "", []Source{{Kind: Usb}}},
		{"next", Override{Target: UefiBootNext, BootNext: "Boot0201"}, "", []Source{second}},
		{"target", Override{Target: UefiTarget, Path: path}, "", []Source{second}},
		{"target of no option", Override{Target: UefiTarget, Path: "PciRoot(0x9)"}, "", []Source{{Kind: UefiTarget, Device: "PciRoot(0x9)"}}},
		{"what it has not", Override{Target: Floppy}, "", []Source{disk}},
	} {
		b := newBench(t)
		tt.o.Enabled, tt.o.Mode = Once, UEFI
		b.do(SetHTTPBoot{URI: tt.uri})
		b.do(SetOverride{tt.o})
		got := b.sourcesOf()
		if d := cmp.Diff(tt.want, got[:len(tt.want)]); d != "" {
			t.Errorf("%s: first sources (-want +got):\n%s", tt.name, d)
		}
		if o := b.m.View().Override; o.Enabled != Disabled || o.Target != None || o.BootNext != "" || o.Path != tt.o.Path {
			t.Errorf("%s: after the boot the override is %+v", tt.name, o)
		}
		if got := b.sourcesOf()[0]; got != disk {
			t.Errorf("%s: first source of the next boot = %v, want %v", tt.name, got, disk)
		}
	}
}

func TestOverrideToFirmwareApps(t *testing.T) {
	for _, app := range []SourceKind{BiosSetup, Utilities, Diags, UefiShell} {
		b := newBench(t)
		b.do(SetOverride{Override{Enabled: Continuous, Target: app, Mode: UEFI}})
		b.do(Reset{Kind: ResetOn})
		b.until(InSetup)
		if got := b.m.View().FirmwareApp; got != app {
			t.Errorf("%s: on the screen is %s", app, got)
		}
		b.do(Reset{Kind: ForceOff})
		b.until(Off)
		if got := b.m.View().FirmwareApp; got != "" {
			t.Errorf("%s: switched off, and on the screen is %s", app, got)
		}
	}
}

func TestOverridesThatContradictThemselvesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		o    Override
		want error
	}{
		{Override{Enabled: Once, Target: UefiHTTP, Mode: Legacy}, ErrConflict},
		{Override{Enabled: Once, Target: UefiTarget, Mode: UEFI}, ErrConflict},
		{Override{Enabled: Once, Target: UefiBootNext, Mode: UEFI}, ErrConflict},
		{Override{Enabled: Continuous, Target: UefiBootNext, Mode: UEFI, BootNext: "Boot0100"}, ErrConflict},
		{Override{Enabled: Once, Target: UefiBootNext, Mode: UEFI, BootNext: "Boot0999"}, ErrUnknown},
		{Override{Enabled: Disabled, Target: UefiTarget, Mode: Legacy}, nil},
	} {
		m := newMachine(t)
		before := m.State()
		_, err := m.Apply(origin, SetOverride{tt.o})
		if !errors.Is(err, tt.want) || err != nil && m.State() != before {
			t.Errorf("SetOverride(%+v) = %v, want %v", tt.o, err, tt.want)
		}
	}
}

func TestAutomaticBootRetry(t *testing.T) {
	b := newBench(t)
	b.do(SetRetry{Retry: RetryAttempts, Attempts: 2})
	b.do(Reset{Kind: ResetOn})
	for attempt := 1; attempt <= 3; attempt++ {
		b.until(Selecting)
		if got := b.m.View(); got.Boots != uint64(attempt) || got.Retries != attempt-1 {
			t.Fatalf("attempt %d: boots %d, retries %d", attempt, got.Boots, got.Retries)
		}
		b.tried()
	}
	if got := b.m.st.Phase; got != Halted {
		t.Errorf("after all attempts: %s, want %s", got, Halted)
	}
	b.do(SetRetry{Retry: RetryAlways})
	b.do(Reset{Kind: ForceRestart})
	for range 5 {
		b.until(Selecting)
		b.tried()
	}
	b.until(Selecting)
	b.load(disk)
	if got := b.m.View().Retries; got != 0 {
		t.Errorf("after a boot that went well: %d retries", got)
	}
	for _, bad := range []SetRetry{{Retry: "Sometimes"}, {Retry: RetryAttempts, Attempts: -1}, {Retry: RetryAttempts, Attempts: MaxAttempts + 1}} {
		if _, err := b.m.Apply(b.now, bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("%+v = %v, want %v", bad, err, ErrUnknown)
		}
	}
}

// A model whose POST takes no time does not retry the boot forever.
func TestRetryAlwaysEnds(t *testing.T) {
	b := benchOf(t, func(p *Profile) { p.Timings.POST, p.BootOrder = Duration{}, nil })
	b.do(SetRetry{Retry: RetryAlways})
	b.do(Reset{Kind: ResetOn})
	b.until(Halted)
}

func TestDevicePaths(t *testing.T) {
	for address, want := range map[string]string{
		"0000:3b:00.1": "PciRoot(0x3B)/Pci(0x0,0x1)", "0000:00:1f.2": "PciRoot(0x0)/Pci(0x1F,0x2)", "": "PciRoot(0x0)", "nonsense": "PciRoot(0x0)",
	} {
		if got := pciPath(address); got != want {
			t.Errorf("pciPath(%q) = %s, want %s", address, got, want)
		}
	}
}
