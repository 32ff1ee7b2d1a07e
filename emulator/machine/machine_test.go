package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

var (
	origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	disk   = Source{Kind: Hdd, Device: "Disk.0"}
	nic    = Source{Kind: Pxe, Device: "1"}
	cd     = Source{Kind: Cd}
)

func seconds(n int) Duration { return Duration{time.Duration(n) * time.Second} }

var profile = &Profile{
	Name:    "test",
	NICs:    []NICModel{{ID: "1", Name: "eno1"}, {ID: "2", Name: "eno2"}},
	Storage: []storage.ControllerModel{{ID: "1", Bays: []storage.Model{{Capacity: 1 << 30}, {Capacity: 1 << 30}}}},
	BootOrder: []SourceKind{
		Hdd, Pxe,
	},
	Timings: Timings{PowerOn: seconds(2), POST: seconds(90), OSBoot: seconds(25), Shutdown: seconds(12), PowerOff: seconds(3)},
}

func newMachine(t *testing.T) *Machine {
	t.Helper()
	m, err := New(profile, NewIdentity(1, 0, "node-0", profile), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sameState(a, b State) bool { return cmp.Equal(a, b) }

// bench steps one machine through time.
type bench struct {
	t   *testing.T
	m   *Machine
	now time.Time
}

func newBench(t *testing.T) *bench { return &bench{t: t, m: newMachine(t), now: origin} }

func (b *bench) do(c Command) []Event {
	b.t.Helper()
	evs, err := b.m.Apply(b.now, c)
	if err != nil {
		b.t.Fatalf("Apply(%+v) while %s = %v", c, b.m.st.Phase, err)
	}
	return unnoted(evs)
}

// next moves to the machine's next deadline.
func (b *bench) next() []Event {
	b.t.Helper()
	at, ok := b.m.Deadline()
	if !ok {
		b.t.Fatalf("no deadline while %s", b.m.st.Phase)
	}
	b.now = at
	return unnoted(b.m.Advance(at))
}

// unnoted returns events without log notes.
func unnoted(evs []Event) []Event {
	return slices.DeleteFunc(evs, func(ev Event) bool { _, ok := ev.(event.Note); return ok })
}

// until moves on until the machine waits for a command.
func (b *bench) until(want Phase) (evs []Event) {
	b.t.Helper()
	for {
		if _, ok := b.m.Deadline(); !ok {
			break
		}
		evs = append(evs, b.next()...)
	}
	if b.m.st.Phase != want {
		b.t.Fatalf("phase = %s, want %s", b.m.st.Phase, want)
	}
	return evs
}

func (b *bench) load(s Source) {
	b.t.Helper()
	b.do(Loaded{Boot: b.m.st.Boots, Source: s, Name: "agent"})
	b.until(Running)
}

func (b *bench) tried() []Source {
	b.t.Helper()
	var out []Source
	for b.m.st.Phase == Selecting {
		s := *b.m.View().CurrentSource
		out = append(out, s)
		b.do(NotBootable{Boot: b.m.st.Boots, Source: s})
	}
	return out
}

func TestBootFromDisk(t *testing.T) {
	b := newBench(t)
	got := b.do(Reset{Kind: ResetOn})
	got = append(got, b.until(Selecting)...)
	at := origin.Add(92 * time.Second)
	want := []Event{
		PowerChanged{At: origin, Power: PoweringOn},
		PowerChanged{At: origin.Add(2 * time.Second), Power: PowerOn},
		event.Boot{At: origin.Add(2 * time.Second)},
		BootAttempted{At: at, Source: disk, Boot: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events of power on (-want +got):\n%s", d)
	}
	b.do(Loaded{Boot: 1, Source: disk, Name: "disk"})
	os := OS{Source: disk, Name: "disk", Boot: 1}
	if d := cmp.Diff([]Event{SystemStarted{At: at.Add(25 * time.Second), OS: os}}, b.next()); d != "" {
		t.Errorf("events of a loaded system (-want +got):\n%s", d)
	}
	b.do(Reset{Kind: GracefulShutdown})
	got = b.until(Off)
	end := at.Add((25 + 12) * time.Second)
	want = []Event{SystemStopped{At: end, OS: os}, PowerChanged{At: end.Add(3 * time.Second), Power: PowerOff}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events of a shutdown (-want +got):\n%s", d)
	}
}

// An Advance over several deadlines gives each event the time of its deadline.
func TestAdvanceCatchesUp(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	evs := b.m.Advance(origin.Add(time.Hour))
	if got, want := evs[len(evs)-1].Time(), origin.Add(92*time.Second); !got.Equal(want) {
		t.Errorf("BootTried at %v, want %v", got, want)
	}
	if evs := b.m.Advance(origin.Add(2 * time.Hour)); len(evs) != 0 {
		t.Errorf("Advance() while selecting = %v, want nothing", evs)
	}
}

func TestHaltsWhenNothingBoots(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	want := []Source{disk, {Kind: Hdd, Device: "Disk.1"}, nic, {Kind: Pxe, Device: "2"}}
	if d := cmp.Diff(want, b.tried()); d != "" {
		t.Errorf("sources tried (-want +got):\n%s", d)
	}
	if v := b.m.View(); v.Phase != Halted || v.Power != PowerOn || v.CurrentSource != nil {
		t.Errorf("View() = %s, %s, trying %v, want halted, On, nothing", v.Phase, v.Power, v.CurrentSource)
	}
}

func TestOverride(t *testing.T) {
	for _, enabled := range []Enabled{Once, Continuous} {
		b := newBench(t)
		o := Override{Enabled: enabled, Target: Cd, Mode: UEFI}
		b.do(SetOverride{o})
		b.do(Reset{Kind: ResetOn})
		if got := b.m.View().Override; got != o {
			t.Errorf("%s: override before the boot = %+v, want %+v", enabled, got, o)
		}
		b.until(Selecting)
		if got := *b.m.View().CurrentSource; got != cd {
			t.Errorf("%s: first source = %v, want %v", enabled, got, cd)
		}
		want := o
		if enabled == Once {
			want = Override{Enabled: Disabled, Target: None, Mode: UEFI}
		}
		if got := b.m.View().Override; got != want {
			t.Errorf("%s: override after the boot = %+v, want %+v", enabled, got, want)
		}
		if got := b.tried(); len(got) != 5 || got[0] != cd || got[1] != disk {
			t.Errorf("%s: sources = %v, want the CD, then the boot order", enabled, got)
		}
		b.do(Reset{Kind: ForceRestart})
		b.until(Selecting)
		first := disk
		if enabled == Continuous {
			first = cd
		}
		if got := *b.m.View().CurrentSource; got != first {
			t.Errorf("%s: first source of the second boot = %v, want %v", enabled, got, first)
		}
	}
}

// A boot override of a kind that the boot order contains does not try it twice.
func TestOverrideDuplicatingBootOrder(t *testing.T) {
	b := newBench(t)
	b.do(SetOverride{Override{Enabled: Once, Target: Pxe, Mode: UEFI}})
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	want := []Source{nic, {Kind: Pxe, Device: "2"}, disk, {Kind: Hdd, Device: "Disk.1"}}
	if d := cmp.Diff(want, b.tried()); d != "" {
		t.Errorf("sources tried (-want +got):\n%s", d)
	}
}

func TestOverrideToSetup(t *testing.T) {
	b := newBench(t)
	b.do(SetOverride{Override{Enabled: Once, Target: BiosSetup, Mode: UEFI}})
	b.do(Reset{Kind: ResetOn})
	b.until(InSetup)
	b.do(Reset{Kind: ForceRestart})
	b.until(Selecting)
}

func TestSetOverrideRefusesUnknownValues(t *testing.T) {
	good := Override{Enabled: Once, Target: Cd, Mode: UEFI}
	for _, o := range []Override{
		{Enabled: "Twice", Target: good.Target, Mode: good.Mode},
		{Enabled: good.Enabled, Target: "Tape", Mode: good.Mode},
		{Enabled: good.Enabled, Target: good.Target, Mode: "Quantum"},
	} {
		m := newMachine(t)
		before := m.State()
		if _, err := m.Apply(origin, SetOverride{o}); !errors.Is(err, ErrUnknown) || !sameState(m.State(), before) {
			t.Errorf("SetOverride(%+v) = %v, want %v and no change", o, err, ErrUnknown)
		}
	}
	if _, err := newMachine(t).Apply(origin, Reset{Kind: "Kick"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("Reset(Kick) = %v, want %v", err, ErrUnknown)
	}
}

func TestResetsOfARunningMachine(t *testing.T) {
	tests := []struct {
		kind   ResetKind
		phase  Phase // right after
		end    Phase // when it waits again
		boots  uint64
		stayed time.Duration // until it waits again
	}{
		{ForceOff, Cutting, Off, 1, 3 * time.Second},
		{GracefulShutdown, Stopping, Off, 1, 15 * time.Second},
		{PushPowerButton, Stopping, Off, 1, 15 * time.Second},
		{GracefulRestart, Stopping, Selecting, 2, 102 * time.Second},
		{ForceRestart, POST, Selecting, 2, 90 * time.Second},
		{PowerCycle, Cutting, Selecting, 2, 95 * time.Second},
		{Nmi, Running, Running, 1, 0},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			b := newBench(t)
			b.do(Reset{Kind: ResetOn})
			b.until(Selecting)
			b.load(disk)
			began := b.now
			evs := b.do(Reset{Kind: tt.kind})
			if got := b.m.st.Phase; got != tt.phase {
				t.Errorf("phase = %s, want %s", got, tt.phase)
			}
			evs = append(evs, b.until(tt.end)...)
			if got := b.now.Sub(began); got != tt.stayed {
				t.Errorf("it took %v, want %v", got, tt.stayed)
			}
			if got := b.m.View().Boots; got != tt.boots {
				t.Errorf("boots = %d, want %d", got, tt.boots)
			}
			stopped := 0
			for _, ev := range evs {
				if s, ok := ev.(SystemStopped); ok && s.OS.Boot == 1 {
					stopped++
				}
			}
			if want := map[bool]int{true: 0, false: 1}[tt.kind == Nmi]; stopped != want {
				t.Errorf("Stopped came %d times, want %d: %v", stopped, want, evs)
			}
		})
	}
}

// A forced power off during a graceful restart leaves the machine off.
func TestForceOffEndsAGracefulRestart(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.load(disk)
	b.do(Reset{Kind: GracefulRestart})
	b.do(Reset{Kind: ForceOff})
	b.until(Off)
}

func TestExit(t *testing.T) {
	for again, want := range map[bool]Phase{false: Off, true: Selecting} {
		b := newBench(t)
		b.do(Reset{Kind: ResetOn})
		b.until(Selecting)
		b.load(disk)
		if _, err := b.m.Apply(b.now, Exit{Boot: 7}); !errors.Is(err, ErrStale) {
			t.Errorf("Exit of another boot = %v, want %v", err, ErrStale)
		}
		b.do(Exit{Boot: 1, Restart: again})
		b.until(want)
		if _, err := b.m.Apply(b.now, Exit{Boot: 1}); !errors.Is(err, ErrStale) {
			t.Errorf("Exit of a boot that is over = %v, want %v", err, ErrStale)
		}
	}
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.load(disk)
	b.do(Reset{Kind: GracefulShutdown})
	if _, err := b.m.Apply(b.now, Exit{Boot: 1}); !errors.Is(err, ErrPower) {
		t.Errorf("Exit of a system that is going down = %v, want %v", err, ErrPower)
	}
}

// NotBootable and Loaded change nothing when they name an earlier boot, or a
// source that is not being tried.
func TestStaleAnswers(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.do(Reset{Kind: ForceRestart})
	b.until(Selecting)
	for _, c := range []Command{
		Loaded{Boot: 1, Source: disk}, NotBootable{Boot: 1, Source: disk},
		Loaded{Boot: 2, Source: nic}, NotBootable{Boot: 2, Source: nic},
	} {
		before := b.m.State()
		if evs, err := b.m.Apply(b.now, c); !errors.Is(err, ErrStale) || len(evs) != 0 || !sameState(b.m.State(), before) {
			t.Errorf("Apply(%+v) = %v, %v, want %v and no change", c, evs, err, ErrStale)
		}
	}
	b.do(NotBootable{Boot: 2, Source: disk})
	if _, err := b.m.Apply(b.now, Loaded{Boot: 2, Source: disk}); !errors.Is(err, ErrStale) {
		t.Errorf("Loaded from a source given up = %v, want %v", err, ErrStale)
	}
	b.do(Reset{Kind: ForceOff})
	if _, err := b.m.Apply(b.now, Loaded{Boot: 2, Source: nic}); !errors.Is(err, ErrStale) {
		t.Errorf("Loaded while the power goes = %v, want %v", err, ErrStale)
	}
}

// A machine that is restored from its stored state, at any moment, continues
// like the one that was not stopped.
func TestStateSurvivesJSON(t *testing.T) {
	script := []func(b *bench){
		func(*bench) {},
		func(b *bench) { b.do(SetOverride{Override{Enabled: Once, Target: Cd, Mode: Legacy}}) },
		func(b *bench) { b.do(Reset{Kind: ResetOn}) },
		func(b *bench) { b.next() },
		func(b *bench) { b.next() },
		func(b *bench) { b.until(Selecting) },
		func(b *bench) { b.do(NotBootable{Boot: 1, Source: cd}) },
		func(b *bench) { b.do(Loaded{Boot: 1, Source: disk, Name: "disk"}) },
		func(b *bench) { b.next() },
		func(b *bench) { b.do(Reset{Kind: GracefulRestart}) },
		func(b *bench) { b.next() },
		func(b *bench) { b.do(Reset{Kind: PowerCycle}) },
	}
	b := newBench(t)
	for i, step := range script {
		step(b)
		raw, err := json.Marshal(b.m.State())
		if err != nil {
			t.Fatal(err)
		}
		var st State
		if err := json.Unmarshal(raw, &st); err != nil {
			t.Fatal(err)
		}
		again, err := New(profile, *b.m.identity, &st)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b.m.View(), again.View()); d != "" {
			t.Errorf("step %d: view of the restored machine (-want +got):\n%s", i, d)
		}
		later := b.now.Add(time.Hour)
		twin, err := New(profile, *b.m.identity, &st)
		if err != nil {
			t.Fatal(err)
		}
		b2, err := New(profile, *b.m.identity, new(b.m.State()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b2.Advance(later), twin.Advance(later)); d != "" {
			t.Errorf("step %d: what the restored machine does next (-want +got):\n%s", i, d)
		}
	}
	if _, err := New(profile, *b.m.identity, &State{Main: &Main{Phase: "melting"}}); !errors.Is(err, ErrUnknown) {
		t.Errorf("New(phase melting) = %v, want %v", err, ErrUnknown)
	}
}

// A view is a snapshot: later changes do not appear in it.
func TestViewsDoNotChange(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	v := b.m.View()
	want := *v.CurrentSource
	b.tried()
	b.do(Reset{Kind: ForceRestart})
	b.until(Selecting)
	if *v.CurrentSource != want || v.Boots != 1 || v.Phase != Selecting {
		t.Errorf("an old view changed: trying %v, boots %d, phase %s", *v.CurrentSource, v.Boots, v.Phase)
	}
}

func TestIdentitiesDifferAndAreStable(t *testing.T) {
	const hosts = 10_000
	seen := map[string]string{}
	for i := range hosts {
		id := NewIdentity(1, i, fmt.Sprintf("node-%d", i), profile)
		values := map[string]string{
			"serial": id.Serial, "uuid": id.UUID, "uuid of the BMC": id.BMCUUID(), "uuid of the TPM": id.UUIDOf("tpm", 0),
			"first processor": id.SerialOf("cpu", 0), "second processor": id.SerialOf("cpu", 1), "first module": id.SerialOf("dimm", 0),
		}
		for _, n := range id.NICs {
			values["mac "+n.ID] = n.MAC
		}
		for _, c := range id.Storage {
			values["controller "+c.ID] = c.Serial
			for _, d := range c.Drives {
				values["serial of "+d.ID], values["wwn of "+d.ID] = d.Serial, d.WWN
			}
		}
		for what, v := range values {
			owner := fmt.Sprintf("%s of %s", what, id.Name)
			if other, ok := seen[v]; ok {
				t.Fatalf("%s and %s are both %s", owner, other, v)
			}
			seen[v] = owner
		}
	}
	a, b := NewIdentity(1, 7, "node-7", profile), NewIdentity(1, 7, "node-7", profile)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("the same server made twice (-first +second):\n%s", d)
	}
	if c := NewIdentity(2, 7, "node-7", profile); c.UUID == a.UUID || c.Serial == a.Serial {
		t.Errorf("another seed gives the same server: %+v", c)
	}
}

// Clients store these identities in their databases: they must not change with a
// release.
func TestIdentityIsStableAcrossReleases(t *testing.T) {
	id := NewIdentity(1, 0, "node-0", profile)
	got := []string{id.Serial, id.UUID, id.NICs[0].MAC, id.NICs[1].MAC, id.Storage[0].Drives[0].Serial, id.Storage[0].Drives[1].WWN}
	want := []string{
		"ML9ENXYDCP", "0c4991a2-2c50-472e-9aee-7ad2dd4d0af5", "02:f4:00:00:00:00", "02:f4:00:00:00:01",
		"D1F1DGXSQF", "39f42c0000000001",
	}
	got = append(got, id.BMCUUID(), id.SerialOf("cpu", 0), id.SerialOf("dimm", 7), id.UUIDOf("tpm", 0))
	want = append(want, "e463f7e3-3996-4fe2-9aa7-71b8836f1fc0", "P565VSDQHG", "PYV08YPN12", "8bdd7175-6646-4195-9b52-0a7b24cebf96")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("identity of node-0 (-want +got):\n%s", d)
	}
}

func TestDuration(t *testing.T) {
	var d Duration
	if err := d.UnmarshalText([]byte("90s")); err != nil || d.Duration != 90*time.Second {
		t.Errorf("UnmarshalText(90s) = %v, %v", d, err)
	}
	if b, err := d.MarshalText(); err != nil || string(b) != "1m30s" {
		t.Errorf("MarshalText() = %s, %v, want 1m30s", b, err)
	}
	for _, in := range []string{"", "90", "-1s"} {
		if err := d.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("UnmarshalText(%q) = nil, want an error", in)
		}
	}
}
