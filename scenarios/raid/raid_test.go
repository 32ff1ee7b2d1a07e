package raid_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
	"github.com/metalab-dev/metalab/controller/metal3/raid"
	simbmc "github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// bench is an emulated server with a RAID controller, and a Part that prepares it
// over the wire.
type bench struct {
	t      *testing.T
	lab    *racktest.Rack
	server *rack.Host
	client bmc.Client
	part   *raid.Part
	host   *metal3.BareMetalHost
	clock  *testclock.FakeClock
}

func newBench(t *testing.T, want ...metal3.HardwareRAIDVolume) *bench {
	t.Helper()
	r := rackfile.Default(1)
	r.Hosts[0].Profile = "raid"
	l := racktest.Start(t, rack.Config{Rack: &r})
	b := &bench{t: t, lab: l, server: l.First(), clock: testclock.NewFakeClock(time.Unix(1_800_000_000, 0))}
	address := control.Hosts(l.Rack)[0].BMCAddress
	parsed, err := bmc.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	user, password := l.Credentials(b.server)
	b.client, err = redfish.Open(t.Context(), bmc.Config{
		Address: parsed, Credentials: bmc.Credentials{Username: user, Password: password}, RootCAs: l.CAs(), Clock: &bmctest.Clock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	if want == nil {
		want = []metal3.HardwareRAIDVolume{}
	}
	b.host = &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}, Spec: metal3.BareMetalHostSpec{
		BMC: metal3.BMCDetails{Address: address}, RAID: &metal3.RAIDConfig{HardwareRAIDVolumes: want},
	}}
	b.host.Status.Provisioning.State = metal3.StatePreparing
	b.part = &raid.Part{Clock: b.clock}
	return b
}

// prepare runs until the part is settled or has failed; between is called after
// each step.
func (b *bench) prepare(between func()) (why string) {
	b.t.Helper()
	for range 200 {
		sys, err := b.client.System(b.t.Context())
		if err == nil {
			why, err = b.step(sys)
			if err == nil && why != "" {
				return why
			}
		}
		if err != nil && !errors.Is(err, bmc.ErrUnreachable) {
			b.t.Fatal(err)
		}
		between()
		b.lab.Advance(10 * time.Second)
		b.clock.Step(10 * time.Second)
	}
	b.t.Fatalf("not prepared: %+v", b.server.Volumes())
	return ""
}

const settled = "settled"

func (b *bench) step(sys bmc.System) (string, error) {
	s := host.Server{Host: b.host, Client: b.client, System: sys, Now: b.clock.Now()}
	state, why, err := b.part.Observe(b.t.Context(), s)
	switch {
	case err != nil:
		return "", err
	case state == phase.PartSettled:
		return settled, nil
	case state == phase.PartFailed:
		b.part.Reset(b.host)
		return why, nil
	case state == phase.PartWanted:
		b.part.Begin(b.host)
	}
	return "", b.part.Step(b.t.Context(), s)
}

func (b *bench) expect(want ...storage.RAIDType) {
	b.t.Helper()
	var got []storage.RAIDType
	for _, v := range b.server.Volumes() {
		got = append(got, v.Type)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("volumes %v, want %v", got, want)
	}
}

func volume(level string, turns bool, gib int) metal3.HardwareRAIDVolume {
	return metal3.HardwareRAIDVolume{Level: level, Rotational: &turns, SizeGibibytes: &gib}
}

// Every level that the server's drives permit (B-174, B-176); the drive in the
// operating system is the one that the BMC names (B-163).
func TestLevelsOverTheWire(t *testing.T) {
	for level, want := range map[string]storage.RAIDType{
		"0": storage.RAID0, "1": storage.RAID1, "5": storage.RAID5, "6": storage.RAID6, "1+0": storage.RAID10,
	} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, volume(level, true, 500))
			if why := b.prepare(func() {}); why != settled {
				t.Fatal(why)
			}
			b.expect(want)
			root, err := b.part.Root(t.Context(), host.Server{Host: b.host, Client: b.client})
			if v := b.server.Volumes()[0]; err != nil || root.Hints.WWNWithExtension != "0x"+v.WWN || v.Size() < 500<<30 {
				t.Errorf("Root = %+v, %v, want %s of %d bytes", root, err, v.WWN, v.Size())
			}
			b.host.Spec.RAID.HardwareRAIDVolumes = []metal3.HardwareRAIDVolume{}
			if why := b.prepare(func() {}); why != settled {
				t.Fatal(why)
			}
			b.expect()
		})
	}
}

// A BMC that restarts and a controller that is replaced, at every step: nothing is
// created twice, and no host is prepared with half of it.
func TestNothingIsHalfDone(t *testing.T) {
	for after := range 8 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, volume("1", true, 100), volume("5", false, 100), volume("0", true, 10))
			n := 0
			why := b.prepare(func() {
				if n++; n == after {
					if _, err := b.server.ApplyBMC(context.Background(), simbmc.Restart{Kind: simbmc.ForceRestart}); err != nil {
						t.Fatal(err)
					}
					b.part = &raid.Part{Clock: b.clock}
				}
			})
			if why != settled {
				t.Fatal(why)
			}
			b.expect(storage.RAID1, storage.RAID5, storage.RAID0)
		})
	}
}

// A drive that fails before its volume exists is reported, and the next attempt
// uses another (B-53).
func TestADriveFailsInTheMiddle(t *testing.T) {
	b := newBench(t, volume("1", true, 100), volume("1", false, 100))
	failed := false
	why := b.prepare(func() {
		if vs := b.server.Volumes(); len(vs) > 0 && !failed {
			failed = true
			if err := b.server.FailDrive(t.Context(), vs[0].Members[0].Bay); err != nil {
				t.Fatal(err)
			}
		}
	})
	if !failed || why == settled {
		t.Fatalf("prepared as %q though a drive failed: %v", why, failed)
	}
	if why := b.prepare(func() {}); why != settled {
		t.Fatal(why)
	}
	b.expect(storage.RAID1, storage.RAID1)
	for _, v := range b.server.Volumes() {
		if v.Degraded() {
			t.Errorf("volume %s is degraded", v.ID)
		}
	}
}
