package machine

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

var onceFromNIC = &Override{Enabled: Once, Target: Pxe, Mode: UEFI}

func TestBootRequestExpiresUnlessNoTimeout(t *testing.T) {
	for _, tt := range []struct {
		name  string
		info  SystemBootOptions
		then  []Command // at once
		after time.Duration
		want  Enabled
	}{
		{"within a minute", SystemBootOptions{}, nil, 59 * time.Second, Once},
		{"after a minute", SystemBootOptions{}, nil, time.Minute, Disabled},
		{"patient", SystemBootOptions{NoTimeout: true}, nil, time.Hour, Once},
		{"patient from now on", SystemBootOptions{}, []Command{SetSystemBootOptions{SystemBootOptions: SystemBootOptions{NoTimeout: true}}}, time.Hour, Once},
		{"set in another way", SystemBootOptions{}, []Command{SetOverride{Override{Enabled: Once, Target: Hdd, Mode: UEFI}}}, time.Hour, Once},
		{"set again", SystemBootOptions{}, []Command{SetSystemBootOptions{Request: onceFromNIC}}, 59 * time.Second, Once},
	} {
		b := newBench(t)
		b.do(SetSystemBootOptions{SystemBootOptions: tt.info, Request: onceFromNIC})
		for _, c := range tt.then {
			b.do(c)
		}
		b.m.Advance(b.now.Add(tt.after))
		if got := b.m.View().Override.Enabled; got != tt.want {
			t.Errorf("%s: override %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The client that has asked for a boot has a minute of its own time to start it,
// and as long again after each power command.
func TestBootRequestExpiresInClientTime(t *testing.T) {
	b, client := newBench(t).running(), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	override := func(labTime, clientTime time.Duration) Enabled {
		b.m.SetClientTime(client.Add(clientTime))
		b.m.Advance(b.now.Add(labTime))
		return b.m.View().Override.Enabled
	}
	b.m.SetClientTime(client)
	b.do(SetSystemBootOptions{Request: onceFromNIC})
	if at, ok := b.m.ClientDeadline(); !ok || !at.Equal(client.Add(time.Minute)) {
		t.Errorf("ClientDeadline() = %v, %t, want %v", at, ok, client.Add(time.Minute))
	}
	if got := override(time.Hour, 59*time.Second); got != Once {
		t.Errorf("after an hour of lab time and 59 s of client time: override %s, want %s", got, Once)
	}
	b.now = b.now.Add(time.Hour)
	b.do(Reset{Kind: ForceOff})
	if got := override(2*time.Hour, 118*time.Second); got != Once {
		t.Errorf("59 s of client time after a power command: override %s, want %s", got, Once)
	}
	if got := override(2*time.Hour, 119*time.Second); got != Disabled {
		t.Errorf("a minute of client time after a power command: override %s, want %s", got, Disabled)
	}
	if at, ok := b.m.ClientDeadline(); ok {
		t.Errorf("ClientDeadline() without a request = %v", at)
	}
}

func TestPowerCommandRestartsBootRequestTimeout(t *testing.T) {
	b := newBench(t).running()
	b.do(SetSystemBootOptions{Request: onceFromNIC})
	b.now = b.now.Add(50 * time.Second)
	b.do(Reset{Kind: ForceOff})
	b.now = b.now.Add(50 * time.Second)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	if got := *b.m.View().CurrentSource; got != nic {
		t.Errorf("booting %v, want %v", got, nic)
	}
}

func TestBootRequestIsConsumedByItsBoot(t *testing.T) {
	b := newBench(t)
	b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{InfoAcknowledge: 0xff, Flags: []byte{1}, DeviceInstance: 2, Mailbox: []byte{7}}, Request: onceFromNIC})
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	if got, want := b.tried(), []Source{{Kind: Pxe, Device: "2"}, disk}; !cmp.Equal(got[:2], want) {
		t.Errorf("tried %v, want first %v", got, want)
	}
	want := SystemBootOptions{InfoAcknowledge: 0xfe, Mailbox: []byte{7}}
	if d := cmp.Diff(want, *b.m.View().SystemBootOptions); d != "" {
		t.Errorf("after the boot (-want +got):\n%s", d)
	}
	if o := b.m.View().Override; o.Enabled != Disabled || o.Target != None {
		t.Errorf("after the boot the override is %+v", o)
	}
}

func TestBootRequestForMissingDeviceMeansAny(t *testing.T) {
	for _, tt := range []struct {
		instance int
		want     Source
	}{{0, nic}, {1, nic}, {2, Source{Kind: Pxe, Device: "2"}}, {3, nic}, {MaxInstance + 2, Source{Kind: Pxe, Device: "2"}}} {
		b := newBench(t)
		b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{DeviceInstance: tt.instance}, Request: onceFromNIC})
		b.do(Reset{Kind: ResetOn})
		b.until(Selecting)
		if got := *b.m.View().CurrentSource; got != tt.want {
			t.Errorf("instance %d: booting %v, want %v", tt.instance, got, tt.want)
		}
	}
}

func TestPersistentBootRequestStays(t *testing.T) {
	b := newBench(t)
	forGood := Override{Enabled: Continuous, Target: Pxe, Mode: UEFI}
	b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{Flags: []byte{1}}, Request: &forGood})
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.load(nic)
	b.do(Exit{Boot: 1, Restart: true})
	b.until(Selecting)
	if v := b.m.View(); v.Override != forGood || *v.CurrentSource != nic || v.SystemBootOptions.Flags == nil {
		t.Errorf("at the second boot %+v, from %v, %+v", v.Override, *v.CurrentSource, v.SystemBootOptions)
	}
}

// The BMC clears the request when the machine starts for another reason
// (IPMI v2.0 rev 1.1, §28.12).
func TestStartForAnotherCauseEndsBootRequest(t *testing.T) {
	restarts := map[ResetCause]func(b *bench){
		causePEF:      func(b *bench) { b.do(Reset{Kind: ForceRestart, ByPEF: true}) },
		CauseCommand:  func(b *bench) { b.do(Reset{Kind: ForceRestart}) },
		CauseSystem:   func(b *bench) { b.do(Exit{Boot: 1, Restart: true}) },
		CauseWatchdog: func(b *bench) { b.do(bark(WatchdogReset)); b.do(StartWatchdog{}) },
		CauseButton: func(b *bench) {
			b.do(Reset{Kind: ForceOff})
			b.until(Off)
			b.do(Reset{Kind: PushPowerButton})
		},
	}
	for _, cause := range []ResetCause{CauseCommand, CauseSystem, CauseWatchdog, CauseButton, causePEF} {
		for _, spares := range [][]ResetCause{nil, {CauseSystem, CauseWatchdog, CauseButton}} {
			b := newBench(t).running()
			b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{NoTimeout: true, KeepOnCauses: spares, KeepOnPEFReset: spares != nil}, Request: onceFromNIC})
			restarts[cause](b)
			b.until(Selecting)
			want := disk
			if cause == CauseCommand || spares != nil {
				want = nic
			}
			if got := *b.m.View().CurrentSource; got != want {
				t.Errorf("%s, spared %v: booting %v, want %v", cause, spares, got, want)
			}
		}
	}
}

func bark(a TimeoutAction) ProgramWatchdog {
	return ProgramWatchdog{Use: WatchdogSMSOS, Action: a, Warning: NoWarning}
}

func TestStartEndsSetInProgress(t *testing.T) {
	b := newBench(t)
	b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{InProgress: true, PartitionScan: true}})
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	if i := b.m.View().SystemBootOptions; i.InProgress || i.PartitionScan {
		t.Errorf("after a start %+v", i)
	}
	b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{InProgress: true}})
	b.do(Reset{Kind: ForceOff})
	b.until(Off)
	if i := b.m.View().SystemBootOptions; i.InProgress {
		t.Errorf("switched off, and %+v", i)
	}
}

func TestBMCResetClearsBootOptions(t *testing.T) {
	for _, down := range [][]Command{{CutAC{}, RestoreAC{}}, {BMCReset{}}} {
		b := newBench(t).running()
		b.do(SetSystemBootOptions{SystemBootOptions: SystemBootOptions{NoTimeout: true, InfoAcknowledge: 3}, Request: onceFromNIC})
		b.do(Identify{Interval: time.Hour})
		b.do(bark(NoAction))
		b.do(StartWatchdog{}) // and it expires at once
		watch := bark(WatchdogPowerOff)
		watch.Countdown = time.Hour
		b.do(watch)
		b.do(StartWatchdog{})
		for _, c := range down {
			b.do(c)
		}
		v := b.m.View()
		if d := cmp.Diff(SystemBootOptions{}, *v.SystemBootOptions); d != "" || v.Override.Enabled != Disabled {
			t.Errorf("%T: override %+v, and (-want +got):\n%s", down[0], v.Override, d)
		}
		if w := v.Watchdog; w.Programmed || !w.Until.IsZero() || w.Expired != nil || v.Asset.IndicatorLED != IndicatorOff {
			t.Errorf("%T: watchdog %+v, light %s", down[0], w, v.Asset.IndicatorLED)
		}
	}
}

func TestBootOptionsAreStored(t *testing.T) {
	b := newBench(t)
	b.do(SetSystemBootOptions{
		SystemBootOptions: SystemBootOptions{KeepOnCauses: []ResetCause{CauseButton}, DeviceInstance: 3, InfoAcknowledge: 9, PartitionSelector: 2, Flags: []byte{1, 2}, Initiator: []byte{3}, ParameterLocks: 4},
		Request:           onceFromNIC,
	})
	raw, err := json.Marshal(b.m.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b.m.State().SystemBootOptions, st.SystemBootOptions); d != "" {
		t.Errorf("stored and read (-want +got):\n%s", d)
	}
}

func TestBootOptionsErrors(t *testing.T) {
	b := newBench(t)
	for _, c := range []Command{
		SetSystemBootOptions{SystemBootOptions: SystemBootOptions{DeviceInstance: 31}},
		SetSystemBootOptions{Request: &Override{Enabled: "Maybe"}},
		Identify{Interval: -1},
	} {
		if _, err := b.m.Apply(b.now, c); !errors.Is(err, ErrUnknown) {
			t.Errorf("%+v = %v, want %v", c, err, ErrUnknown)
		}
	}
}

func TestIdentifyTimesOut(t *testing.T) {
	b := newBench(t)
	b.do(SetAsset{Asset{Tag: "A"}})
	for _, tt := range []struct {
		do   Identify
		at   time.Duration
		want IndicatorLED
	}{
		{Identify{Interval: 15 * time.Second}, 14 * time.Second, IndicatorBlinking}, {Identify{Interval: 15 * time.Second}, 15 * time.Second, IndicatorOff},
		{Identify{ForceOn: true}, 15 * time.Hour, IndicatorBlinking}, {Identify{}, 0, IndicatorOff},
	} {
		b.do(tt.do)
		b.now = b.now.Add(tt.at)
		b.m.Advance(b.now)
		if a := b.m.View().Asset; a.IndicatorLED != tt.want || a.Tag != "A" {
			t.Errorf("%+v, %v later: %+v, want %s", tt.do, tt.at, a, tt.want)
		}
	}
	b.do(Identify{Interval: time.Minute})
	b.do(CutAC{})
	if a := b.m.View().Asset; a.IndicatorLED != IndicatorOff {
		t.Errorf("without mains: %+v", a)
	}
}

func TestPoweredOnCountsOnlyPoweredPhases(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting) // 90 s of POST
	b.load(disk)       // 25 s
	b.now = b.now.Add(time.Hour)
	if got, want := b.m.View().PoweredOn(b.now), time.Hour+115*time.Second; got != want {
		t.Errorf("on for %v, want %v", got, want)
	}
	b.do(CutAC{})
	b.now = b.now.Add(time.Hour)
	b.do(RestoreAC{})
	b.until(Selecting)
	if got, want := b.m.View().PoweredOn(b.now), time.Hour+(115+90)*time.Second; got != want {
		t.Errorf("after an outage on for %v, want %v", got, want)
	}
}

func TestIntrusionSensorStaysUntilRearmed(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		do   Command
		want PhysicalSecurity
		err  error
		note []event.Kind
	}{
		{OpenCover{Open: true}, PhysicalSecurity{CoverOpen: true, Intrusion: true}, nil, []event.Kind{event.CoverOpened}},
		{SetIntrusionSensor{Intrusion: false}, PhysicalSecurity{CoverOpen: true, Intrusion: true}, ErrConflict, nil},
		{OpenCover{Open: false}, PhysicalSecurity{Intrusion: true}, nil, nil},
		{SetIntrusionSensor{Intrusion: false}, PhysicalSecurity{}, nil, []event.Kind{event.CoverClosed}},
		{SetIntrusionSensor{Intrusion: true}, PhysicalSecurity{}, ErrConflict, nil},
		{SetIntrusionSensor{AutoRearm: true}, PhysicalSecurity{AutoRearm: true}, nil, nil},
		{OpenCover{Open: true}, PhysicalSecurity{CoverOpen: true, Intrusion: true, AutoRearm: true}, nil, []event.Kind{event.CoverOpened}},
		{OpenCover{Open: false}, PhysicalSecurity{AutoRearm: true}, nil, []event.Kind{event.CoverClosed}},
	} {
		evs, err := b.m.Apply(b.now, tt.do)
		if got := *b.m.View().PhysicalSecurity; got != tt.want || !errors.Is(err, tt.err) || !cmp.Equal(notes(evs), tt.note) {
			t.Errorf("%+v = %+v, %v, %v, want %+v, %v, %v", tt.do, got, err, notes(evs), tt.want, tt.err, tt.note)
		}
	}
}

func TestLockedPowerButtonSwitchesOnButNotOff(t *testing.T) {
	b := newBench(t)
	b.do(SetFrontPanel{FrontPanel{PowerOff: true}})
	b.do(Reset{Kind: PushPowerButton})
	b.until(Selecting)
	b.load(disk)
	b.do(Reset{Kind: PushPowerButton})
	b.until(Running)
	b.do(SetFrontPanel{FrontPanel{}})
	b.do(Reset{Kind: PushPowerButton})
	b.until(Off)
}

func TestPowerLossReasons(t *testing.T) {
	b := newBench(t).running()
	b.do(CutAC{})
	if got := b.m.View().PowerLoss; got != LostMains {
		t.Errorf("without mains: lost %q", got)
	}
	b.do(RestoreAC{})
	b.until(Selecting)
	b.do(Reset{Kind: ForceOff})
	b.until(Off)
	if got := b.m.View().PowerLoss; got != "" {
		t.Errorf("switched off: lost %q", got)
	}
}
