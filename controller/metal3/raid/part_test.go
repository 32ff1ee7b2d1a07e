package raid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

const gib = 1 << 30

// bench is a host with a Part, which is observed and stepped like in the
// reconciler.
type bench struct {
	t     *testing.T
	part  *Part
	clock *testclock.FakeClock
	bmc   *bmctest.Array
	host  *metal3.BareMetalHost
	agent inband.Status
	jobs  []job.Job
	kills func() bool // called after each step; true replaces the controller
	never bool        // the last failure was PartImpossible
}

func newBench(t *testing.T, raid *metal3.RAIDConfig) *bench {
	b := &bench{t: t, clock: testclock.NewFakeClock(time.Unix(1_800_000_000, 0)), kills: func() bool { return false }}
	b.bmc = bmctest.NewArray(&bmctest.Fake{}, 900*gib, 900*gib, 900*gib, 900*gib, -2000*gib, -2000*gib, -2400*gib)
	b.bmc.Press(bmc.On)
	b.host = &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{UID: "u-1"},
		Spec:       metal3.BareMetalHostSpec{RAID: raid, BMC: metal3.BMCDetails{Address: "redfish-virtualmedia://192.0.2.2/redfish/v1/Systems/1"}},
	}
	b.host.Status.Provisioning.State = metal3.StatePreparing
	b.replace()
	return b
}

func (b *bench) replace() { b.part = &Part{Clock: b.clock} }

func (b *bench) server() host.Server {
	sys, _ := b.bmc.Now()
	return host.Server{
		Host: b.host, Client: b.bmc, System: sys, Now: b.clock.Now(), Boot: inband.Boot{Host: "u-1", ID: "b"}, Agent: b.agent,
		Offer: func(j job.Job) error { b.jobs = append(b.jobs, j); return nil },
	}
}

// prepare runs until the part is settled or has failed; it returns the reason of
// the failure.
func (b *bench) prepare() string {
	b.t.Helper()
	for range 100 {
		state, why, err := b.part.Observe(context.Background(), b.server())
		if err != nil {
			b.t.Fatalf("Observe: %v", err)
		}
		switch state {
		case phase.PartSettled:
			return ""
		case phase.PartFailed, phase.PartImpossible:
			b.part.Reset(b.host)
			b.never = state == phase.PartImpossible
			return why
		case phase.PartWanted:
			b.part.Begin(b.host)
		}
		if b.kills() { // between the status and the step
			b.replace()
			continue
		}
		if err := b.part.Step(context.Background(), b.server()); err != nil {
			b.part.Reset(b.host)
			return err.Error()
		}
		if b.kills() {
			b.replace()
		}
		b.clock.Step(10 * time.Second)
	}
	b.t.Fatalf("not prepared after 100 steps: %+v", b.bmc.Volumes())
	return ""
}

func hard(v ...metal3.HardwareRAIDVolume) *metal3.RAIDConfig {
	if v == nil {
		v = []metal3.HardwareRAIDVolume{}
	}
	return &metal3.RAIDConfig{HardwareRAIDVolumes: v}
}

func sized(level string, gibibytes int) metal3.HardwareRAIDVolume {
	return metal3.HardwareRAIDVolume{Level: level, SizeGibibytes: &gibibytes}
}

func (b *bench) have() []string {
	var out []string
	for _, v := range b.bmc.Volumes() {
		var drives []string
		for _, d := range v.Drives {
			drives = append(drives, d[len(d)-1:])
		}
		out = append(out, fmt.Sprintf("%s of %s, %d GiB", v.Level, strings.Join(drives, ""), v.Bytes/gib))
	}
	return out
}

func (b *bench) expect(want ...string) {
	b.t.Helper()
	if d := cmp.Diff(want, b.have()); d != "" {
		b.t.Errorf("volumes (-want +got):\n%s", d)
	}
}

func (b *bench) count(v bmctest.Verb) (n int) {
	for _, c := range b.bmc.Calls() {
		if c.Verb == v {
			n++
		}
	}
	return n
}

func TestVolumesAreCreated(t *testing.T) { // B-170, B-174
	turns, flash := true, false
	two := 2
	for name, tt := range map[string]struct {
		want []metal3.HardwareRAIDVolume
		have []string
	}{
		"the least of disks":     {[]metal3.HardwareRAIDVolume{{Level: "1"}}, []string{"1 of 01, 900 GiB"}},
		"turning (B-174)":        {[]metal3.HardwareRAIDVolume{{Level: "1", Rotational: &turns}}, []string{"1 of 45, 2000 GiB"}},
		"not turning (B-174)":    {[]metal3.HardwareRAIDVolume{{Level: "5", Rotational: &flash}}, []string{"5 of 012, 1800 GiB"}},
		"as small as will do":    {[]metal3.HardwareRAIDVolume{{Level: "1", Rotational: &turns, SizeGibibytes: &two}}, []string{"1 of 45, 2 GiB"}},
		"only the large will do": {[]metal3.HardwareRAIDVolume{sized("0", 2300)}, []string{"0 of 6, 2300 GiB"}},
		"number of disks":        {[]metal3.HardwareRAIDVolume{{Level: "0", NumberOfPhysicalDisks: &two}}, []string{"0 of 01, 1800 GiB"}},
		"named disks are no other's": {[]metal3.HardwareRAIDVolume{{Level: "1"}, {Level: "1", Controller: "1", PhysicalDisks: []string{"Disk.0", "disk.3"}}},
			[]string{"1 of 12, 900 GiB", "1 of 03, 900 GiB"}},
		"1+0": {[]metal3.HardwareRAIDVolume{{Level: "1+0", Controller: "Fake RAID"}}, []string{"1+0 of 0123, 1800 GiB"}},
		"6":   {[]metal3.HardwareRAIDVolume{{Level: "6"}}, []string{"6 of 0123, 1800 GiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, hard(tt.want...))
			if why := b.prepare(); why != "" {
				t.Fatal(why)
			}
			b.expect(tt.have...)
			if got := b.host.Status.Provisioning.RAID.HardwareRAIDVolumes; !cmp.Equal(got, tt.want) { // B-174
				t.Errorf("status %+v", got)
			}
			made := b.count(bmctest.CreateVolume)
			b.host.Status.Provisioning.RAID = nil // like another host with the same volumes: nothing is created twice (B-173)
			if why := b.prepare(); why != "" || b.count(bmctest.CreateVolume) != made || b.count(bmctest.DeleteVolume) > 0 {
				t.Errorf("the second time: %q, %d made, %d deleted", why, b.count(bmctest.CreateVolume)-made, b.count(bmctest.DeleteVolume))
			}
		})
	}
}

func TestOtherVolumesAreDeleted(t *testing.T) { // B-170: delete all, then create; [] clears; nil keeps
	other := bmc.Volume{Name: "old", Level: bmc.Level5, Bytes: 1800 * gib, Drives: []string{"/c/1/d/0", "/c/1/d/1", "/c/1/d/2"}}
	b := newBench(t, nil)
	b.bmc.Add(other)
	if why := b.prepare(); why != "" || b.count(bmctest.ReadStorage) > 0 {
		t.Errorf("nil: %q, the storage was read %d times", why, b.count(bmctest.ReadStorage))
	}
	b.expect("5 of 012, 1800 GiB")
	b.host.Spec.RAID = hard(sized("1", 100))
	if why := b.prepare(); why != "" {
		t.Fatal(why)
	}
	b.expect("1 of 01, 100 GiB")
	b.host.Spec.RAID = hard()
	if why := b.prepare(); why != "" {
		t.Fatal(why)
	}
	b.expect()
}

func TestSlowControllers(t *testing.T) {
	for _, apply := range []bmctest.Apply{bmctest.AtOnce, bmctest.ByJob, bmctest.OnReset} {
		for seed := range uint64(40) {
			t.Run(fmt.Sprintf("%s %d", apply, seed), func(t *testing.T) {
				chance := rand.New(rand.NewPCG(seed, 1))
				b := newBench(t, hard(sized("1", 100), sized("5", 200)))
				b.bmc.Add(bmc.Volume{Level: bmc.Level0, Bytes: gib, Drives: []string{"/c/1/d/1"}})
				b.bmc.Apply = apply
				b.bmc.Press(bmc.Off)
				resets := 0
				b.kills = func() bool {
					if b.count(bmctest.SetPower) > resets { // each start of the server carries out pending operations
						resets = b.count(bmctest.SetPower)
						b.bmc.Restarted()
					}
					if chance.IntN(3) == 0 {
						b.bmc.Finish()
					}
					return chance.IntN(4) == 0
				}
				if why := b.prepare(); why != "" {
					t.Fatalf("seed %d: %s", seed, why)
				}
				if got := b.have(); len(got) != 2 || got[0][:4] != "1 of" || got[1][:4] != "5 of" {
					t.Errorf("seed %d: %v", seed, got)
				}
				if n := b.count(bmctest.CreateVolume); n != 2 {
					t.Errorf("seed %d: %d volumes were made, want each once", seed, n)
				}
			})
		}
	}
}

func TestFailuresAreReportedAndRetried(t *testing.T) { // B-53
	b := newBench(t, hard(sized("1", 100)))
	b.bmc.Apply, b.bmc.Break = bmctest.ByJob, "the controller broke"
	done := false
	b.kills = func() bool {
		b.bmc.Finish()
		return false
	}
	if why := b.prepare(); why != "the controller broke" {
		t.Fatalf("it failed as %q", why)
	}
	b.bmc.Break = ""
	// A drive fails while the volume is created.
	b.kills = func() bool {
		b.bmc.Finish()
		if !done && len(b.bmc.Volumes()) > 0 {
			done = true
			b.bmc.FailDrive(0)
		}
		return false
	}
	if why := b.prepare(); why != "volume Volume 1 has lost a drive while it was made" {
		t.Fatalf("it failed as %q", why)
	}
	if why := b.prepare(); why != "" {
		t.Fatal(why)
	}
	b.expect("1 of 12, 100 GiB")
}

func TestImpossibleVolumesLeaveTheOthers(t *testing.T) {
	three := 3
	soft := func(v ...metal3.SoftwareRAIDVolume) *metal3.RAIDConfig {
		return &metal3.RAIDConfig{SoftwareRAIDVolumes: v}
	}
	for name, tt := range map[string]struct {
		raid    *metal3.RAIDConfig
		address string
		want    string
	}{
		"both (B-171)":               {raid: &metal3.RAIDConfig{HardwareRAIDVolumes: hard(sized("1", 1)).HardwareRAIDVolumes, SoftwareRAIDVolumes: soft(metal3.SoftwareRAIDVolume{Level: "1"}).SoftwareRAIDVolumes}, want: "hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time"},
		"no controller (B-171)":      {raid: hard(metal3.HardwareRAIDVolume{Level: "1", PhysicalDisks: []string{"a", "b"}}), want: "'physicalDisks' specified without 'controller' in hardware RAID volume 0: 'controller' must be specified if 'physicalDisks' are used"},
		"numbers (B-171, B-172)":     {raid: hard(metal3.HardwareRAIDVolume{Level: "1", Controller: "1", NumberOfPhysicalDisks: &three, PhysicalDisks: []string{"a", "b"}}), want: "the 'numberOfPhysicalDisks'[3] and number of 'physicalDisks'[2] is not same for volume 0: the numberOfPhysicalDisks[3] is not same as number of items in physicalDisks[2]"},
		"names (B-172)":              {raid: hard(metal3.HardwareRAIDVolume{Level: "1", Name: "a"}, metal3.HardwareRAIDVolume{Level: "1", Name: "a"}), want: "the names(a) of volume[0] and volume[1] are repeated"},
		"first is no mirror (B-172)": {raid: soft(metal3.SoftwareRAIDVolume{Level: "0"}), want: "the level in first volume of software raid must be RAID1"},
		"driver (B-172)":             {raid: hard(sized("1", 1)), address: "ibmc://192.0.2.2/redfish/v1/Systems/1", want: "raid settings are defined, but the node's driver ibmc does not support RAID."},
		"no software (B-172)":        {raid: soft(metal3.SoftwareRAIDVolume{Level: "1"}), address: "irmc://192.0.2.2", want: "node's driver irmc does not support software RAID."},
		"level 2":                    {raid: hard(metal3.HardwareRAIDVolume{Level: "2"}), want: "hardware RAID volume 0: level 2 is not offered: use one of the levels 0, 1, 5, 6, 1+0, 5+0"},
		"level 2 of a controller":    {raid: hard(metal3.HardwareRAIDVolume{Level: "2", Controller: "1"}), want: "hardware RAID volume 0: level 2 is not offered by controller 1: use one of the levels 0, 1, 5, 6, 1+0, 5+0"},
		"controller":                 {raid: hard(metal3.HardwareRAIDVolume{Level: "1", Controller: "7"}), want: "hardware RAID volume 0: there is no controller 7: use one of 1"},
		"odd (B-176)":                {raid: hard(metal3.HardwareRAIDVolume{Level: "1+0", Controller: "1", PhysicalDisks: []string{"a", "b", "c", "d", "e"}}), want: "hardware RAID volume 0: level 1+0 needs an even number of physical disks, not 5"},
		"too few (B-176)":            {raid: hard(metal3.HardwareRAIDVolume{Level: "5+0"}), want: "hardware RAID volume 0: level 5+0 needs 6 physical disks of one kind, and 4 are free"},
		"too small (B-176)":          {raid: hard(sized("1", 5000)), want: "hardware RAID volume 0: no 2 free physical disks are large enough for 5000 GiB at level 1"},
		"unknown disk":               {raid: hard(metal3.HardwareRAIDVolume{Level: "1", Controller: "1", PhysicalDisks: []string{"Disk.0", "Disk.99"}}), want: "hardware RAID volume 0: controller 1 has no physical disk Disk.99: use some of Disk.0, Disk.1, Disk.2, Disk.3, Disk.4, Disk.5, Disk.6"},
		"the same disk twice":        {raid: hard(metal3.HardwareRAIDVolume{Level: "1", Controller: "1", PhysicalDisks: []string{"Disk.0", "disk.0"}}), want: "hardware RAID volume 0: physicalDisks name a disk twice"},
		"disks of another kind":      {raid: hard(metal3.HardwareRAIDVolume{Level: "1", Controller: "1", Rotational: new(true), PhysicalDisks: []string{"Disk.0", "Disk.1"}}), want: "hardware RAID volume 0: physical disk Disk.0 is none of those asked for (hdd)"},
		"too small disks":            {raid: hard(metal3.HardwareRAIDVolume{Level: "1", SizeGibibytes: new(901), Controller: "1", PhysicalDisks: []string{"Disk.0", "Disk.1"}}), want: "hardware RAID volume 0: the physicalDisks are too small for 901 GiB at level 1: use at most 900"},
		"level of the controller":    {raid: hard(metal3.HardwareRAIDVolume{Level: "6+0"}), want: "hardware RAID volume 0: level 6+0 is not offered: use one of the levels 0, 1, 5, 6, 1+0, 5+0"},
		"room for two":               {raid: soft(metal3.SoftwareRAIDVolume{Level: "1"}, metal3.SoftwareRAIDVolume{Level: "0"}), want: "software RAID volume 0: sizeGibibytes must be set where the second volume shall have room on the same disks"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tt.raid)
			b.bmc.Add(bmc.Volume{Level: bmc.Level0, Bytes: 900 * gib, Drives: []string{"/c/1/d/6"}})
			if tt.address != "" {
				b.host.Spec.BMC.Address = tt.address
			}
			if why := b.prepare(); why != tt.want {
				t.Errorf("it failed as %q, want %q", why, tt.want)
			}
			if !b.never {
				t.Error("it is tried again")
			}
			b.expect("0 of 6, 900 GiB")
		})
	}
}

// B-53: RAID for which a server has too few disks waits for disks that are replaced. None of its
// volumes is touched before.
func TestImpossibleVolumesAreMadeWithOtherDisks(t *testing.T) {
	b := newBench(t, hard(metal3.HardwareRAIDVolume{Level: "5", Rotational: new(true)}))
	b.bmc.FailDrive(6)
	const why = "hardware RAID volume 0: level 5 needs 3 physical disks of one kind (hdd), and 2 are free"
	if got := b.prepare(); got != why || !b.never {
		t.Fatalf("it failed as %q, impossible %t", got, b.never)
	}
	b.expectState(phase.PartImpossible, why)
	b.bmc.ReplaceDrive(6)
	if got := b.prepare(); got != "" {
		t.Fatal(got)
	}
	b.expect("5 of 456, 4000 GiB")
}

// A server without a RAID controller gives none of the specification's texts, which
// are about drivers.
func TestBMCWithoutStorage(t *testing.T) {
	b := newBench(t, hard(sized("1", 1)))
	b.bmc.Fail(bmctest.ReadStorage, &bmc.UnsupportedError{Verb: "Storage", Why: "there is none"})
	if why := b.prepare(); why != "hardware RAID settings are defined, but the BMC shows no RAID controller of the server: remove spec.raid.hardwareRAIDVolumes" || !b.never {
		t.Errorf("it failed as %q, impossible %t", why, b.never)
	}
	b = newBench(t, hard())
	b.bmc.Fail(bmctest.ReadStorage, &bmc.UnsupportedError{Verb: "Storage", Why: "there is none"})
	if why := b.prepare(); why != "" {
		t.Errorf("nothing to clear: %q", why)
	}
}

func TestSoftwareRAIDIsCreatedByTheAgent(t *testing.T) { // B-163, B-170, B-173
	half := 20
	b := newBench(t, &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{
		{Level: "1", SizeGibibytes: &half, PhysicalDisks: []metal3.RootDeviceHints{{SerialNumber: "S1"}, {SerialNumber: "S2"}}}, {Level: "0"},
	}})
	s := b.server()
	if state, _, err := b.part.Observe(t.Context(), s); state != phase.PartWanted || err != nil {
		t.Fatalf("Look = %s, %v", state, err)
	}
	b.part.Begin(b.host)
	if !b.part.InBand(b.host) {
		t.Fatal("it does not ask for the agent")
	}
	if err := b.part.Step(t.Context(), s); err != nil || len(b.jobs) > 0 {
		t.Fatalf("without the agent: %v, offered %v", err, b.jobs)
	}
	b.agent = inband.Status{Up: true}
	if err := b.part.Step(t.Context(), b.server()); err != nil {
		t.Fatal(err)
	}
	want := job.Job{ID: "b-raid", Kind: job.RAID, RAID: &job.RAIDSpec{ID: "b-raid", Made: 1_800_000_000, Arrays: []job.ArraySpec{
		{Name: "root", Level: "1", SizeGiB: 20, Disks: []job.Hints{{SerialNumber: "S1"}, {SerialNumber: "S2"}}}, {Name: "data", Level: "0"},
	}}}
	if d := cmp.Diff([]job.Job{want}, b.jobs); d != "" {
		t.Errorf("offered (-want +got):\n%s", d)
	}
	b.agent.Jobs = map[string]job.Report{"b-raid": {State: job.Failed, Error: "no disk matches"}}
	if state, why, _ := b.part.Observe(t.Context(), b.server()); state != phase.PartFailed || why != "no disk matches" {
		t.Errorf("Look = %s, %q", state, why)
	}
	b.agent.Jobs["b-raid"] = job.Report{State: job.Done}
	if state, _, _ := b.part.Observe(t.Context(), b.server()); state != phase.PartSettled {
		t.Errorf("Look = %s when the job is done", state)
	}
	if root, err := b.part.Root(t.Context(), b.server()); err != nil || root.Array != "root" || !b.part.HasRoot(b.host) {
		t.Errorf("Root = %+v, %v", root, err)
	}
	// It is no longer wanted: another job deletes it.
	b.host.Spec.RAID, b.agent, b.jobs = nil, inband.Status{Up: true}, nil
	if state, _, _ := b.part.Observe(t.Context(), b.server()); state != phase.PartWanted {
		t.Fatalf("Look = %s when it is not asked for", state)
	}
	b.part.Begin(b.host)
	gone := job.Job{ID: "b-raid", Kind: job.Clean, Clean: &job.CleanSpec{Arrays: job.ArraysOnly}}
	if err := b.part.Step(t.Context(), b.server()); err != nil || !cmp.Equal(b.jobs, []job.Job{gone}) {
		t.Errorf("Step = %v, offered %+v, want %+v", err, b.jobs, gone)
	}
	b.part.Reset(b.host) // the job has failed: the array is still to be deleted
	if state, _, _ := b.part.Observe(t.Context(), b.server()); state != phase.PartRunning || !b.part.InBand(b.host) {
		t.Errorf("Look = %s after a failure", state)
	}
}

func TestTheFirstVolumeIsTheRootDevice(t *testing.T) { // B-163, B-174
	b := newBench(t, hard(sized("1", 100), sized("1", 200)))
	if why := b.prepare(); why != "" {
		t.Fatal(why)
	}
	first := b.bmc.Volumes()[0]
	root, err := b.part.Root(t.Context(), b.server())
	if err != nil || root.Hints.WWNWithExtension != first.WWN || first.WWN == "" {
		t.Errorf("Root = %+v, %v, want %s", root, err, first.WWN)
	}
	b.bmc.FailDrive(0)
	if again, err := b.part.Root(t.Context(), b.server()); err != nil || again != root {
		t.Errorf("Root of a degraded volume = %+v, %v", again, err)
	}
}

func TestForgottenHostLeavesNoProgress(t *testing.T) {
	b := newBench(t, &metal3.RAIDConfig{HardwareRAIDVolumes: []metal3.HardwareRAIDVolume{{Level: "1"}}})
	b.part.Begin(b.host)
	if state, why, err := b.part.Observe(t.Context(), b.server()); err != nil || state != phase.PartRunning || len(b.part.runs) != 1 {
		t.Fatalf("Observe = %s, %q, %v with the progress of %d hosts, want running with that of one", state, why, err, len(b.part.runs))
	}
	b.part.Forget(b.host.UID)
	if len(b.part.runs) > 0 {
		t.Errorf("the progress of %d hosts is left, want none", len(b.part.runs))
	}
}

// B-53 B-173: software RAID that the agent finds impossible is not tried again before the
// specification or the inspected server changes.
func TestSoftwareRAIDThatTheAgentFindsImpossibleWaitsForAChange(t *testing.T) {
	const size = 90000
	wanted := size
	b := newBench(t, &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{{Level: "1", SizeGibibytes: &wanted}}})
	const why = "array root: too large"
	fail := func(t *testing.T) {
		t.Helper()
		b.part.Begin(b.host)
		b.agent = inband.Status{Up: true, Jobs: map[string]job.Report{"b-raid": {State: job.Failed, Error: why, Impossible: true}}}
		b.expectState(phase.PartImpossible, why)
		b.part.Reset(b.host)
		b.agent = inband.Status{}
		b.expectState(phase.PartImpossible, why)
	}
	for name, change := range map[string]func(){
		"another specification": func() { *b.host.Spec.RAID.SoftwareRAIDVolumes[0].SizeGibibytes = 100 },
		"another inspection": func() {
			b.host.Status.OperationHistory.Inspect.Start = metav1.NewTime(b.host.Status.OperationHistory.Inspect.Start.Add(time.Hour))
		},
		"another controller": b.replace,
		"detached":           func() { b.part.Forget(b.host.UID) },
	} {
		t.Run(name, func(t *testing.T) {
			fail(t)
			change()
			b.expectState(phase.PartWanted, "")
			*b.host.Spec.RAID.SoftwareRAIDVolumes[0].SizeGibibytes = size
		})
	}
}

func (b *bench) expectState(want phase.PartState, wantWhy string) {
	b.t.Helper()
	if state, why, err := b.part.Observe(b.t.Context(), b.server()); state != want || why != wantWhy || err != nil {
		b.t.Errorf("Observe = %s, %q, %v, want %s, %q", state, why, err, want, wantWhy)
	}
}
