package rack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/leak"
)

// victimDir and victimImage turn this test binary into a rack that is killed.
const (
	victimDir   = "METALAB_TEST_VICTIM"
	victimImage = "METALAB_TEST_IMAGE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir, os.Getenv(victimImage))
		os.Exit(1) // the test should have killed it
	}
	os.Exit(leak.Main(m))
}

// victim runs a rack of two hosts and changes them. What it has printed was answered
// and must survive the kill.
func victim(dir, image string) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	c := clock.NewScaled(racktest.Origin, 1000)
	started := make(chan uint64)
	l, err := rack.Open(ctx, rack.Config{
		Dir: dir, Rack: new(rackfile.Default(2)), Clock: c, Listen: "lo:0",
		Events: func(h *rack.Host, ev machine.Event) {
			switch ev := ev.(type) {
			case machine.BootAttempted:
				if h.Index() == 0 { // nobody takes events of the other host
					check(h.Apply(ctx, machine.Loaded{Boot: ev.Boot, Source: ev.Source, Name: "disk"}))
				}
			case machine.SystemStarted:
				started <- ev.OS.Boot
			}
		},
	})
	check(err)
	go func() { check(c.Run(ctx)) }()
	go func() { check(l.Serve(ctx)) }()
	a, b := l.Hosts()[0], l.Hosts()[1]
	check(b.Apply(ctx, machine.SetOverride{Override: machine.Override{Enabled: machine.Continuous, Target: machine.Cd, Mode: machine.UEFI}}))
	check(a.Power(ctx, "On"))
	check(b.Power(ctx, "On"))
	boot := <-started
	drive, err := a.Attach(boot, "Disk.0")
	check(err)
	_, err = drive.WriteAt([]byte("written"), 1<<30)
	check(err)
	_, err = a.ApplyBMC(ctx, bmc.InsertMedia{Slot: "Cd", Image: image + "/a.iso"})
	check(err)
	admin, _ := a.Admin()
	fmt.Printf("at %v password %s time %s\n", a.Address(), admin.Password, c.Now().Format(time.RFC3339Nano))
	_, err = b.ApplyBMC(ctx, bmc.InsertMedia{Slot: "Cd", Image: image + "/half.iso"})
	panic(err) // the fetch hangs at half of the image
}

func TestKilledRackComesBack(t *testing.T) {
	url, began := images(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimImage+"="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	<-began // the fetch has begun

	var held *rack.HeldError
	_, err = rack.Open(t.Context(), rack.Config{Dir: dir, Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0"})
	if !errors.As(err, &held) || held.PID != cmd.Process.Pid {
		t.Errorf("Open() while process %d has it = %v, want a HeldError that names it", cmd.Process.Pid, err)
	}

	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait() // returns that it was killed
	if names := cached(t, dir); len(names) != 2 {
		t.Errorf("the killed rack left %v, want an image and half of one", names)
	}

	var d diary
	l := racktest.Start(t, rack.Config{Dir: dir, Events: d.event})
	l.Settle()
	a, b := l.Hosts()[0], l.Hosts()[1]
	_, password := l.Credentials(a)
	last, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(printed[strings.Index(printed, "time ")+5:]))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("at %v password %s ", a.Address(), password); !strings.HasPrefix(printed, want) {
		t.Errorf("the killed rack was %q, now it is %q", printed, want)
	}
	if got := l.Clock().Now(); got.Before(last) {
		t.Errorf("the lab's time is %v, and it was %v already", got, last)
	}
	if v := a.Machine(); v.Phase != machine.Running || v.OS.Boot != 1 {
		t.Errorf("%s is %s, want running", a.Name(), v.Phase)
	}
	if diff := cmp.Diff([]string{"SystemStarted"}, d.of(a)); diff != "" {
		t.Errorf("events of %s (-want +got):\n%s", a.Name(), diff)
	}
	drive, err := a.Attach(1, "Disk.0")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 7)
	if _, err := drive.ReadAt(got, 1<<30); err != nil || string(got) != "written" {
		t.Errorf("Disk.0 holds %q, %v", got, err)
	}
	if e, ok := a.BMC().Log.Entry(1); !ok || e.Kind != event.PowerOn {
		t.Errorf("the first entry of the log of %s = %+v, want that it was switched on", a.Name(), e)
	}
	if got := holds(t, a); got != "an image" {
		t.Errorf("media of %s = %q, want the image", a.Name(), got)
	}

	// The other host was in the middle of its boot, with half an image.
	if o := b.Machine().Override; o.Enabled != machine.Continuous || o.Target != machine.Cd {
		t.Errorf("override of %s = %+v", b.Name(), o)
	}
	if s := b.BMC().Slots[0]; s.Image != "" || s.Inserted {
		t.Errorf("slot of %s = %+v, want it empty: its image had not arrived", b.Name(), s)
	}
	if names := cached(t, dir); len(names) != 1 {
		t.Errorf("there is %v, want one image", names)
	}
	l.Advance(3 * time.Minute)
	if v := b.Machine(); v.Phase != machine.Running {
		t.Errorf("%s is %s, want running from its disk", b.Name(), v.Phase)
	}
	if _, err := b.ApplyBMC(t.Context(), insert(url+"/a.iso")); err != nil {
		t.Errorf("InsertMedia after the restart = %v", err)
	}
}
