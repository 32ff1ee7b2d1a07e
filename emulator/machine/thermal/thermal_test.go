package thermal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

func to(x float64) *float64 { return &x }

func newModel(t testing.TB) *Model {
	t.Helper()
	m := &Model{
		Ambient: 22,
		Watts:   Watts{Standby: 15, Idle: 120, Full: 620, Processors: 440, Memory: 60},
		Work:    map[Work]int{Starting: 20, Testing: 45, Waiting: 10, Loading: 40, Idling: 4, Working: 70},
		Zones: []Zone{
			{ID: "Inlet", Name: "Inlet", Context: "Intake", Lag: 60, Standby: true, Limits: Limits{
				LowCritical: to(0), LowCaution: to(5), Caution: to(38), Critical: to(42), Hysteresis: 2}},
			{ID: "CPU{n}", Name: "CPU {n}", Each: "socket", Context: "CPU", Rise: [2]float64{10, 52}, Lag: 25, Limits: Limits{
				Caution: to(88), Critical: to(95), Fatal: to(105), Hysteresis: 3}},
			{ID: "Exhaust", Name: "Exhaust", Context: "Exhaust", Rise: [2]float64{4, 22}, Lag: 90},
		},
		Fans:     Fans{Count: 6, Needed: 5, RPM: 16000, Least: 20, Follows: "CPU{n}", Curve: [2]float64{40, 85}},
		Supplies: Supplies{Count: 2, Needed: 1, Watts: 800, Volts: 230, Efficiency: 94},
		Rails:    []Rail{{ID: "V12", Name: "12V", Context: "SystemBoard", Volts: 12, Droop: 2}, {ID: "V33AUX", Name: "3.3V AUX", Context: "SystemBoard", Volts: 3.3, Standby: true}},
	}
	m.Check(func(field, must string) { t.Errorf("%s: must %s", field, must) })
	m.Complete(2)
	return m
}

// bench steps one server.
type bench struct {
	t   testing.TB
	th  Thermal
	now time.Time
	all []event.Event
}

func newBench(t testing.TB) *bench {
	return &bench{t: t, th: New(newModel(t), 7, nil), now: origin}
}

func (b *bench) do(c Command) []event.Event {
	b.t.Helper()
	evs, err := b.th.Apply(b.now, c)
	if err != nil {
		b.t.Fatalf("Apply(%+v) = %v", c, err)
	}
	b.all = append(b.all, evs...)
	return evs
}

// pass lets time go by, in one step.
func (b *bench) pass(d time.Duration) []event.Event {
	b.now = b.now.Add(d)
	evs := b.th.Advance(b.now)
	b.all = append(b.all, evs...)
	return evs
}

func (b *bench) read(id string) float64 {
	b.t.Helper()
	x, ok := b.th.View().Reading(id, b.now)
	if !ok {
		b.t.Fatalf("%s reads nothing", id)
	}
	return x
}

func kinds(evs []event.Event) []event.Kind {
	var out []event.Kind
	for _, ev := range evs {
		if n, ok := ev.(event.Note); ok {
			out = append(out, n.Kind)
		}
	}
	return out
}

func TestReadingsFollowTheLoad(t *testing.T) {
	b := newBench(t)
	cold := b.read("Inlet")
	if _, ok := b.th.View().Reading("CPU1", b.now); ok {
		t.Error("the processor of a server that is off reads something")
	}
	if cold < 21 || cold > 23 || b.read("TotalPower") > 20 {
		t.Errorf("off: inlet %v °C, %v W", cold, b.read("TotalPower"))
	}
	b.do(Drive{On, Idling})
	start := b.read("CPU1")
	b.pass(10 * time.Minute)
	idle, idleRPM, idleWatts := b.read("CPU1"), b.read("Fan1"), b.read("TotalPower")
	if start >= idle || idle < 30 || idle > 40 || idleRPM < 3000 || idleRPM > 3600 || idleWatts < 130 || idleWatts > 165 {
		t.Errorf("idle: processor %v °C after %v, fan %v RPM, %v W", idle, start, idleRPM, idleWatts)
	}
	b.do(Drive{On, Working})
	if got := b.read("CPU1"); got != idle {
		t.Errorf("the processor is %v °C at once, was %v", got, idle)
	}
	if got := b.read("TotalPower"); got < 450 {
		t.Errorf("working: %v W", got)
	}
	b.pass(25 * time.Second)
	middle := b.read("CPU1")
	b.pass(10 * time.Minute)
	hot := b.read("CPU1")
	if want := idle + (hot-idle)*(1-1/math.E); math.Abs(middle-want) > 1 {
		t.Errorf("after the time constant %v °C, want %v between %v and %v", middle, want, idle, hot)
	}
	if rpm := b.read("Fan1"); rpm <= idleRPM*1.5 {
		t.Errorf("fan at work %v RPM, idle %v", rpm, idleRPM)
	}
	if b.read("V12") >= 12.05 || b.read("V12") < 11.6 {
		t.Errorf("12 V is %v V at work", b.read("V12"))
	}
	b.do(Drive{Standby, ""})
	b.pass(time.Hour)
	if got := b.read("Inlet"); got != cold {
		t.Errorf("off again: inlet %v °C, was %v", got, cold)
	}
	if len(b.all) != 0 {
		t.Errorf("a normal day has events: %v", b.all)
	}
}

// Readings do not depend on how often the model is advanced.
func TestReadingsDependOnTimeOnly(t *testing.T) {
	a, b := newBench(t), newBench(t)
	for _, x := range []*bench{a, b} {
		x.do(Drive{On, Working})
	}
	for range 100 {
		b.pass(333 * time.Millisecond)
		b.read("CPU1")
	}
	a.pass(b.now.Sub(a.now))
	for _, s := range a.th.model.Sensors {
		x, _ := a.th.View().Reading(s.ID, a.now)
		y, _ := b.th.View().Reading(s.ID, b.now)
		if x != y {
			t.Errorf("%s reads %v when looked at once, %v when often", s.ID, x, y)
		}
	}
}

func TestServersDifferAndAreStable(t *testing.T) {
	m := newModel(t)
	one, same, other := New(m, 1, nil), New(m, 1, nil), New(m, 2, nil)
	differ := 0
	for _, th := range []*Thermal{&one, &same, &other} {
		if _, err := th.Apply(origin, Drive{On, Working}); err != nil {
			t.Fatal(err)
		}
	}
	later := origin.Add(time.Hour)
	for _, s := range m.Sensors {
		x, _ := one.View().Reading(s.ID, later)
		y, _ := same.View().Reading(s.ID, later)
		z, _ := other.View().Reading(s.ID, later)
		if x != y {
			t.Errorf("%s: %v and %v of the same server", s.ID, x, y)
		}
		if x != z {
			differ++
		}
	}
	if differ < 5 {
		t.Errorf("only %d sensors of another server differ", differ)
	}
}

// The event of a threshold has the time at which the reading crosses it.
func TestThresholdsAreCrossedWhenReadingsShowIt(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	b.pass(time.Hour)
	b.do(SetAmbient{to(50)})
	var got []event.Kind
	for {
		at, ok := b.th.Deadline()
		if !ok {
			break
		}
		before, _ := b.th.View().Reading("Inlet", at.Add(-10*time.Millisecond))
		evs := b.pass(at.Sub(b.now))
		n := evs[0].(event.Note)
		got = append(got, n.Kind)
		if fmt.Sprint(b.read("Inlet")) != n.Args[1] || n.Args[1] != n.Args[3] || before >= b.read("Inlet") {
			t.Errorf("%s at %v: note %q, reading %v, just before %v", n.Kind, at.Sub(origin), n.Args, b.read("Inlet"), before)
		}
		if !n.At.Equal(at) {
			t.Errorf("note at %v, deadline %v", n.At, at)
		}
	}
	if want := []event.Kind{event.SensorHigh, event.SensorTooHigh}; !slices.Equal(got, want) {
		t.Errorf("getting warm: %v, want %v", got, want)
	}
	if l := b.th.View().Level("Inlet"); l != Critical {
		t.Errorf("level = %q", l)
	}
	b.do(SetAmbient{to(-20)})
	want := []event.Kind{event.SensorBetter, event.SensorNormal, event.SensorLow, event.SensorTooLow}
	if got := kinds(b.pass(time.Hour)); !slices.Equal(got, want) {
		t.Errorf("getting cold: %v, want %v", got, want)
	}
	b.do(SetAmbient{nil})
	if got := kinds(b.pass(time.Hour)); !slices.Equal(got, want[:2]) {
		t.Errorf("getting normal: %v, want %v", got, want[:2])
	}
	if st := b.th.State(); st.Marks != nil {
		t.Errorf("normal again, and marked: %v", st.Marks)
	}
}

// A reading that varies around a threshold causes one event, because of the
// hysteresis.
func TestHysteresis(t *testing.T) {
	b := newBench(t)
	read := func(x float64) []event.Kind { return kinds(b.do(Force{"Inlet", to(x)})) }
	for _, tt := range []struct {
		x    float64
		want []event.Kind
	}{
		{37, nil}, {38, []event.Kind{event.SensorHigh}}, {37, nil}, {38, nil}, {36, []event.Kind{event.SensorNormal}},
		{42, []event.Kind{event.SensorHigh, event.SensorTooHigh}}, {41, nil}, {40, []event.Kind{event.SensorBetter}}, {20, []event.Kind{event.SensorNormal}},
	} {
		if got := read(tt.x); !slices.Equal(got, tt.want) {
			t.Errorf("at %v: %v, want %v", tt.x, got, tt.want)
		}
	}
	b.do(Force{"Inlet", to(43)})
	if got := kinds(b.do(Force{Sensor: "Inlet"})); !slices.Equal(got, []event.Kind{event.SensorBetter, event.SensorNormal}) {
		t.Errorf("no longer forced: %v", got)
	}
}

func TestFanFails(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Working})
	b.pass(time.Hour)
	rpm, cpu := b.read("Fan2"), b.read("CPU1")
	if got := kinds(b.do(FailFan{"Fan1", true})); got != nil {
		t.Errorf("a fan that has just begun to slow down is noted: %v", got)
	}
	want := []event.Kind{event.FanFailed, event.FansNotRedundant}
	if got := kinds(b.pass(time.Hour)); !slices.Equal(got, want) {
		t.Errorf("one fan fails: %v, want %v", got, want)
	}
	if v := b.th.View(); b.read("Fan1") != 0 || b.read("Fan2") <= rpm || !v.FanFailed(0) || v.FanRedundancy() != Bare {
		t.Errorf("failed fan %v RPM, others %v after %v, %s", b.read("Fan1"), b.read("Fan2"), rpm, v.FanRedundancy())
	}
	if got := b.read("CPU1"); got != cpu {
		t.Errorf("one fan less, and the processor is %v °C instead of %v", got, cpu)
	}
	for _, id := range []string{"Fan2", "Fan3", "Fan4", "Fan5"} {
		b.do(FailFan{id, true})
	}
	evs := b.pass(time.Hour)
	if got := kinds(evs); !slices.Contains(got, event.FansInsufficient) || !slices.Contains(got, event.SensorFatal) || b.read("CPU1") <= cpu {
		t.Errorf("five fans fail: %v, %v °C", got, b.read("CPU1"))
	}
	hot := slices.ContainsFunc(evs, func(ev event.Event) bool { _, ok := ev.(Overheated); return ok })
	if !hot {
		t.Error("nothing tells that the server is too hot to go on")
	}
	for n := range 5 {
		b.do(FailFan{FanID(n), false})
	}
	got := kinds(b.pass(time.Hour))
	if !slices.Contains(got, event.FansRedundant) || b.th.State().Marks != nil {
		t.Errorf("all fans turn again: %v, marked %v", got, b.th.State().Marks)
	}
}

// Fans that start from a standstill cause no failure event.
func TestFansThatStartHaveNotFailed(t *testing.T) {
	b := newBench(t)
	for range 3 {
		b.do(Drive{On, Starting})
		b.pass(time.Second)
		b.do(Drive{On, Testing})
		b.pass(2 * time.Minute)
		b.do(Drive{Standby, ""})
		b.pass(2 * time.Second)
	}
	if len(b.all) != 0 {
		t.Errorf("events: %v", b.all)
	}
}

func TestSupplyFails(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Working})
	in, total := b.read("PSU1InputPower"), b.read("TotalPower")
	if sum := in + b.read("PSU2InputPower"); math.Abs(sum-total) > 1 {
		t.Errorf("supplies take %v W, in all %v", sum, total)
	}
	for _, tt := range []struct {
		do   Command
		want []event.Kind
		fed  []bool
	}{
		{SetSupply{"PSU1", Failed}, []event.Kind{event.SupplyFailed, event.SuppliesNotRedundant}, nil},
		{SetSupply{"PSU1", Failed}, nil, nil},
		{SetSupply{"PSU2", NoInput}, []event.Kind{event.SupplyInputLost, event.SuppliesInsufficient, event.SensorTooLow}, []bool{false}},
		{SetSupply{"PSU1", NoFault}, []event.Kind{event.SupplyRestored, event.SuppliesNotRedundant}, []bool{true}},
		{SetSupply{"PSU2", Absent}, []event.Kind{event.SupplyInputBack, event.SupplyRemoved}, nil},
		{SetSupply{"PSU2", NoFault}, []event.Kind{event.SupplyInserted, event.SuppliesRedundant}, nil},
	} {
		evs := b.do(tt.do)
		var fed []bool
		for _, ev := range evs {
			if f, ok := ev.(Fed); ok {
				fed = append(fed, f.On)
			}
		}
		if got := kinds(evs); !slices.Equal(got, tt.want) || !slices.Equal(fed, tt.fed) {
			t.Errorf("%+v: %v, fed %v; want %v, %v", tt.do, got, fed, tt.want, tt.fed)
		}
		v := b.th.View()
		if len(v.feeding()) == 1 {
			if got := b.read("PSU" + fmt.Sprint(v.feeding()[0]+1) + "InputPower"); math.Abs(got-total) > 1 {
				t.Errorf("%+v: the other supply takes %v W, want %v", tt.do, got, total)
			}
		}
	}
	if _, ok := b.th.View().Reading("PSU2InputVoltage", b.now); !ok {
		t.Error("a supply that is back reads nothing")
	}
}

func TestPowerLimitHoldsTheLoadBack(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Working})
	free := b.read("TotalPower")
	b.do(SetLimit{300})
	if got := b.read("TotalPower"); math.Abs(got-300) > 1 {
		t.Errorf("limited to 300 W it takes %v", got)
	}
	if is, wanted := b.th.View().Load(); is >= wanted {
		t.Errorf("load %v of %v", is, wanted)
	}
	b.do(Drive{On, Idling})
	if got := b.read("TotalPower"); got >= 200 {
		t.Errorf("idle under a limit: %v W", got)
	}
	b.do(Drive{On, Working})
	b.do(SetLimit{})
	if got := b.read("TotalPower"); got != free {
		t.Errorf("without a limit %v W, before %v", got, free)
	}
	least, most := b.th.model.Limits()
	for _, w := range []float64{least - 1, most + 1, -5} {
		if _, err := b.th.Apply(b.now, SetLimit{w}); !errors.Is(err, ErrUnknown) {
			t.Errorf("SetLimit(%v) = %v, want %v", w, err, ErrUnknown)
		}
	}
}

func TestEnergyIsPowerOverTime(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Working})
	busy := b.th.View().Watts()
	b.pass(2 * time.Hour)
	b.do(Drive{Standby, ""})
	rest := b.th.View().Watts()
	if got, want := b.th.View().Usage(b.now.Add(30*time.Second), time.Minute).Mean, (busy+rest)/2; math.Abs(got-want) > 0.1 {
		t.Errorf("average over a minute = %v W, want %v", got, want)
	}
	b.pass(10 * time.Hour)
	if got, want := b.read("TotalEnergy"), (busy*2+rest*10)/1000; math.Abs(got-want) > 0.011 {
		t.Errorf("energy = %v kWh, want %v", got, want)
	}
}

// A model that is restored from its stored state continues like the original.
func TestStateSurvivesJSON(t *testing.T) {
	b := newBench(t)
	for i, step := range []func(){
		func() { b.do(Drive{On, Testing}) }, func() { b.pass(17 * time.Second) }, func() { b.do(SetAmbient{to(60)}) },
		func() { b.pass(40 * time.Second) }, func() { b.do(FailFan{"Fan3", true}) }, func() { b.do(SetSupply{"PSU2", Failed}) },
		func() { b.do(Force{"V12", to(9)}) }, func() { b.do(SetLimit{300}) }, func() { b.do(SetLoad{to(0.9)}) }, func() { b.do(Drive{Mode: Dark}) },
	} {
		step()
		raw, err := json.Marshal(b.th.State())
		if err != nil {
			t.Fatal(err)
		}
		var st State
		if err := json.Unmarshal(raw, &st); err != nil {
			t.Fatal(err)
		}
		again, twin := New(b.th.model, 7, &st), New(b.th.model, 7, b.th.State())
		if !b.th.View().Equal(again.View()) {
			t.Errorf("step %d: the restored one differs:\n%s", i, cmp.Diff(b.th.State(), again.State()))
		}
		later := b.now.Add(time.Hour)
		if d := cmp.Diff(twin.Advance(later), again.Advance(later)); d != "" {
			t.Errorf("step %d: what the restored one does next (-want +got):\n%s", i, d)
		}
	}
	// A state of another release's model is taken as far as it goes.
	odd := New(b.th.model, 7, &State{Inputs: Inputs{Mode: On}, At: origin, Values: []float64{1}, Marks: []Mark{{"Gone", Critical}, {"V12", Fatal}, {"V12", Critical}}})
	odd.Advance(origin.Add(time.Hour))
	if l := odd.View().Level("V12"); l != Normal {
		t.Errorf("12 V is %q", l)
	}
}

// A state that State has returned does not change.
func TestStateIsImmutable(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Working})
	b.do(SetAmbient{to(45)})
	st := b.th.State()
	raw, _ := json.Marshal(st)
	v := b.th.View()
	before, _ := v.Reading("CPU1", b.now)
	b.pass(time.Hour)
	b.do(FailFan{"Fan1", true})
	b.pass(time.Hour)
	if now, _ := json.Marshal(st); string(now) != string(raw) {
		t.Errorf("the state was %s and is %s", raw, now)
	}
	if x, _ := v.Reading("CPU1", b.now.Add(-2*time.Hour)); x != before || b.th.State() == st {
		t.Errorf("an old view reads %v, read %v", x, before)
	}
	b.do(FailFan{"Fan1", true})
	if st := b.th.State(); st != b.th.State() {
		t.Error("what changes nothing makes a new state")
	}
}

func TestCommandsRefuseWhatIsNotThere(t *testing.T) {
	for _, c := range []Command{
		FailFan{"Fan7", true}, FailFan{"CPU1", true}, SetSupply{"PSU3", Failed}, SetSupply{"PSU1", "bored"}, Force{"Nothing", to(1)},
		SetAmbient{to(-100)}, SetAmbient{to(1000)}, SetLoad{to(1.1)}, SetLoad{to(-0.1)},
	} {
		b := newBench(t)
		if _, err := b.th.Apply(b.now, c); !errors.Is(err, ErrUnknown) || b.th.State() != nil {
			t.Errorf("%+v = %v, want %v and no change", c, err, ErrUnknown)
		}
	}
}

func TestModelsAreChecked(t *testing.T) {
	for want, spoil := range map[string]func(*Model){
		"watts":           func(m *Model) { m.Watts.Idle = 1 },
		"work":            func(m *Model) { m.Work["napping"] = 1 },
		"zones[0]":        func(m *Model) { m.Zones[0].Context = "Moon" },
		"zones[0].lag":    func(m *Model) { m.Zones[0].Lag = 0 },
		"zones[1].each":   func(m *Model) { m.Zones[1].Each = "fan" },
		"zones[0].limits": func(m *Model) { m.Zones[0].Limits.Caution = to(99) },
		"fans":            func(m *Model) { m.Fans.Needed = 7 },
		"fans.follows":    func(m *Model) { m.Fans.Follows = "CPU1" },
		"supplies":        func(m *Model) { m.Supplies.Efficiency = 940 },
		"rails[0]":        func(m *Model) { m.Rails[0].Volts = 0 },
		"rails[1].droop":  func(m *Model) { m.Rails[1].Droop = 10 },
	} {
		m := newModel(t)
		spoil(m)
		var got []string
		m.Check(func(field, _ string) { got = append(got, field) })
		if !slices.Contains(got, want) {
			t.Errorf("Check finds %q, want %s", got, want)
		}
	}
	var none Model
	none.Check(func(field, must string) { t.Errorf("of no model: %s: must %s", field, must) })
	none.Complete(2)
	th := New(&none, 1, nil)
	if _, err := th.Apply(origin, Drive{On, Working}); err != nil || len(none.Sensors) != 0 {
		t.Errorf("no model: %v, %d sensors", err, len(none.Sensors))
	}
	if _, ok := th.Deadline(); ok || th.View().Watts() != 0 {
		t.Errorf("no model draws %v W", th.View().Watts())
	}
}
