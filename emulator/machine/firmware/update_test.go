package firmware

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

var timings = Timings{Transfer: 5 * time.Second, Verify: 10 * time.Second, Apply: 60 * time.Second, Restart: 30 * time.Second}

// components are one of each behaviour: a BIOS that the host activates, a BMC
// that restarts itself, two equal network ports with the host's power, a drive
// that restarts itself, and one that nobody updates.
var components = []Component{
	{ID: "BIOS", Kind: KindBIOS, Vendor: "Metalab", Model: "G1", Version: "2.3.1", Lowest: "2.0.0", Backup: "2.2.0", Activation: ByHost, Timings: timings},
	{ID: "BMC", Kind: KindBMC, Vendor: "Metalab", Model: "MLBMC", Version: "1.4.2", Backup: "1.4.2", Activation: ByBMC, Timings: timings},
	{ID: "NIC.1", Kind: KindNIC, Vendor: "Metalab", Model: "ML25G", Version: "1.0.0", Activation: ByHost, HostPower: true, Timings: timings},
	{ID: "NIC.2", Kind: KindNIC, Vendor: "Metalab", Model: "ML25G", Version: "1.0.0", Activation: ByHost, HostPower: true, Timings: timings},
	{ID: "Drive.1", Kind: KindDrive, Vendor: "ATA", Model: "SSD", Version: "ML01", Activation: BySelf, HostPower: true, Timings: timings},
	{ID: "TPM", Kind: KindTPM, Vendor: "Metalab", Model: "TPM2", Version: "7.2", Fixed: true, Timings: timings},
}

func image(k Kind, vendor, model, version string) Image {
	return Image{Kind: k, Vendor: vendor, Model: model, Version: version, SHA256: version}
}

func nic(version string) Image  { return image(KindNIC, "Metalab", "ML25G", version) }
func bios(version string) Image { return image(KindBIOS, "Metalab", "G1", version) }

func newRack(t testing.TB, on bool) *bench {
	b := newBench(t, components...)
	b.f.Power(on)
	return b
}

func (b *bench) runs(want string) {
	b.t.Helper()
	var all []string
	for _, c := range b.f.View().Components() {
		s := c.ID + " " + c.Active.Version
		if c.Broken {
			s += " broken"
		}
		if c.Saved {
			s += " saved"
		}
		if c.Staged != nil {
			s += " staged " + c.Staged.Version
		}
		if c.Active.Version != c.Version || c.Broken || c.Saved || c.Staged != nil {
			all = append(all, s)
		}
	}
	if got := strings.Join(all, ", "); got != want {
		b.t.Errorf("components = %s, want %s", got, want)
	}
}

func TestAnUpdateThatTheHostActivates(t *testing.T) {
	b := newRack(t, true)
	b.expect(b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0")}), "1:update.transferring(BIOS), 1 for 1m45s")
	b.expect(b.pass(5*time.Second), "1:update.verifying(BIOS), 1 for 1m40s")
	b.expect(b.pass(10*time.Second), "1:update.installing(BIOS), 1 for 1m30s")
	b.runs("")
	b.expect(b.pass(60*time.Second), "1:update.awaits.activation(BIOS), 1 waits")
	b.runs("BIOS 2.3.1 staged 2.4.0")
	b.expect(b.pass(time.Hour), "")
	b.expect(b.boot(), "1:update.done(BIOS), component.updated, 1 done ")
	b.runs("BIOS 2.4.0")
	x, _ := b.f.View().Component("BIOS")
	if x.Backup.Version != "2.3.1" || x.Active.At.IsZero() {
		t.Errorf("BIOS = %+v, want its backup to be what it ran before", x)
	}
	if b.f.View().Updates() != nil {
		t.Error("an update that has ended is still there")
	}
}

func TestAnUpdateOfTheBMCRestartsIt(t *testing.T) {
	b := newRack(t, false)
	b.do(Stage{ID: "u", Task: "1", Image: image(KindBMC, "Metalab", "MLBMC", "1.5.0")})
	b.expect(b.pass(75*time.Second), "1:update.verifying(BMC), 1 for 1m40s, 1:update.installing(BMC), 1 for 1m30s, "+
		"1:update.activating(BMC), 1 for 30s, restart bmc")
	b.expect(b.pass(30*time.Second), "1:update.done(BMC), component.updated, 1 done ")
	b.runs("BMC 1.5.0")
}

func TestAnUpdateTakesAllComponentsThatItFits(t *testing.T) {
	b := newRack(t, true)
	b.do(Stage{ID: "u", Task: "1", Image: nic("2.0.0")})
	b.expect(b.pass(3*time.Minute), "1:update.verifying(NIC.1), 1 for 1m40s, 1:update.installing(NIC.1), 1 for 2m30s, "+
		"1:update.installing(NIC.2), 1 for 1m30s, 1:update.awaits.activation(NIC.2), 1 waits")
	b.runs("NIC.1 1.0.0 staged 2.0.0, NIC.2 1.0.0 staged 2.0.0")
	b.boot()
	b.runs("NIC.1 2.0.0, NIC.2 2.0.0")

	b.do(Stage{ID: "v", Image: nic("2.1.0"), Only: []string{"NIC.2"}})
	b.pass(time.Hour)
	b.boot()
	b.runs("NIC.1 2.0.0, NIC.2 2.1.0")
	b.do(Stage{ID: "w", Image: nic("2.2.0"), Not: []string{"NIC.2"}})
	b.pass(time.Hour)
	b.boot()
	b.runs("NIC.1 2.2.0, NIC.2 2.1.0")
}

func TestAnUpdateAtAResetIsWrittenDuringPOST(t *testing.T) {
	b := newRack(t, true)
	b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0"), When: When{Apply: OnReset}})
	b.expect(b.pass(time.Hour), "1:update.verifying(BIOS), 1 for 1m40s, 1:update.awaits.reset(BIOS), 1 waits")
	evs, hold := b.f.Boot(b.now)
	b.expect(evs, "1:update.installing(BIOS), 1 for 1m30s")
	if hold != 90*time.Second {
		t.Errorf("POST waits %v, want 90 s", hold)
	}
	b.runs("")
	b.expect(b.pass(hold), "1:update.activating(BIOS), 1 for 30s, 1:update.done(BIOS), component.updated, 1 done ")
	b.runs("BIOS 2.4.0")
}

func TestAComponentWithoutPowerWaitsForTheHost(t *testing.T) {
	b := newRack(t, false)
	b.do(Stage{ID: "u", Image: image(KindDrive, "ATA", "SSD", "ML02")})
	b.pass(time.Hour)
	if got := b.f.View().Updates()[0].Phase; got != Waiting {
		t.Errorf("phase = %s, want %s", got, Waiting)
	}
	b.boot()
	b.pass(90 * time.Second)
	b.runs("Drive.1 ML02")
}

func TestUpdatesWaitForTheirTime(t *testing.T) {
	window := func(a ApplyTime) When { return When{Apply: a, Start: origin.Add(time.Hour), Length: time.Hour} }
	t.Run("start of a window", func(t *testing.T) {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0"), When: window(AtMaintenanceWindowStart)})
		b.expect(b.pass(59*time.Minute), "1:update.verifying(BIOS), 1 for 1m40s, 1:update.awaits.time(BIOS), 1 waits")
		b.expect(b.pass(2*time.Minute), "1:update.installing(BIOS), 1 for 1m30s, 1:update.awaits.activation(BIOS), 1 waits, reset wanted")
	})
	t.Run("start of a window without power", func(t *testing.T) {
		b := newRack(t, false)
		b.do(Stage{ID: "u", Task: "1", Image: nic("2.0.0"), When: window(AtMaintenanceWindowStart)})
		b.pass(59 * time.Minute)
		b.expect(b.pass(time.Minute), "1:update.awaits.reset(NIC.1), 1 waits, reset wanted")
	})
	t.Run("reset in a window", func(t *testing.T) {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Image: bios("2.4.0"), When: window(InMaintenanceWindowOnReset)})
		b.pass(59 * time.Minute)
		b.boot() // before it
		b.pass(2 * time.Minute)
		b.boot()
		b.pass(90 * time.Second)
		b.runs("BIOS 2.4.0")
	})
	t.Run("no reset in a window", func(t *testing.T) {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0"), When: window(InMaintenanceWindowOnReset)})
		b.pass(time.Hour)
		b.expect(b.pass(time.Hour), "update.failed, 1 done the maintenance window ended before a reset")
		b.runs("")
	})
	t.Run("a request", func(t *testing.T) {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0"), When: When{Apply: OnStartUpdateRequest}})
		b.expect(b.pass(time.Hour), "1:update.verifying(BIOS), 1 for 1m40s, 1:update.awaits.start(BIOS), 1 waits")
		b.expect(b.do(StartUpdates{}), "1:update.installing(BIOS), 1 for 1m30s")
		b.expect(b.do(StartUpdates{}), "")
	})
}

func TestImagesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Stage
		want string // what the update's job tells after it was verified
	}{
		{"bad signature", Stage{Image: bios("2.4.0"), Defect: Unsigned}, "1:update.failed.verification(), update.failed, 1 done the image was refused: its signature is wrong"},
		{"no image", Stage{Defect: Malformed}, "1:update.failed.verification(), update.failed, 1 done the image was refused: it is no firmware image"},
		{"wrong model", Stage{Image: image(KindBIOS, "Metalab", "G2", "2.4.0")}, "1:update.unfit(), update.failed, 1 done no component takes images for G2 of Metalab"},
		{"wrong vendor", Stage{Image: image(KindBIOS, "Other", "G1", "2.4.0")}, "1:update.unfit(), update.failed, 1 done no component takes images for G1 of Other"},
		{"wrong target", Stage{Image: bios("2.4.0"), Only: []string{"BMC"}}, "1:update.unfit(BMC), update.failed, 1 done no component takes images for G1 of Metalab"},
		{"not updateable", Stage{Image: image(KindTPM, "Metalab", "TPM2", "8")}, "1:update.unfit(), update.failed, 1 done no component takes images for TPM2 of Metalab"},
		{"too low", Stage{Image: bios("1.9.9")}, "1:update.skipped.low(BIOS), update.failed, 1 done version 1.9.9 is below the lowest that is supported"},
		{"the same", Stage{Image: bios("2.3.1")}, "1:update.skipped.same(BIOS), 1 done "},
	} {
		b := newRack(t, true)
		tt.in.ID, tt.in.Task = "u", "1"
		b.do(tt.in)
		evs := b.pass(5 * time.Second)
		evs = append(evs, b.pass(10*time.Second)...)
		got := kinds(evs)
		if _, rest, _ := strings.Cut(got, ", 1 for 1m40s, "); rest != "" {
			got = rest
		} else if _, rest, _ := strings.Cut(got, "1 for 0s, "); rest != "" {
			got = rest
		}
		if got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
		b.runs("")
		if x, _ := b.f.View().Component("BIOS"); x.Update != "" || b.f.State() != nil {
			t.Errorf("%s: state = %+v, want none", tt.name, b.f.State())
		}
	}
}

func TestForceOverridesVersions(t *testing.T) {
	for _, version := range []string{"1.9.9", "2.3.1"} {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Image: bios(version), Force: true})
		b.pass(time.Hour)
		b.boot()
		x, _ := b.f.View().Component("BIOS")
		if x.Active.Version != version || x.Active.At.IsZero() {
			t.Errorf("BIOS runs %+v, want what was forced: %s", x.Active, version)
		}
	}
}

func TestAnImageMovesTheLowestVersion(t *testing.T) {
	b := newRack(t, true)
	h := bios("3.0.0")
	h.Lowest = "2.9.0"
	b.do(Stage{ID: "u", Image: h})
	b.pass(time.Hour)
	b.boot()
	b.do(Stage{ID: "v", Task: "1", Image: bios("2.8.0")})
	b.pass(time.Minute)
	b.runs("BIOS 3.0.0")
}

func TestPowerLossWhileWriting(t *testing.T) {
	writing := func(h Image) *bench {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Task: "1", Image: h})
		b.pass(45 * time.Second)
		return b
	}
	b := writing(nic("2.0.0"))
	b.expect(b.f.Cut(b.now, false), "1:update.failed.installation(NIC.1), component.broken, update.failed, 1 done writing the image was interrupted")
	b.runs("NIC.1 1.0.0 broken")
	if got := b.f.View().Version("NIC.1"); got != "" {
		t.Errorf("a broken component runs %s", got)
	}
	b.f.Power(true)
	b.do(Stage{ID: "v", Image: nic("2.0.0")}) // another update heals it
	b.pass(time.Hour)
	b.boot()
	b.runs("NIC.1 2.0.0, NIC.2 2.0.0")

	b = writing(bios("2.4.0"))
	b.expect(b.f.Cut(b.now, true), "1:update.failed.installation(BIOS), component.saved, update.failed, 1 done writing the image was interrupted")
	b.runs("BIOS 2.2.0 saved")
	b.do(Stage{ID: "v", Image: bios("2.3.1")}) // the version that it came with is not what it runs
	b.pass(time.Hour)
	b.boot()
	b.runs("")

	b = writing(bios("2.4.0")) // it has standby power, and goes on
	b.expect(b.f.Cut(b.now, false), "")
	b.pass(time.Hour)
	b.runs("BIOS 2.3.1 staged 2.4.0")
}

func TestAResetDuringPOSTInterruptsWhatIsWrittenThen(t *testing.T) {
	b := newRack(t, true)
	b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0"), When: When{Apply: OnReset}})
	b.pass(time.Minute)
	b.boot()
	b.pass(time.Second)
	b.expect(b.boot(), "1:update.failed.installation(BIOS), component.saved, update.failed, 1 done writing the image was interrupted")
}

func TestPhasesThatBreak(t *testing.T) {
	for _, tt := range []struct {
		phase Phase
		at    time.Duration
		runs  string
		fault string
	}{
		{Received, 2500 * time.Millisecond, "", "the image did not reach the component"},
		{Verifying, 10 * time.Second, "", "the image was damaged on its way to the component"},
		{Applying, 45 * time.Second, "BMC 1.4.2 saved", "writing the image was interrupted"},
		{Restarting, 90 * time.Second, "BMC 1.4.2 saved", "the component does not start with the image"},
	} {
		b := newRack(t, true)
		b.do(Break{Component: "BMC", Phase: tt.phase})
		b.do(Stage{ID: "u", Task: "1", Image: image(KindBMC, "Metalab", "MLBMC", "1.5.0")})
		b.pass(tt.at - time.Millisecond)
		if len(b.f.View().Updates()) != 1 {
			t.Errorf("%s: it broke too early", tt.phase)
		}
		evs := b.pass(time.Millisecond)
		if got := evs[len(evs)-1].(event.TaskDone).Fault; got != tt.fault {
			t.Errorf("%s: fault = %q, want %q", tt.phase, got, tt.fault)
		}
		b.runs(tt.runs)
		b.do(Stage{ID: "v", Image: image(KindBMC, "Metalab", "MLBMC", "1.5.0")}) // it breaks once
		b.pass(time.Hour)
		b.runs("BMC 1.5.0")
	}
	for _, c := range []Break{{Component: "BMC", Phase: Waiting}, {Component: "Fan", Phase: Applying}, {Component: "BMC", Phase: Applying, At: 101}} {
		if _, err := newRack(t, true).f.Apply(origin, c); !errors.Is(err, ErrUnknown) {
			t.Errorf("%+v: %v, want %v", c, err, ErrUnknown)
		}
	}
}

func TestUpdatesCanBeCancelledUntilTheyAreWritten(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		when  ApplyTime
		ok    bool
	}{
		{0, Immediate, true}, {6 * time.Second, Immediate, true}, {20 * time.Second, Immediate, false},
		{2 * time.Minute, Immediate, true}, {time.Minute, OnReset, true}, {time.Minute, OnStartUpdateRequest, true},
	} {
		b := newRack(t, true)
		b.do(Stage{ID: "u", Task: "1", Image: bios("2.4.0"), When: When{Apply: tt.when}})
		b.pass(tt.after)
		evs, err := b.f.Apply(b.now, CancelUpdate{ID: "u"})
		if !tt.ok {
			if !errors.Is(err, ErrBusy) {
				t.Errorf("after %v: %v, want %v", tt.after, err, ErrBusy)
			}
			continue
		}
		if err != nil {
			t.Errorf("after %v: %v", tt.after, err)
		}
		b.expect(evs, "1 done cancelled")
		b.runs("")
		if b.f.State() != nil {
			t.Errorf("after %v: state = %+v, want none", tt.after, b.f.State())
		}
	}
	if _, err := newRack(t, true).f.Apply(origin, CancelUpdate{ID: "u"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("CancelUpdate of nothing = %v, want %v", err, ErrUnknown)
	}
}

func TestWhatIsStagedAndWhatWasThereBeforeCanBeActivated(t *testing.T) {
	b := newRack(t, true)
	b.do(Stage{ID: "u", Task: "1", Image: nic("2.0.0"), Keep: true})
	evs := b.pass(time.Hour)
	b.expect(evs[len(evs)-1:], "1 done ")
	b.boot()
	b.runs("NIC.1 1.0.0 staged 2.0.0, NIC.2 1.0.0 staged 2.0.0")
	b.do(Activate{ID: "v", Task: "2", Slot: StagedSlot, On: []string{"NIC.2"}})
	b.pass(time.Minute)
	b.expect(b.boot(), "2:update.done(NIC.2), component.updated, 2 done ")
	b.runs("NIC.1 1.0.0 staged 2.0.0, NIC.2 2.0.0")

	b.do(Activate{ID: "w", Slot: BackupSlot, On: []string{"BIOS"}})
	b.pass(time.Minute)
	b.boot()
	b.runs("BIOS 2.2.0, NIC.1 1.0.0 staged 2.0.0, NIC.2 2.0.0")
	if x, _ := b.f.View().Component("BIOS"); x.Backup.Version != "2.3.1" {
		t.Errorf("backup = %+v, want what ran before", x.Backup)
	}
	for name, c := range map[string]Activate{
		"no backup": {ID: "x", Slot: BackupSlot, On: []string{"NIC.1"}}, "nothing staged": {ID: "x", Slot: StagedSlot, On: []string{"BMC"}},
		"nothing": {ID: "x", Slot: StagedSlot}, "unknown": {ID: "x", Slot: BackupSlot, On: []string{"Fan"}},
		"two kinds": {ID: "x", Slot: BackupSlot, On: []string{"BIOS", "BMC"}},
	} {
		if _, err := b.f.Apply(b.now, c); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v, want %v", name, err, ErrUnknown)
		}
	}
}

func TestUpdatesThatCannotBegin(t *testing.T) {
	b := newRack(t, true)
	b.do(Stage{ID: "u", Image: bios("2.4.0")})
	for name, tt := range map[string]struct {
		c    Command
		want error
	}{
		"same ID":           {Stage{ID: "u", Image: nic("2.0.0")}, ErrBusy},
		"no ID":             {Stage{Image: nic("2.0.0")}, ErrBusy},
		"unknown target":    {Stage{ID: "v", Only: []string{"Fan"}}, ErrUnknown},
		"unknown exception": {Stage{ID: "v", Not: []string{"Fan"}}, ErrUnknown},
		"unknown time":      {Stage{ID: "v", When: When{Apply: "Soon"}}, ErrWhen},
	} {
		if _, err := b.f.Apply(b.now, tt.c); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	b.pass(15 * time.Second)
	b.do(Stage{ID: "v", Task: "2", Image: bios("2.5.0")}) // the first is being written
	evs := b.pass(15 * time.Second)
	b.expect(evs[len(evs)-1:], "2 done component BIOS is being updated already")
	for i := range maxUpdates {
		_, err := b.f.Apply(b.now, Stage{ID: strings.Repeat("x", i+1), Image: nic("2.0.0"), When: When{Apply: OnStartUpdateRequest}})
		if want := i == maxUpdates-1; errors.Is(err, ErrBusy) != want {
			t.Fatalf("update %d: %v", i, err)
		}
	}
}

func TestUpdatesSurviveAKillAtAnyTime(t *testing.T) {
	straight, killed := newRack(t, true), newRack(t, true)
	for _, b := range []*bench{straight, killed} {
		b.do(Stage{ID: "u", Task: "1", Image: nic("2.0.0")})
	}
	want := kinds(straight.f.Advance(origin.Add(time.Hour)))
	var got []event.Event
	for range 3600 {
		got = append(got, killed.pass(time.Second)...) // restarts each time
	}
	if kinds(got) != want {
		t.Errorf("killed: %s\nwant %s", kinds(got), want)
	}
}

func TestAStoredUpdateThatMakesNoSenseIsRefused(t *testing.T) {
	for _, u := range []Update{{ID: "u", Phase: "dancing"}, {ID: "u"}, {ID: "u", Phase: Applying, Targets: []string{"Fan"}}} {
		if _, err := New(&Model{Read: held(generic(t)), Components: components}, &State{Updates: []Update{u}}); !errors.Is(err, ErrUnknown) {
			t.Errorf("New() with %+v = %v, want %v", u, err, ErrUnknown)
		}
	}
}
