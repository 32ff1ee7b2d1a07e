package thermal

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// inlet are the thresholds of the inlet, changed.
func (b *bench) inlet(how func(*Limits)) Limits {
	l := *b.th.View().Thresholds("Inlet")
	how(&l)
	return l
}

func (b *bench) adjust(how func(*Limits)) {
	b.t.Helper()
	l := b.inlet(how)
	b.do(Adjust{Setting{Sensor: "Inlet", Limits: &l}})
}

// A threshold that a client sets applies at once: the present reading may cross
// it.
func TestThresholdsCanBeSet(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	b.do(Force{"Inlet", to(30)})
	kinds := func(how func(*Limits)) []event.Kind {
		n := len(b.all)
		b.adjust(how)
		return kinds(b.all[n:])
	}
	for i, step := range []struct {
		how  func(*Limits)
		want []event.Kind
		is   Level
	}{
		{func(l *Limits) { l.Caution = to(31) }, nil, Normal},
		{func(l *Limits) { l.Caution = to(29) }, []event.Kind{event.SensorHigh}, Caution},
		{func(l *Limits) { l.Caution = to(31) }, nil, Caution}, // its hysteresis is 2
		{func(l *Limits) { l.Hysteresis = 0 }, []event.Kind{event.SensorNormal}, Normal},
		// The worse one lies nearer for a while, and both are reached.
		{func(l *Limits) { l.Critical = to(28) }, []event.Kind{event.SensorHigh, event.SensorTooHigh}, Critical},
		{func(l *Limits) { l.Critical = to(42) }, []event.Kind{event.SensorBetter, event.SensorNormal}, Normal},
		{func(l *Limits) { l.LowCaution, l.LowHysteresis = to(30), to(5) }, []event.Kind{event.SensorLow}, LowCaution},
		{func(l *Limits) { l.LowCaution = to(26) }, nil, LowCaution},
		{func(l *Limits) { l.LowHysteresis = to(4) }, []event.Kind{event.SensorNormal}, Normal},
	} {
		if got := kinds(step.how); !slices.Equal(got, step.want) || b.th.View().Level("Inlet") != step.is {
			t.Errorf("step %d: %v and %q, want %v and %q", i, got, b.th.View().Level("Inlet"), step.want, step.is)
		}
	}
	model := b.th.model.Sensor("Inlet").Limits
	b.do(Adjust{Setting{Sensor: "Inlet", Limits: &model}})
	if st := b.th.State(); st.Settings != nil {
		t.Errorf("as the model has them: stored %+v", st.Settings)
	}
}

func TestThresholdsThatCannotBe(t *testing.T) {
	b := newBench(t)
	for _, s := range []Setting{
		{Sensor: "Nothing"},
		{Sensor: "Inlet", Limits: new(b.inlet(func(l *Limits) { l.Fatal = to(60) }))},
		{Sensor: "Inlet", Limits: new(b.inlet(func(l *Limits) { l.Caution = nil }))},
		{Sensor: "Inlet", Limits: new(b.inlet(func(l *Limits) { l.Hysteresis = -1 }))},
		{Sensor: "Inlet", Limits: new(b.inlet(func(l *Limits) { l.LowHysteresis = to(-1) }))},
	} {
		if _, err := b.th.Apply(b.now, Adjust{s}); !errors.Is(err, ErrUnknown) || b.th.State() != nil {
			t.Errorf("%+v: %v, want %v and no change", s, err, ErrUnknown)
		}
	}
}

func TestSensorThatIsNotRead(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	b.do(Force{"Inlet", to(50)})
	b.do(Adjust{Setting{Sensor: "Inlet", Off: true}})
	if x, ok := b.th.View().Reading("Inlet", b.now); ok || b.th.View().Level("Inlet") != Normal {
		t.Errorf("it reads %v and is %q", x, b.th.View().Level("Inlet"))
	}
	n := len(b.all)
	b.do(Adjust{Setting{Sensor: "Inlet"}})
	if got := kinds(b.all[n:]); !slices.Equal(got, []event.Kind{event.SensorHigh, event.SensorTooHigh}) {
		t.Errorf("read again: %v", got)
	}
}

func TestSensorSettingsSuppressEvents(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	events := func(set Setting) []event.Kind {
		set.Sensor = "Inlet"
		b.do(Adjust{set})
		return append(kinds(b.do(Force{"Inlet", to(50)})), kinds(b.do(Force{"Inlet", to(20)}))...)
	}
	if got := events(Setting{Silent: true}); got != nil {
		t.Errorf("events of a silent one: %v", got)
	}
	for want, set := range map[event.Kind]Setting{
		event.SensorHigh: {Reached: []Level{Caution}}, event.SensorTooHigh: {Reached: []Level{Critical}},
		event.SensorBetter: {Left: []Level{Critical}}, event.SensorNormal: {Left: []Level{Caution}},
	} {
		all := []event.Kind{event.SensorHigh, event.SensorTooHigh, event.SensorBetter, event.SensorNormal}
		all = slices.DeleteFunc(all, func(k event.Kind) bool { return k == want })
		if got := events(set); !slices.Equal(got, all) {
			t.Errorf("%+v: events %v, want %v", set, got, all)
		}
	}
	if _, err := b.th.Apply(b.now, Adjust{Setting{Sensor: "Inlet", Left: []Level{Fatal}}}); !errors.Is(err, ErrUnknown) {
		t.Errorf("a level that it has not: %v", err)
	}
}

func TestRearmRepeatsEvents(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	if got := b.do(Rearm{"Inlet"}); got != nil {
		t.Errorf("rearmed while normal: %v", got)
	}
	b.do(Force{"Inlet", to(43)})
	b.pass(time.Hour)
	for range 2 {
		evs := b.do(Rearm{"Inlet"})
		if got := kinds(evs); !slices.Equal(got, []event.Kind{event.SensorHigh, event.SensorTooHigh}) || !evs[0].Time().Equal(b.now) {
			t.Errorf("rearmed: %v at %v, now %v", got, evs[0].Time(), b.now)
		}
	}
	if _, err := b.th.Apply(b.now, Rearm{"Nothing"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("rearmed what is not there: %v", err)
	}
}

// The power usage of the last minute (least, most, mean) covers all its changes.
func TestUsageOfTheLastMinute(t *testing.T) {
	b := newBench(t)
	watts := func() float64 { return b.th.View().Watts() }
	off := watts()
	b.do(Drive{On, Idling})
	idle := watts()
	b.pass(20 * time.Second)
	b.do(Force{"Inlet", to(43)}) // changes nothing of it
	b.pass(10 * time.Second)
	b.do(Drive{On, Working})
	busy := watts()
	b.pass(10 * time.Second)
	is := func(over time.Duration, want Usage) {
		t.Helper()
		got := b.th.View().Usage(b.now, over)
		if got.Is != want.Is || got.Least != want.Least || got.Most != want.Most || math.Abs(got.Mean-want.Mean) > 1e-6 {
			t.Errorf("over %v: %+v, want %+v", over, got, want)
		}
	}
	is(0, Usage{busy, busy, busy, busy})
	is(10*time.Second, Usage{busy, busy, busy, busy})
	is(20*time.Second, Usage{busy, idle, busy, (busy + idle) / 2})
	is(time.Minute, Usage{busy, off, busy, (busy*10 + idle*30 + off*20) / 60})
	is(time.Hour, Usage{busy, off, busy, (busy*10 + idle*30 + off*20) / 60})
	b.pass(time.Minute)
	is(time.Minute, Usage{busy, busy, busy, busy})
	b.do(Drive{Standby, ""})
	if n := len(b.th.State().Drawn); n != 1 {
		t.Errorf("%d changes are remembered", n)
	}
}
