package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

func deg(x float64) *float64 { return &x }

// warm gives a model what makes heat: a processor, a fan and two supplies.
func warm(p *Profile) {
	p.Processors.Sockets = 1
	p.Thermal = thermal.Model{
		Ambient: 22, Watts: thermal.Watts{Standby: 10, Idle: 100, Full: 500},
		Work:     map[thermal.Work]int{thermal.Testing: 40, thermal.Idling: 5, thermal.Working: 80},
		Zones:    []thermal.Zone{{ID: "CPU", Name: "CPU", Context: "CPU", Rise: [2]float64{10, 50}, Lag: 20, Limits: thermal.Limits{Critical: deg(90), Fatal: deg(100)}}},
		Fans:     thermal.Fans{Count: 1, Needed: 1, RPM: 10000, Least: 20, Follows: "CPU", Curve: [2]float64{30, 80}},
		Supplies: thermal.Supplies{Count: 2, Needed: 1, Watts: 800, Volts: 230, Efficiency: 90},
	}
	p.Thermal.Complete(1)
}

func (b *bench) reading(id string) float64 {
	b.t.Helper()
	v := b.m.View()
	x, ok := v.Thermal.Reading(id, b.now)
	if !ok {
		b.t.Fatalf("%s reads nothing while %s", id, v.Phase)
	}
	return x
}

func TestLoadFollowsThePhase(t *testing.T) {
	b := benchOf(t, warm)
	watts := []float64{b.reading("TotalPower")}
	b.do(Reset{Kind: ResetOn})
	b.next()
	watts = append(watts, b.reading("TotalPower"))
	b.until(Selecting)
	b.do(Loaded{Boot: 1, Source: disk, Name: "agent", Busy: true})
	b.until(Running)
	watts = append(watts, b.reading("TotalPower"))
	if !slices.IsSorted(watts) || watts[0] == watts[1] || watts[1] == watts[2] {
		t.Errorf("off, in POST and at work it takes %v W", watts)
	}
	b.do(Exit{Boot: 1, Restart: true})
	b.until(Selecting)
	b.load(disk)
	if got := b.reading("TotalPower"); got >= watts[1] {
		t.Errorf("an idle system takes %v W", got)
	}
	b.do(Reset{Kind: ForceOff})
	b.until(Off)
	if got := b.reading("TotalPower"); got != watts[0] {
		t.Errorf("off again it takes %v W, took %v", got, watts[0])
	}
}

func TestOverheatedMachinePowersOff(t *testing.T) {
	b := benchOf(t, warm).running()
	b.do(Reset{Kind: GracefulRestart}) // the machine overheats before it restarts
	b.do(Thermal{thermal.SetAmbient{Celsius: deg(95)}})
	var evs []Event
	for b.m.st.Phase != Off {
		at, ok := b.m.Deadline()
		if !ok {
			t.Fatalf("it stays %s", b.m.st.Phase)
		}
		b.now = at
		evs = append(evs, b.m.Advance(at)...)
	}
	if got := notes(evs); !slices.Contains(got, event.SensorFatal) || !slices.Contains(got, event.Overheated) {
		t.Errorf("notes %v", got)
	}
	if v := b.m.View(); v.Thermal.Level("CPU") != thermal.Normal {
		t.Errorf("off, and the processor is %s", v.Thermal.Level("CPU"))
	}
	b.do(Thermal{thermal.SetAmbient{}})
	b.now = b.now.Add(time.Hour)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
}

func TestMachineWithoutWorkingSuppliesLosesPower(t *testing.T) {
	fail := func(b *bench, id string, f thermal.Fault) []Event {
		return b.do(Thermal{thermal.SetSupply{ID: id, Fault: f}})
	}
	b := benchOf(t, warm).running()
	fail(b, "PSU1", thermal.Failed)
	if b.m.st.Phase != Running {
		t.Fatalf("with one supply it is %s", b.m.st.Phase)
	}
	if evs := fail(b, "PSU2", thermal.NoInput); b.m.st.Phase != Unplugged || !slices.Contains(evs, Event(event.ACPower{At: b.now})) {
		t.Fatalf("without supplies it is %s: %v", b.m.st.Phase, evs)
	}
	if _, err := b.m.Apply(b.now, RestoreAC{}); !errors.Is(err, ErrPower) {
		t.Errorf("RestoreAC = %v, want %v: nobody has cut the mains", err, ErrPower)
	}
	// Cut meanwhile, the mains are gone whatever the supplies do.
	b.do(CutAC{})
	fail(b, "PSU1", thermal.NoFault)
	if b.m.st.Phase != Unplugged {
		t.Errorf("a supply without mains feeds it: %s", b.m.st.Phase)
	}
	fail(b, "PSU1", thermal.Failed)
	b.do(RestoreAC{})
	if b.m.st.Phase != Unplugged {
		t.Errorf("mains without a supply feed it: %s", b.m.st.Phase)
	}
	fail(b, "PSU2", thermal.NoFault)
	if b.m.st.Phase != Starting || b.m.st.Cause != CauseRestore {
		t.Errorf("fed again it is %s, for %s", b.m.st.Phase, b.m.st.Cause)
	}
}

// A rollback restores the complete thermal state.
func TestRestoreIncludesThermal(t *testing.T) {
	b := benchOf(t, warm).running()
	before := b.m.State()
	was := b.reading("CPU")
	b.do(Thermal{thermal.Force{Sensor: "CPU", Reading: deg(95)}})
	b.m.Restore(before)
	if got := b.reading("CPU"); got != was {
		t.Errorf("the processor reads %v, read %v", got, was)
	}
	if _, err := b.m.Apply(b.now, Thermal{thermal.FailFan{ID: "Fan9", Failed: true}}); !errors.Is(err, thermal.ErrUnknown) || b.m.State() != before {
		t.Errorf("FailFan(Fan9) = %v", err)
	}
}
