// Package bmctest has the test suite that every BMC driver passes, and a fake BMC
// in memory that passes it, too. It knows no protocol: each driver's own tests
// check what it sends.
package bmctest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Fixture is a driver and the BMCs to test it against.
type Fixture struct {
	Open bmc.Open
	// New returns a BMC for one test. The BMC may be in any state and may be
	// shared by tests. New cleans up with t.Cleanup.
	New func(t *testing.T) BMC
}

// BMC gives the suite access to a BMC. Config and Settle suffice; tests that need
// a hook that is nil are skipped.
type BMC struct {
	// Config is a valid configuration: trusted certificate, right credentials.
	Config bmc.Config
	// Images are URLs that the BMC can insert; if empty, the BMC has no virtual
	// media. BadImage is a URL that it cannot insert.
	Images   [2]string
	BadImage string

	// Settle advances the system's time: a hundred calls are enough for a boot. It
	// is nil for systems without delays.
	Settle func()
	// Power, Override, Light and Media return the state of the BMC without the
	// driver.
	Power    func() bmc.Power
	Override func() bmc.Boot
	Light    func() bool
	Media    func() string
	// Event makes the BMC log an entry.
	Event func()
	// Unplug makes the BMC unreachable for the rest of the test.
	Unplug func()
	// Stall makes the BMC accept requests without answering until resume, and
	// without ever answering a client that has disconnected. arrived receives a
	// value with the first request.
	Stall func() (arrived <-chan struct{}, resume func())
	// SetPassword changes the password of the account in Config.
	SetPassword func(string)
}

// Run runs the suite.
func Run(t *testing.T, f Fixture) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, suite)
	}{
		{"open", testOpen},
		{"wrong password", testWrongPassword},
		{"changed password", testChangedPassword},
		{"power on and off", testPower},
		{"soft power off", testSoftOff},
		{"reset", testReset},
		{"power cycle", testPowerCycle},
		{"boot once", testBootOnce},
		{"boot persistently", testBootPersistent},
		{"boot override cleared", testBootCleared},
		{"identify", testIdentify},
		{"log", testLog},
		{"sensors", testSensors},
		{"media inserted and ejected", testMedia},
		{"media that cannot be inserted", testBadMedia},
		{"no virtual media", testNoMedia},
		{"settings", testSettings},
		{"settings refused", testSettingsRefused},
		{"components", testComponents},
		{"event subscriptions", testSubscriptions},
		{"unreachable", testUnreachable},
		{"untrusted certificate", testUntrusted},
		{"wrong system", testWrongSystem},
		{"only system", testOnlySystem},
		{"cancelled before", testCancelledBefore},
		{"cancelled meanwhile", testCancelledMeanwhile},
		{"time-out", testTimeout},
		{"many callers", testManyCallers},
		{"closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, suite{Fixture: f, BMC: f.New(t)})
		})
	}
}

// suite is the BMC of one test with the driver.
type suite struct {
	Fixture
	BMC
}

// need skips a test if the BMC lacks the hook.
func need(t *testing.T, what string, there bool) {
	t.Helper()
	if !there {
		t.Skip("the BMC has no " + what)
	}
}

// offered skips a test if the BMC does not offer verb, and checks the
// UnsupportedError.
func offered(t *testing.T, verb Verb, err error) {
	t.Helper()
	if !errors.Is(err, bmc.ErrUnsupported) {
		return
	}
	if e := new(bmc.UnsupportedError); !errors.As(err, &e) || e.Verb != string(verb) {
		t.Errorf("%s() error = %v, want an UnsupportedError of %s", verb, err, verb)
	}
	t.Skip(err)
}

func (s suite) open(t *testing.T) bmc.Client {
	t.Helper()
	c, err := s.Open(t.Context(), s.Config)
	if err != nil {
		t.Fatalf("Open(%s) error = %v", s.Config.Address, err)
	}
	t.Cleanup(c.Close)
	return c
}

func (s suite) settle() {
	if s.Settle != nil {
		s.Settle()
	}
}

// wantErr checks an error, and that it contains no secret.
func (s suite) wantErr(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s error = %v, want %v", call, err, want)
	}
	if err != nil && s.Config.Credentials.Password != "" && strings.Contains(err.Error(), s.Config.Credentials.Password) {
		t.Errorf("%s error holds the password: %v", call, err)
	}
}

// try opens a client and reads once: drivers differ in which of the two fails.
func (s suite) try(t *testing.T, ctx context.Context, c bmc.Config) error {
	t.Helper()
	client, err := s.Open(ctx, c)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.System(ctx)
	return err
}

func (s suite) read(t *testing.T, c bmc.Client) bmc.System {
	t.Helper()
	got, err := c.System(t.Context())
	if err != nil {
		t.Fatalf("System() error = %v", err)
	}
	return got
}

// power sends an action and waits for the state.
func (s suite) power(t *testing.T, c bmc.Client, a bmc.PowerAction, want bmc.Power) {
	t.Helper()
	if err := c.SetPower(t.Context(), a); err != nil {
		t.Fatalf("SetPower(%s) error = %v", a, err)
	}
	s.wantPower(t, c, a, want)
}

func (s suite) wantPower(t *testing.T, c bmc.Client, a bmc.PowerAction, want bmc.Power) {
	t.Helper()
	got := bmc.Power("")
	for range 100 {
		s.settle()
		if got = s.read(t, c).Power; got == want {
			break
		}
	}
	if got != want {
		t.Fatalf("System().Power = %q after SetPower(%s), want %q", got, a, want)
	}
	if s.Power != nil && s.Power() != want {
		t.Fatalf("the BMC has power %q after SetPower(%s), want %q", s.Power(), a, want)
	}
}

func (s suite) boot(t *testing.T, c bmc.Client, b bmc.Boot) {
	t.Helper()
	if err := c.SetBoot(t.Context(), b); err != nil {
		if b.Persistent && errors.Is(err, bmc.ErrUnsupported) {
			t.Skip("the BMC has no persistent override")
		}
		t.Fatalf("SetBoot(%+v) error = %v", b, err)
	}
	got := s.read(t, c).Boot
	check := func(who string, got bmc.Boot) {
		t.Helper()
		if got.Device != b.Device || got.Persistent != b.Persistent && b.Device != bmc.BootNone {
			t.Errorf("%s = %+v after SetBoot(%+v)", who, got, b)
		}
		if b.Mode != bmc.BootModeAny && got.Mode != "" && got.Mode != b.Mode {
			t.Errorf("%s has mode %s after SetBoot(%+v)", who, got.Mode, b)
		}
	}
	check("System().Boot", got)
	if s.Override != nil {
		check("the BMC's override", s.Override())
	}
}
