package bmctest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

func testOpen(t *testing.T, s suite) {
	c := s.open(t)
	got := s.read(t, c)
	if got.ID == "" {
		t.Errorf("System().ID is empty: %+v", got)
	}
	if s.Power != nil && got.Power != s.Power() {
		t.Errorf("System().Power = %q, the BMC has %q", got.Power, s.Power())
	}
	if diff := cmp.Diff(got, s.read(t, c)); diff != "" {
		t.Errorf("System() differs the second time:\n%s", diff)
	}
}

func testWrongPassword(t *testing.T, s suite) {
	wrong := s.Config
	wrong.Credentials.Password = "not-" + wrong.Credentials.Password
	err := s.try(t, t.Context(), wrong)
	s.wantErr(t, "Open with a wrong password", err, bmc.ErrUnauthorized)
	if err != nil && strings.Contains(err.Error(), wrong.Credentials.Password) {
		t.Errorf("Open with a wrong password repeats it: %v", err)
	}
	s.read(t, s.open(t))
}

func testChangedPassword(t *testing.T, s suite) {
	need(t, "way to change a password", s.SetPassword != nil)
	old := s.Config.Credentials.Password
	c := s.open(t)
	s.SetPassword("New-" + old)
	defer s.SetPassword(old)
	_, err := c.System(t.Context())
	s.wantErr(t, "System after a change of password", err, bmc.ErrUnauthorized)
	s.wantErr(t, "SetPower after a change of password", c.SetPower(t.Context(), bmc.PowerOn), bmc.ErrUnauthorized)
	s.Config.Credentials.Password = "New-" + old
	s.read(t, s.open(t))
}

func testPower(t *testing.T, s suite) {
	c := s.open(t)
	for range 2 {
		s.power(t, c, bmc.PowerOff, bmc.Off)
		s.power(t, c, bmc.PowerOff, bmc.Off) // again: no error, no change
		s.power(t, c, bmc.PowerOn, bmc.On)
		s.power(t, c, bmc.PowerOn, bmc.On)
	}
	s.power(t, c, bmc.PowerOff, bmc.Off)
	if err := c.SetPower(t.Context(), "explode"); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("SetPower(explode) error = %v, want ErrUnsupported", err)
	}
}

func testSoftOff(t *testing.T, s suite) {
	c := s.open(t)
	s.power(t, c, bmc.PowerOff, bmc.Off)
	if err := c.SetPower(t.Context(), bmc.PowerSoftOff); err != nil {
		t.Errorf("SetPower(soft off) of a system that is off: error = %v", err)
	}
	s.wantPower(t, c, bmc.PowerSoftOff, bmc.Off)
	s.power(t, c, bmc.PowerOn, bmc.On)
	// An operating system may ignore the request.
	if err := c.SetPower(t.Context(), bmc.PowerSoftOff); err != nil && !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("SetPower(soft off) error = %v", err)
	}
	s.power(t, c, bmc.PowerOff, bmc.Off)
}

func testReset(t *testing.T, s suite) {
	c := s.open(t)
	s.power(t, c, bmc.PowerOff, bmc.Off)
	s.power(t, c, bmc.PowerReset, bmc.On) // the system is off
	s.power(t, c, bmc.PowerReset, bmc.On)
	s.power(t, c, bmc.PowerOff, bmc.Off)
}

func testPowerCycle(t *testing.T, s suite) {
	c := s.open(t)
	s.power(t, c, bmc.PowerOn, bmc.On)
	if err := c.SetPower(t.Context(), bmc.PowerCycle); errors.Is(err, bmc.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatalf("SetPower(cycle) error = %v", err)
	}
	s.wantPower(t, c, bmc.PowerCycle, bmc.On)
	s.power(t, c, bmc.PowerOff, bmc.Off)
	s.power(t, c, bmc.PowerCycle, bmc.On) // the system is off
	s.power(t, c, bmc.PowerOff, bmc.Off)
}

func testBootOnce(t *testing.T, s suite) {
	c := s.open(t)
	s.power(t, c, bmc.PowerOff, bmc.Off)
	s.boot(t, c, bmc.Boot{Device: bmc.BootPXE})
	s.boot(t, c, bmc.Boot{Device: bmc.BootPXE}) // again
	s.boot(t, c, bmc.Boot{Device: bmc.BootCD, Mode: bmc.UEFI})
	s.power(t, c, bmc.PowerOn, bmc.On)
	got := bmc.Boot{}
	for range 100 {
		s.settle()
		if got = s.read(t, c).Boot; got.Device == bmc.BootNone {
			break
		}
	}
	if got.Device != bmc.BootNone {
		t.Errorf("System().Boot = %+v after the boot that it was for", got)
	}
	s.power(t, c, bmc.PowerOff, bmc.Off)
}

func testBootPersistent(t *testing.T, s suite) {
	c := s.open(t)
	s.power(t, c, bmc.PowerOff, bmc.Off)
	want := bmc.Boot{Device: bmc.BootPXE, Persistent: true}
	s.boot(t, c, want)
	s.power(t, c, bmc.PowerOn, bmc.On)
	if got := s.read(t, c).Boot; got.Device != want.Device || !got.Persistent {
		t.Errorf("System().Boot = %+v after a boot, want still %+v", got, want)
	}
	s.power(t, c, bmc.PowerOff, bmc.Off)
	s.boot(t, c, bmc.Boot{Device: bmc.BootDisk, Persistent: true})
	s.boot(t, c, bmc.Boot{})
}

func testBootCleared(t *testing.T, s suite) {
	c := s.open(t)
	s.boot(t, c, bmc.Boot{})
	s.boot(t, c, bmc.Boot{Device: bmc.BootDisk})
	s.boot(t, c, bmc.Boot{})
	s.boot(t, c, bmc.Boot{})
}

func testIdentify(t *testing.T, s suite) {
	c := s.open(t)
	for _, on := range []bool{true, true, false, false, true, false} {
		err := c.Identify(t.Context(), on)
		offered(t, Identify, err)
		if err != nil {
			t.Fatalf("Identify(%v) error = %v", on, err)
		}
		if got := s.read(t, c).Identify; got != on {
			t.Errorf("System().Identify = %v after Identify(%v)", got, on)
		}
		if s.Light != nil && s.Light() != on {
			t.Errorf("the BMC's light is %v after Identify(%v)", s.Light(), on)
		}
	}
}

func testLog(t *testing.T, s suite) {
	c := s.open(t)
	read := func() []bmc.Entry {
		t.Helper()
		entries, err := c.Log(t.Context())
		offered(t, ReadLog, err)
		if err != nil {
			t.Fatalf("Log() error = %v", err)
		}
		seen := map[string]bool{}
		for _, e := range entries {
			if e.ID == "" || e.Text == "" || seen[e.ID] {
				t.Errorf("Log() has %+v", e)
			}
			seen[e.ID] = true
		}
		return entries
	}
	before := read()
	if s.Event != nil {
		s.Event()
		after := read()
		if len(after) != len(before)+1 || !slices.Equal(before, after[:min(len(before), len(after))]) {
			t.Errorf("Log() = %+v, and after one event %+v", before, after)
		}
	}
	err := c.ClearLog(t.Context())
	offered(t, ClearLog, err)
	if err != nil {
		t.Fatalf("ClearLog() error = %v", err)
	}
	if left := read(); len(left) > 1 { // a BMC may log the clearing
		t.Errorf("Log() = %+v after ClearLog()", left)
	}
}

func testSensors(t *testing.T, s suite) {
	c := s.open(t)
	s.power(t, c, bmc.PowerOn, bmc.On)
	names := func() []string {
		t.Helper()
		sensors, err := c.Sensors(t.Context())
		offered(t, ReadSensors, err)
		if err != nil {
			t.Fatalf("Sensors() error = %v", err)
		}
		var names []string
		for _, s := range sensors {
			if s.Name == "" || s.Enabled && s.Unit == "" || !s.Enabled && s.Reading != 0 {
				t.Errorf("Sensors() has %+v", s)
			}
			names = append(names, s.Name)
		}
		return names
	}
	first := names()
	if len(first) == 0 {
		t.Error("Sensors() = none")
	}
	if diff := cmp.Diff(first, names()); diff != "" {
		t.Errorf("Sensors() differs the second time:\n%s", diff)
	}
}

func testMedia(t *testing.T, s suite) {
	need(t, "virtual media", s.Images[0] != "")
	c := s.open(t)
	drive := func(call string, want bmc.Media) {
		t.Helper()
		got, err := c.Media(t.Context())
		if err != nil || got != want {
			t.Errorf("Media() = %+v, %v after %s, want %+v", got, err, call, want)
		}
		if s.Media != nil && s.Media() != want.Image {
			t.Errorf("the BMC has the image %q after %s, want %q", s.Media(), call, want.Image)
		}
	}
	eject := func() {
		t.Helper()
		if err := c.EjectMedia(t.Context()); err != nil {
			t.Fatalf("EjectMedia() error = %v", err)
		}
		drive("EjectMedia()", bmc.Media{})
	}
	eject()
	for _, image := range []string{s.Images[0], s.Images[0], s.Images[1]} {
		if err := c.InsertMedia(t.Context(), image); err != nil {
			t.Fatalf("InsertMedia(%s) error = %v", image, err)
		}
		drive("InsertMedia("+image+")", bmc.Media{Image: image, Inserted: true})
	}
	eject()
	eject() // again
}

func testBadMedia(t *testing.T, s suite) {
	need(t, "image that cannot be inserted", s.BadImage != "")
	c := s.open(t)
	if err := c.EjectMedia(t.Context()); err != nil {
		t.Fatalf("EjectMedia() error = %v", err)
	}
	err := c.InsertMedia(t.Context(), s.BadImage)
	if err == nil {
		t.Errorf("InsertMedia(%s) error = nil", s.BadImage)
	}
	for _, other := range []error{bmc.ErrUnauthorized, bmc.ErrUnreachable, bmc.ErrNoSystem} {
		if errors.Is(err, other) {
			t.Errorf("InsertMedia(%s) error = %v, which is about the image", s.BadImage, err)
		}
	}
	if got, err := c.Media(t.Context()); err != nil || got.Inserted {
		t.Errorf("Media() = %+v, %v, want an empty drive", got, err)
	}
}

func testNoMedia(t *testing.T, s suite) {
	need(t, "lack of virtual media", s.Images[0] == "")
	c := s.open(t)
	_, err := c.Media(t.Context())
	for verb, err := range map[Verb]error{
		ReadMedia:   err,
		InsertMedia: c.InsertMedia(t.Context(), "http://192.0.2.1/image.iso"),
		EjectMedia:  c.EjectMedia(t.Context()),
	} {
		e := new(bmc.UnsupportedError)
		if s.wantErr(t, string(verb), err, bmc.ErrUnsupported); !errors.As(err, &e) || e.Verb != string(verb) {
			t.Errorf("%s() error = %v, want an UnsupportedError of %s", verb, err, verb)
		}
	}
}

func testUnreachable(t *testing.T, s suite) {
	need(t, "way to unplug it", s.Unplug != nil)
	c := s.open(t)
	s.Unplug()
	_, err := c.System(t.Context())
	s.wantErr(t, "System() of an unplugged BMC", err, bmc.ErrUnreachable)
	s.wantErr(t, "SetPower() of an unplugged BMC", c.SetPower(t.Context(), bmc.PowerOn), bmc.ErrUnreachable)
	s.wantErr(t, "SetBoot() of an unplugged BMC", c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}), bmc.ErrUnreachable)
	if s.Images[0] != "" {
		s.wantErr(t, "InsertMedia() of an unplugged BMC", c.InsertMedia(t.Context(), s.Images[0]), bmc.ErrUnreachable)
	}
	s.wantErr(t, "Open of an unplugged BMC", s.try(t, t.Context(), s.Config), bmc.ErrUnreachable)
}

func testUntrusted(t *testing.T, s suite) {
	need(t, "certificate of its own", s.Config.Address.TLS && s.Config.RootCAs != nil)
	other := s.Config
	other.RootCAs, other.Insecure = nil, false
	s.wantErr(t, "Open without the BMC's CA", s.try(t, t.Context(), other), bmc.ErrUntrusted)
	other.Insecure = true
	if err := s.try(t, t.Context(), other); err != nil {
		t.Errorf("Open without verification: error = %v", err)
	}
}

func testWrongSystem(t *testing.T, s suite) {
	need(t, "choice of systems", s.Config.Address.URL() != "")
	other := s.Config
	other.Address.Path = "/redfish/v1/Systems/no-such-system"
	s.wantErr(t, "Open of "+other.Address.Path, s.try(t, t.Context(), other), bmc.ErrNoSystem)
}

func testOnlySystem(t *testing.T, s suite) {
	other := s.Config
	other.Address.Path = ""
	want := s.read(t, s.open(t))
	s.Config = other
	if got := s.read(t, s.open(t)); got.ID != want.ID {
		t.Errorf("System().ID = %q for an address without a path, want %q", got.ID, want.ID)
	}
}

func testCancelledBefore(t *testing.T, s suite) {
	c := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.wantErr(t, "Open, cancelled,", s.try(t, ctx, s.Config), context.Canceled)
	_, err := c.System(ctx)
	s.wantErr(t, "System, cancelled,", err, context.Canceled)
	s.wantErr(t, "SetPower, cancelled,", c.SetPower(ctx, bmc.PowerOn), context.Canceled)
	s.read(t, c) // the client still works
}

func testCancelledMeanwhile(t *testing.T, s suite) {
	need(t, "way to stall it", s.Stall != nil)
	c := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	arrived, resume := s.Stall()
	defer resume()
	done := make(chan error, 1)
	go func() {
		_, err := c.System(ctx)
		done <- err
	}()
	<-arrived
	cancel()
	err := <-done
	s.wantErr(t, "System, cancelled,", err, context.Canceled)
	if errors.Is(err, bmc.ErrUnreachable) {
		t.Errorf("System, cancelled, error = %v, but the BMC has done nothing wrong", err)
	}
	resume()
	s.read(t, c)
}

func testTimeout(t *testing.T, s suite) {
	need(t, "way to stall it", s.Stall != nil)
	c := s.open(t)
	_, resume := s.Stall()
	defer resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.System(ctx)
	s.wantErr(t, "System of a BMC that does not answer", err, context.DeadlineExceeded)
	resume()
	s.read(t, c)
}

func testManyCallers(t *testing.T, s suite) {
	c := s.open(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				if _, err := c.System(t.Context()); err != nil {
					t.Errorf("System() error = %v beside other calls", err)
				}
				if s.Images[0] == "" {
					continue
				}
				if _, err := c.Media(t.Context()); err != nil {
					t.Errorf("Media() error = %v beside other calls", err)
				}
			}
		})
	}
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootDisk}); err != nil {
		t.Errorf("SetBoot() error = %v beside other calls", err)
	}
	wg.Wait()
	s.boot(t, c, bmc.Boot{})
}

func testClosed(t *testing.T, s suite) {
	c := s.open(t)
	s.read(t, c)
	c.Close()
	c.Close()
}
