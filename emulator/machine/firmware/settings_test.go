package firmware

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/fixtures"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// bench steps the firmware of one server through time.
type bench struct {
	t   testing.TB
	f   *Firmware
	m   *Model
	now time.Time
}

func newBench(t testing.TB, components ...Component) *bench {
	t.Helper()
	m := &Model{Read: held(generic(t)), Components: components}
	f, err := New(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, f: f, m: m, now: origin}
}

func (b *bench) do(c Command) []event.Event {
	b.t.Helper()
	evs, err := b.f.Apply(b.now, c)
	if err != nil {
		b.t.Fatalf("Apply(%+v) = %v", c, err)
	}
	b.restart()
	return evs
}

// restart restores the firmware from its stored state, which must be the same
// again.
func (b *bench) restart() {
	b.t.Helper()
	raw, err := json.Marshal(b.f.State())
	if err != nil {
		b.t.Fatal(err)
	}
	var st *State
	if err := json.Unmarshal(raw, &st); err != nil {
		b.t.Fatal(err)
	}
	f, err := New(b.m, st)
	if err != nil {
		b.t.Fatal(err)
	}
	if !reflect.DeepEqual(f.State(), b.f.State()) {
		b.t.Fatalf("restored state = %+v, want %+v", f.State(), b.f.State())
	}
	f.Power(b.f.on)
	b.f = f
}

func (b *bench) boot() []event.Event {
	evs, _ := b.f.Boot(b.now)
	b.restart()
	return evs
}

// pass lets time go by.
func (b *bench) pass(d time.Duration) []event.Event {
	b.now = b.now.Add(d)
	evs := b.f.Advance(b.now)
	b.restart()
	return evs
}

func (b *bench) value(name string) string { return b.f.View().value(name).String() }

func (b *bench) values(want map[string]string) {
	b.t.Helper()
	for name, w := range want {
		if got := b.value(name); got != w {
			b.t.Errorf("%s = %s, want %s", name, got, w)
		}
	}
}

// set makes settings out of names and values in turn.
func set(pairs ...any) []Setting {
	var out []Setting
	for i := 0; i < len(pairs); i += 2 {
		v, ok := ValueOf(pairs[i+1])
		if !ok {
			panic(pairs[i+1])
		}
		out = append(out, Setting{pairs[i].(string), v})
	}
	return out
}

func kinds(evs []event.Event) string {
	var out []string
	for _, ev := range evs {
		switch ev := ev.(type) {
		case event.Note:
			out = append(out, string(ev.Kind))
		case event.TaskMessage:
			out = append(out, ev.Task+":"+string(ev.Kind)+"("+ev.Subject.ID+")")
		case event.TaskDone:
			if ev.Cancelled {
				ev.Fault = "cancelled" + ev.Fault
			}
			out = append(out, ev.Task+" done "+ev.Fault)
		case event.TaskRunning:
			out = append(out, ev.Task+" for "+ev.Until.Sub(ev.At).String())
		case event.TaskWaiting:
			out = append(out, ev.Task+" waits")
		case event.Restart:
			out = append(out, "restart "+string(ev.Subject.Part))
		case ResetWanted:
			out = append(out, "reset wanted")
		}
	}
	return strings.Join(out, ", ")
}

func (b *bench) expect(evs []event.Event, want string) {
	b.t.Helper()
	if got := kinds(evs); got != want {
		b.t.Errorf("events = %s\nwant %s", got, want)
	}
}

func TestSettingsAreAppliedByAReset(t *testing.T) {
	b := newBench(t)
	b.expect(b.do(SetAttributes{Settings: set("BootMode", "LegacyBios", "AssetTag", "A1"), Task: "7"}), "bios.pending")
	b.values(map[string]string{"BootMode": "Uefi", "AssetTag": ""})
	if got := b.f.View().Pending().Settings; len(got) != 2 {
		t.Errorf("pending = %v", got)
	}
	b.pass(time.Hour)
	b.values(map[string]string{"BootMode": "Uefi"})
	b.expect(b.boot(), "bios.applied, 7 done ")
	b.values(map[string]string{"BootMode": "LegacyBios", "AssetTag": "A1", "HttpBoot": "Disabled"})
	if p := b.f.View().Pending(); p != nil {
		t.Errorf("pending = %+v after the reset", p)
	}
	a := b.f.View().Applied()
	if a == nil || !a.At.Equal(b.now) || len(a.Settings) != 2 {
		t.Errorf("applied = %+v", a)
	}
	b.expect(b.boot(), "") // once
}

func TestASettingThatIsSoAlreadyIsNotPending(t *testing.T) {
	b := newBench(t)
	b.expect(b.do(SetAttributes{Settings: set("BootMode", "Uefi"), Task: "1"}), "1 done ")
	if st := b.f.State(); st != nil {
		t.Errorf("state = %+v, want none", st)
	}
	b.do(SetAttributes{Settings: set("NumLock", "Off", "BootMode", "LegacyBios")})
	b.do(SetAttributes{Settings: set("NumLock", "On")})
	if d := cmp.Diff([]Setting{{"BootMode", Text("LegacyBios")}}, []Setting(b.f.View().Pending().Settings), cmp.Comparer(func(a, b Value) bool { return a == b })); d != "" {
		t.Error(d)
	}
	b.do(SetAttributes{Settings: set("BootMode", "Uefi")})
	if st := b.f.State(); st != nil {
		t.Errorf("state = %+v, want none", st)
	}
}

func TestAttributesRefuseWhatTheyCannotBe(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []Setting
		want []string
	}{
		{"unknown", set("Colour", "red"), []string{"Colour: red: no such attribute"}},
		{"not in the list", set("BootMode", "Both"), []string{"BootMode: Both: not in the list"}},
		{"case matters", set("BootMode", "UEFI"), []string{"BootMode: UEFI: not in the list"}},
		{"number for a word", set("BootMode", 1), []string{"BootMode: 1: wrong type"}},
		{"word for a number", set("SetupPromptSeconds", "3"), []string{"SetupPromptSeconds: 3: wrong type"}},
		{"nothing", set("SetupPromptSeconds", nil), []string{"SetupPromptSeconds: null: wrong type"}},
		{"word for a boolean", set("PostWatchdog", "true"), []string{"PostWatchdog: true: wrong type"}},
		{"too much", set("SetupPromptSeconds", 31), []string{"SetupPromptSeconds: 31: out of range"}},
		{"too little", set("SetupPromptSeconds", -1), []string{"SetupPromptSeconds: -1: out of range"}},
		{"too long", set("BootMessage", strings.Repeat("x", 63)), []string{"BootMessage: " + strings.Repeat("x", 63) + ": too long"}},
		{"not of the form", set("HttpBootUri", "ftp://x"), []string{"HttpBootUri: ftp://x: not of the form"}},
		{"fact", set("SystemSerialNumber", "1"), []string{"SystemSerialNumber: 1: read-only"}},
		{"version", set("SystemBiosVersion", "9"), []string{"SystemBiosVersion: 9: read-only"}},
		{"governed", set("ProcTurbo", "Disabled"), []string{"ProcTurbo: set by other values: SystemProfile"}},
		{"governed by what is changed", set("BootMode", "LegacyBios", "HttpBootUri", "http://x"), []string{"HttpBootUri: set by other values: HttpBoot"}},
		{"forced by what is changed", set("NodeInterleaving", "Enabled", "SubNumaClusters", "TwoWay"), []string{"SubNumaClusters: set by other values: NodeInterleaving"}},
		{"bound moved by what is changed", set("PostWatchdog", true, "MemoryTest", "Enabled", "PostWatchdogMinutes", 10), []string{"PostWatchdogMinutes: 10: out of range"}},
		{"password", set("AdminPassword", "secret"), []string{"AdminPassword: set by an action"}},
		{"twice", set("NumLock", "Off", "NumLock", "On"), []string{"NumLock: On: given twice"}},
		{"several", set("Colour", "red", "BootMode", 1, "NumLock", "Off"), []string{"Colour: red: no such attribute", "BootMode: 1: wrong type"}},
	} {
		b := newBench(t)
		_, err := b.f.Apply(origin, SetAttributes{Settings: tt.in})
		var got AttributeErrors
		errors.As(err, &got)
		var all []string
		for _, e := range got {
			all = append(all, strings.TrimPrefix(e.Error(), "firmware: attribute "))
		}
		if d := cmp.Diff(tt.want, all); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if b.f.State() != nil {
			t.Errorf("%s: refused, and yet pending: %+v", tt.name, b.f.State().Pending)
		}
	}
}

func TestAChangeMayAllowWhatItAsksFor(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("ProcTurbo", "Disabled", "SystemProfile", "Custom", "EnergyPolicy", 3)})
	b.boot()
	b.values(map[string]string{"ProcTurbo": "Disabled", "SystemProfile": "Custom", "EnergyPolicy": "3", "ProcC1E": "Enabled"})
	// What is pending already counts as well.
	b.do(SetAttributes{Settings: set("MemoryMode", "PartialMirror")})
	b.do(SetAttributes{Settings: set("MirrorPercent", 40)})
	b.boot()
	b.values(map[string]string{"MemoryMode": "PartialMirror", "MirrorPercent": "40"})
}

// With a strict registry, an applied value unlocks a dependent attribute, and a
// pending one does not: the change takes two resets instead of one.
func TestAStrictRegistryTakesTwoResets(t *testing.T) {
	raw, err := fixtures.Profiles.ReadFile("registries/dense.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRegistry("r.yaml", raw, map[string]int{"module": 16})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Strict || len(r.Attributes) != 300 {
		t.Fatalf("strict %v, %d attributes: want a strict one with 300", r.Strict, len(r.Attributes))
	}
	f, err := New(&Model{Read: held(r)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mode, percent := Setting{Name: "MemoryMode", Value: Text("Mirror")}, Setting{Name: "MirrorPercent", Value: Integer(25)}
	set := func(s ...Setting) error { _, err := f.Apply(origin, SetAttributes{Settings: s}); return err }
	bad := AttributeErrors{}
	if err := set(mode, percent); !errors.As(err, &bad) || len(bad) != 1 || bad[0].Fault != Governed || bad[0].By != "MemoryMode" {
		t.Fatalf("both at once = %v, want MirrorPercent governed by MemoryMode", err)
	}
	for _, s := range []Setting{mode, percent} {
		if err := set(s); err != nil {
			t.Fatalf("%s by itself = %v", s.Name, err)
		}
		f.Boot(origin)
		if got := f.View().value(s.Name); got != s.Value {
			t.Fatalf("%s = %s after a reset, want %s", s.Name, got.String(), s.Value.String())
		}
	}
}

func TestWhatIsPendingIsNotMadeImpossible(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("HttpBootUri", "http://boot.test/a")})
	_, err := b.f.Apply(b.now, SetAttributes{Settings: set("HttpBoot", "Disabled")})
	var got AttributeErrors
	if !errors.As(err, &got) || len(got) != 1 || got[0].Name != "HttpBootUri" || got[0].By != "HttpBoot" {
		t.Errorf("Apply() = %v, want that HttpBootUri is governed by HttpBoot", err)
	}
}

func TestDependenciesSetOthers(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("SystemProfile", "Performance", "ProcVirtualization", "Disabled")})
	b.boot()
	b.values(map[string]string{
		"ProcTurbo": "Enabled", "ProcC1E": "Disabled", "ProcCStates": "Disabled", "UncoreFrequency": "Maximum", "EnergyPolicy": "0",
		"DirectIo": "Disabled",
	})
	b.do(SetAttributes{Settings: set("SystemProfile", "Custom")})
	b.boot()
	b.values(map[string]string{"EnergyPolicy": "0", "ProcC1E": "Disabled"}) // they stay as they were set
	b.do(SetAttributes{Settings: set("SystemProfile", "Balanced", "ProcVirtualization", "Enabled", "DirectIo", "Enabled")})
	b.boot()
	if got := b.f.State().Values; got != nil {
		t.Errorf("values = %v, want the defaults", got)
	}
	// A bound that moves takes the value with it.
	b.do(SetAttributes{Settings: set("PostWatchdog", true, "MemoryTest", "Enabled")})
	b.boot()
	b.values(map[string]string{"PostWatchdogMinutes": "15"})
}

func TestRulesFollowTheValues(t *testing.T) {
	b := newBench(t)
	is := func(name string, p Property, want Value) {
		t.Helper()
		if got := b.f.View().Rules().Property(name, p); got != want {
			t.Errorf("%s of %s = %v, want %v", p, name, got, want)
		}
	}
	is("ProcTurbo", ReadOnly, Boolean(true))
	is("TpmPhysicalPresence", Hidden, Boolean(false))
	b.do(SetAttributes{Settings: set("SystemProfile", "Custom", "TpmSecurity", "Disabled", "BootMode", "LegacyBios")})
	is("ProcTurbo", ReadOnly, Boolean(false))
	is("ProcTurbo", GrayOut, Boolean(false))
	is("TpmPhysicalPresence", Hidden, Boolean(true))
	is("HttpBootUri", ReadOnly, Boolean(true)) // by way of HttpBoot
	is("SetupPromptSeconds", UpperBound, Integer(30))
	is("SetupPromptSeconds", ScalarIncrement, Integer(1))
	is("SetupPromptSeconds", MaxLength, Value{})
	is("AssetTag", MaxLength, Integer(63))
	is("AssetTag", DefaultValue, Text(""))
	is("Colour", ReadOnly, Value{})
}

func TestDefaultsComeBackByAReset(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("BootMode", "LegacyBios", "AssetTag", "A1", "NumLock", "Off")})
	b.boot()
	b.do(SetAttributes{Settings: set("MemoryTest", "Enabled"), Task: "1"})
	b.expect(b.do(ResetBIOS{Task: "2"}), "1 done replaced by a reset to the defaults, bios.defaults.pending")
	if p := b.f.View().Pending(); !p.Defaults || p.Settings != nil {
		t.Errorf("pending = %+v", p)
	}
	b.do(SetAttributes{Settings: set("NumLock", "Off", "BootMode", "Uefi")}) // on top of the defaults
	b.values(map[string]string{"BootMode": "LegacyBios"})
	b.expect(b.boot(), "bios.defaults.applied, bios.applied, 2 done ")
	b.values(map[string]string{"BootMode": "Uefi", "AssetTag": "A1", "NumLock": "Off", "MemoryTest": "Disabled"})
	b.do(ResetBIOS{})
	b.boot()
	if d := cmp.Diff("[{AssetTag A1}]", strings.ReplaceAll(strings.TrimSpace(render(b.f.State().Values)), "\n", " ")); d != "" {
		t.Error(d)
	}
}

func render(s Settings) string {
	var all []string
	for _, x := range s {
		all = append(all, "{"+x.Name+" "+x.Value.String()+"}")
	}
	return "[" + strings.Join(all, " ") + "]"
}

func TestWhatIsPendingCanBeGivenUp(t *testing.T) {
	b := newBench(t)
	b.expect(b.do(ClearPending{}), "")
	b.do(SetAttributes{Settings: set("BootMode", "LegacyBios"), Task: "1"})
	b.do(SetAttributes{Settings: set("NumLock", "Off"), Task: "2"})
	b.expect(b.do(ClearPending{}), "bios.cleared, 1 done cancelled, 2 done cancelled")
	b.expect(b.boot(), "")
	if b.f.State() != nil {
		t.Errorf("state = %+v, want none", b.f.State())
	}
}

func TestSomeSettingsNeedNoReset(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("AssetTag", "later", "NumLock", "Off"), Task: "1"})
	_, err := b.f.Apply(b.now, SetAttributes{Settings: set("AssetTag", "x", "BootMode", "LegacyBios"), When: When{Apply: Immediate}})
	var bad AttributeErrors
	if !errors.As(err, &bad) || len(bad) != 1 || bad[0].Name != "BootMode" || bad[0].Fault != NeedsReset {
		t.Errorf("Apply() = %v, want that BootMode needs a reset", err)
	}
	b.expect(b.do(SetAttributes{Settings: set("AssetTag", "now"), When: When{Apply: Immediate}, Task: "2"}), "bios.applied, 2 done ")
	b.values(map[string]string{"AssetTag": "now", "NumLock": "On"})
	b.boot()
	b.values(map[string]string{"AssetTag": "now", "NumLock": "Off"}) // the later request counts
	b.do(SetAttributes{Settings: set("AssetTag", "later"), Task: "3"})
	b.expect(b.do(SetAttributes{Settings: set("AssetTag", "sooner"), When: When{Apply: Immediate}}), "bios.applied, 3 done ")
}

func TestMaintenanceWindows(t *testing.T) {
	window := func(a ApplyTime) When { return When{Apply: a, Start: origin.Add(time.Hour), Length: time.Hour} }
	legacy := set("BootMode", "LegacyBios")
	t.Run("at its start", func(t *testing.T) {
		b := newBench(t)
		b.do(SetAttributes{Settings: legacy, When: window(AtMaintenanceWindowStart), Task: "1"})
		b.expect(b.boot(), "") // before it
		if at, ok := b.f.Deadline(); !ok || !at.Equal(origin.Add(time.Hour)) {
			t.Errorf("Deadline() = %v, %v", at, ok)
		}
		b.expect(b.pass(time.Hour), "reset wanted")
		b.values(map[string]string{"BootMode": "Uefi"})
		b.expect(b.pass(5*time.Hour), "") // the host was off
		b.expect(b.boot(), "bios.applied, 1 done ")
		b.values(map[string]string{"BootMode": "LegacyBios"})
	})
	t.Run("at a reset in it", func(t *testing.T) {
		b := newBench(t)
		b.do(SetAttributes{Settings: legacy, When: window(InMaintenanceWindowOnReset), Task: "1"})
		b.expect(b.boot(), "")
		b.expect(b.pass(90*time.Minute), "")
		b.expect(b.boot(), "bios.applied, 1 done ")
	})
	t.Run("without a reset in it", func(t *testing.T) {
		b := newBench(t)
		b.do(SetAttributes{Settings: legacy, When: window(InMaintenanceWindowOnReset), Task: "1"})
		b.expect(b.pass(2*time.Hour), "bios.expired, 1 done the maintenance window ended before a reset")
		b.expect(b.boot(), "")
		if a := b.f.View().Applied(); a == nil || !a.Expired {
			t.Errorf("applied = %+v, want that it has expired", a)
		}
	})
	for name, w := range map[string]When{
		"unknown":            {Apply: "Sometime"},
		"of updates":         {Apply: OnStartUpdateRequest},
		"without a window":   {Apply: AtMaintenanceWindowStart},
		"without a length":   {Apply: AtMaintenanceWindowStart, Start: origin},
		"over":               {Apply: InMaintenanceWindowOnReset, Start: origin.Add(-time.Hour), Length: time.Hour},
		"of negative length": {Apply: AtMaintenanceWindowStart, Start: origin, Length: -1},
	} {
		if _, err := newBench(t).f.Apply(origin, SetAttributes{Settings: legacy, When: w}); !errors.Is(err, ErrWhen) {
			t.Errorf("%s: Apply() = %v, want %v", name, err, ErrWhen)
		}
	}
}

func TestASecondChangeKeepsTheTimeUnlessItNamesOne(t *testing.T) {
	b := newBench(t)
	w := When{Apply: InMaintenanceWindowOnReset, Start: origin.Add(time.Hour), Length: time.Hour}
	b.do(SetAttributes{Settings: set("NumLock", "Off"), When: w})
	b.do(SetAttributes{Settings: set("FastBoot", "Enabled")})
	if got := b.f.View().Pending().When; got != w {
		t.Errorf("when = %+v, want %+v", got, w)
	}
	b.do(SetAttributes{Settings: set("FastBoot", "Enabled"), When: When{Apply: OnReset}})
	b.boot()
	b.values(map[string]string{"NumLock": "Off", "FastBoot": "Enabled"})
}

func TestSettingsShowFacts(t *testing.T) {
	b := newBench(t)
	b.do(ChangePassword{Name: "AdminPassword", New: "secret"})
	got := map[string]Value{}
	for _, s := range b.f.View().Settings(func(fact string) (Value, bool) { return Text("the " + fact), fact == "serial" }) {
		got[s.Name] = s.Value
	}
	for name, want := range map[string]Value{
		"SystemSerialNumber": Text("the serial"), "SystemModel": {}, "BootMode": Text("Uefi"), "SerialAfterBoot": Boolean(true), "AdminPassword": {},
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if len(got) != len(b.m.Registry().Attributes) {
		t.Errorf("%d settings, want %d", len(got), len(b.m.Registry().Attributes))
	}
}

func TestEffects(t *testing.T) {
	b := newBench(t)
	acts := func(d Does, on, want string) {
		t.Helper()
		got := "no"
		if as, ok := b.f.View().Acts(d, on); ok {
			got = "yes " + as
		}
		if got != want {
			t.Errorf("Acts(%s, %q) = %s, want %s", d, on, got, want)
		}
	}
	acts(BootMode, "", "yes UEFI")
	acts(NoPXE, "1", "no")
	acts(Cores, "", "yes 0")
	b.do(SetAttributes{Settings: set("BootMode", "LegacyBios", "Nic1Pxe", "Disabled", "ProcCores", 8, "FastBoot", "Enabled")})
	acts(NoPXE, "1", "no") // not yet
	b.boot()
	acts(BootMode, "", "yes Legacy")
	acts(NoPXE, "1", "yes ")
	acts(NoPXE, "2", "no")
	acts(NoHTTP, "", "yes ")
	acts(Cores, "", "yes 8")
	acts(POSTPercent, "", "yes 60")
	b.do(SetAttributes{Settings: set("PxeBoot", "Disabled")})
	b.boot()
	acts(NoPXE, "2", "yes ")
}

func TestAForgottenAttributeIsForgotten(t *testing.T) {
	m := &Model{Read: held(generic(t))}
	f, err := New(m, &State{
		Values: Settings{{"BootMode", Text("LegacyBios")}, {"Colour", Text("red")}}, Passwords: []Secret{{Name: "Colour"}},
		Slots: []Slots{{ID: "Fan"}}, Pending: &Pending{Settings: Settings{{"Colour", Text("blue")}}, When: When{Apply: OnReset}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := render(f.State().Values); got != "[{BootMode LegacyBios}]" || len(f.State().Passwords)+len(f.State().Slots)+len(f.State().Pending.Settings) > 0 {
		t.Errorf("state = %+v", f.State())
	}
}
