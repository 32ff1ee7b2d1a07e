package ipmi_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	goipmi "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/types"
	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/bmc/ipmi"
)

func open(t *testing.T, s *server) bmc.Client {
	t.Helper()
	c, err := ipmi.Open(t.Context(), s.config())
	if err != nil {
		t.Fatalf("Open() error = %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// The driver passes the suite with BMCs of several kinds.
func TestSuite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(*server)
	}{
		{"as the standard has it", func(*server) {}},
		{"small answers", func(s *server) { s.with(func() { s.piece = 16 }) }},
		{"nothing but the mandatory", func(s *server) {
			s.fail(appFn, 0x59, always(0xC1)...)
			s.fail(storageFn, 0x10, always(0xCB)...)
			s.fail(storageFn, 0x20, always(0xC1)...)
		}},
		{"answers come twice", func(s *server) { s.wire.spoil(func(b []byte) [][]byte { return [][]byte{b, b} }) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bmctest.Run(t, bmctest.Fixture{Open: ipmi.Open, New: func(t *testing.T) bmctest.BMC {
				s := newServer(t)
				tt.build(s)
				return bmctest.BMC{
					Config: s.config(),
					Power: func() bmc.Power {
						s.mu.Lock()
						defer s.mu.Unlock()
						if s.on {
							return bmc.On
						}
						return bmc.Off
					},
					Light: func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return s.lit
					},
					Event:       s.event,
					Unplug:      func() { _ = s.wire.Close() },
					Stall:       s.wire.hang,
					SetPassword: s.setPassword,
				}
			}})
		})
	}
}

func TestSystemReadsIdentity(t *testing.T) {
	s := newServer(t)
	s.with(func() { s.on, s.lit, s.flags = true, true, [5]byte{0xE0, 0x08} })
	c := open(t, s)
	want := bmc.System{
		ID: "chassis", UUID: "00112233-4455-4677-8899-aabbccddeeff", Manufacturer: "Contoso", Model: "C3500", Serial: "SN1234",
		BIOSVersion: "U30 v2.14 (2031)", BMCVersion: "7.15", Power: bmc.On, Identify: true, Health: "OK",
		Boot: bmc.Boot{Device: bmc.BootDisk, Mode: bmc.UEFI, Persistent: true},
	}
	for range 2 {
		got, err := c.System(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("System() error = %v (-want +got):\n%s", err, diff)
		}
	}
	if n := s.count(storageFn, 0x10); n != 1 {
		t.Errorf("the FRU was read %d times for two calls, want once", n)
	}
}

func TestSensorsReadsThresholdSensors(t *testing.T) {
	for _, piece := range []int{0, 16} {
		s := newServer(t)
		s.with(func() { s.piece = piece })
		c := open(t, s)
		want := []bmc.Sensor{
			{Name: "Inlet Temp", Reading: 21.5, Unit: "Cel", Health: "OK", Enabled: true},
			{Name: "Outlet Temp", Reading: -1, Unit: "Cel", Health: "Critical", Enabled: true},
			{Name: "Fan 1", Unit: "RPM"},
			{Name: "Load", Reading: 42, Unit: "%", Health: "Warning", Enabled: true},
		}
		got, err := c.Sensors(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Sensors() in pieces of %d error = %v (-want +got):\n%s", piece, err, diff)
		}
	}
}

// Another session reserves the repository while the driver reads it.
func TestSensorsRenewsALostReservation(t *testing.T) {
	s := newServer(t)
	s.with(func() { s.piece, s.stolen = 16, 2 })
	got, err := open(t, s).Sensors(t.Context())
	if len(got) != 4 || err != nil {
		t.Errorf("Sensors() = %v, %v", got, err)
	}
}

func TestLogDecodesEntries(t *testing.T) {
	s := newServer(t)
	s.event()
	got, err := open(t, s).Log(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("Log() = %+v, %v", got, err)
	}
	e := got[0]
	if e.ID != "1" || e.Sensor != "Outlet Temp" || !e.Time.Equal(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)) ||
		e.Severity != "Critical" || !strings.Contains(strings.ToLower(e.Text), "lower critical") {
		t.Errorf("Log()[0] = %+v", e)
	}
}

// The boot flags sent for each override.
func TestSetBootFlags(t *testing.T) {
	for _, tt := range []struct {
		boot bmc.Boot
		want [2]byte
	}{
		{bmc.Boot{Device: bmc.BootPXE}, [2]byte{0x80, 0x04}},
		{bmc.Boot{Device: bmc.BootPXE, Mode: bmc.UEFI}, [2]byte{0xA0, 0x04}},
		{bmc.Boot{Device: bmc.BootDisk, Mode: bmc.UEFI, Persistent: true}, [2]byte{0xE0, 0x08}},
		{bmc.Boot{Device: bmc.BootDisk, Mode: bmc.LegacyBIOS, Persistent: true}, [2]byte{0xC0, 0x08}},
		{bmc.Boot{Device: bmc.BootCD}, [2]byte{0x80, 0x14}},
		{bmc.Boot{}, [2]byte{0x80, 0x00}},
	} {
		s := newServer(t)
		if err := open(t, s).SetBoot(t.Context(), tt.boot); err != nil {
			t.Errorf("SetBoot(%+v) error = %v", tt.boot, err)
		}
		s.with(func() {
			if got := [2]byte(s.flags[:]); got != tt.want {
				t.Errorf("SetBoot(%+v) writes % X, want % X", tt.boot, got, tt.want)
			}
		})
	}
	c := open(t, newServer(t))
	for _, b := range []bmc.Boot{{Device: bmc.BootHTTP, URL: "http://x"}, {Device: bmc.BootDisk, Mode: bmc.UEFISecure}} {
		if err := c.SetBoot(t.Context(), b); !errors.Is(err, bmc.ErrUnsupported) {
			t.Errorf("SetBoot(%+v) error = %v, want ErrUnsupported", b, err)
		}
	}
}

// A BMC without parameter 3 is no error; one that accepts and ignores the flags
// is.
func TestSetBootOnBMCsThatDeviate(t *testing.T) {
	s := newServer(t)
	s.fail(chassisFn, 0x08, 0x80)
	if err := open(t, s).SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err != nil {
		t.Errorf("SetBoot() without parameter 3: error = %v", err)
	}
	s = newServer(t)
	s.fail(chassisFn, 0x08, always(0)...)
	if err := open(t, s).SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err == nil {
		t.Error("SetBoot() of a BMC that forgets: error = nil")
	}
}

// The driver tries suites 17 and 3, in this order, and no others.
func TestCipherSuitesAreTriedInOrder(t *testing.T) {
	for _, tt := range []struct {
		suites []types.CipherSuiteID
		err    error
	}{
		{[]types.CipherSuiteID{types.CipherSuiteID3}, nil},
		{[]types.CipherSuiteID{types.CipherSuiteID17}, nil},
		{[]types.CipherSuiteID{types.CipherSuiteID2}, bmc.ErrUnsupported},
	} {
		s := newServer(t, goipmi.WithCipherSuites(tt.suites))
		c, err := ipmi.Open(t.Context(), s.config())
		if !errors.Is(err, tt.err) {
			t.Errorf("Open of a BMC with suites %v: error = %v, want %v", tt.suites, err, tt.err)
		}
		if err != nil {
			continue
		}
		if _, err := c.System(t.Context()); err != nil {
			t.Errorf("System of a BMC with suites %v: error = %v", tt.suites, err)
		}
	}
}

// OpenIPMI's simulator ends error messages after the status.
func TestShortHandshakeErrorIsReported(t *testing.T) {
	s := newServer(t, goipmi.WithCipherSuites([]types.CipherSuiteID{types.CipherSuiteID3}))
	s.wire.spoil(func(b []byte) [][]byte {
		if len(b) == 24 && b[17] != 0 {
			b[14] = 2
			b = b[:18]
		}
		return [][]byte{b}
	})
	open(t, s) // with suite 3, after 17 was refused
	config := s.config()
	config.Credentials.Username = "nobody"
	if _, err := ipmi.Open(t.Context(), config); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("Open with another name: error = %v, want ErrUnauthorized", err)
	}
}

func TestBMCWithKGIsUnsupported(t *testing.T) {
	s := newServer(t, goipmi.WithKG([]byte("twenty bytes of K_g.")))
	_, err := ipmi.Open(t.Context(), s.config())
	if !errors.Is(err, bmc.ErrUnsupported) || !strings.Contains(err.Error(), "K_g") {
		t.Errorf("Open of a BMC with a K_g: error = %v, want ErrUnsupported that names it", err)
	}
}

// Open refuses names and passwords too long for IPMI before it sends anything.
func TestOpenRejectsLongCredentials(t *testing.T) {
	s := newServer(t)
	for _, c := range []bmc.Credentials{
		{Username: strings.Repeat("u", 17), Password: testPassword},
		{Username: testUser, Password: strings.Repeat("p", 21)},
	} {
		config := s.config()
		config.Credentials = c
		_, err := ipmi.Open(t.Context(), config)
		if !errors.Is(err, bmc.ErrUnauthorized) || strings.Contains(err.Error(), c.Password) {
			t.Errorf("Open as %s error = %v, want ErrUnauthorized", c.Username, err)
		}
	}
}

// A command whose answer is lost is repeated with another session sequence number;
// a reset is not repeated.
func TestLostAnswersAreRetriedButForResets(t *testing.T) {
	lose := func(s *server) {
		n := 0
		s.wire.spoil(func(b []byte) [][]byte {
			if n++; n%3 == 0 {
				return nil
			}
			return [][]byte{b}
		})
	}
	s := newServer(t)
	config := s.config()
	config.Timeout = 1600 * time.Millisecond // four tries of 400 ms each: a busy machine answers late, too
	c, err := ipmi.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	lose(s)
	for range 2 {
		if _, err := c.System(t.Context()); err != nil {
			t.Errorf("System() over a bad network: error = %v", err)
		}
	}
	if err := c.SetPower(t.Context(), bmc.PowerOn); err != nil {
		t.Errorf("SetPower(on) over a bad network: error = %v", err)
	}
	s.wire.spoil(nil)

	var before int
	s.with(func() { before = len(s.controls) })
	s.wire.spoil(func(b []byte) [][]byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.controls) > before {
			return nil
		}
		return [][]byte{b}
	})
	if err := c.SetPower(t.Context(), bmc.PowerReset); !errors.Is(err, bmc.ErrUnreachable) {
		t.Errorf("SetPower(reset) whose answer is lost: error = %v, want ErrUnreachable", err)
	}
	s.with(func() {
		if got := s.controls[before:]; !bytes.Equal(got, []byte{3}) {
			t.Errorf("one reset was done as % X", got)
		}
	})
}

func TestBusyBMCIsRetried(t *testing.T) {
	s := newServer(t)
	c := open(t, s)
	s.fail(chassisFn, 0x01, 0xC0, 0xC0)
	if _, err := c.System(t.Context()); err != nil {
		t.Errorf("System() of a BMC that was busy twice: error = %v", err)
	}
	s.fail(chassisFn, 0x01, always(0xC0)...)
	if _, err := c.System(t.Context()); !errors.Is(err, bmc.ErrUnreachable) {
		t.Errorf("System() of a BMC that stays busy: error = %v, want ErrUnreachable", err)
	}
}

func TestUnsupportedErrorNamesTheVerb(t *testing.T) {
	s := newServer(t)
	s.fail(chassisFn, 0x04, always(0xC1)...)
	s.fail(storageFn, 0x40, always(0xC1)...)
	s.fail(storageFn, 0x42, always(0xC1)...)
	s.fail(storageFn, 0x47, always(0xC1)...)
	s.fail(storageFn, 0x20, always(0xC1)...)
	c := open(t, s)
	_, logErr := c.Log(t.Context())
	_, sensorsErr := c.Sensors(t.Context())
	for verb, err := range map[string]error{
		"Identify": c.Identify(t.Context(), true), "Log": logErr, "ClearLog": c.ClearLog(t.Context()), "Sensors": sensorsErr,
	} {
		e := new(bmc.UnsupportedError)
		if !errors.As(err, &e) || e.Verb != verb || !errors.Is(err, bmc.ErrUnsupported) {
			t.Errorf("%s() error = %v, want an UnsupportedError that names it", verb, err)
		}
	}
}

// IPMI v1.5 has no identification without a time limit.
func TestIdentifyOnIPMI15(t *testing.T) {
	s := newServer(t)
	s.fail(chassisFn, 0x04, 0xC7)
	err := open(t, s).Identify(t.Context(), true)
	s.with(func() {
		if err != nil || !s.lit {
			t.Errorf("Identify(true) error = %v, light %v", err, s.lit)
		}
	})
}

// Calls end with their context, and leave no goroutine and no socket.
func TestCancelledCallsLeaveNoGoroutinesAndSockets(t *testing.T) {
	s := newServer(t)
	c := open(t, s)
	if _, err := c.System(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	_, resume := s.wire.hang()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		began := time.Now()
		if _, err := c.System(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("System() error = %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("System() took %s with a context of 20ms", took)
		}
		cancel()
	}
	resume()
	for range 20 {
		if _, err := c.System(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	c.Close()
	if _, err := c.System(t.Context()); err == nil {
		t.Error("System() of a closed client: error = nil")
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// Forged packets do not crash the driver, and are not answers.
func TestForgedPacketsAreIgnored(t *testing.T) {
	s := newServer(t)
	c := open(t, s)
	s.wire.spoil(func(b []byte) [][]byte {
		var out [][]byte
		for _, size := range []int{0, 1, 15, 16, 17, 32, 48} {
			forged := append([]byte{6, 0, 0xFF, 7, 6, 0xC0, 0xa3, 0xa2, 0xa1, 0xa0, 1, 0, 0, 0, byte(size), 0}, make([]byte, size+32)...)
			out = append(out, forged, forged[:16+size])
		}
		for _, kind := range []byte{0x11, 0x13, 0x15} {
			out = append(out, []byte{6, 0, 0xFF, 7, 6, kind, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0})
		}
		changed := append([]byte(nil), b...)
		changed[len(changed)-1] ^= 1
		if b[5]&0xC0 != 0 {
			out = append(out, changed)
		}
		return append(out, b)
	})
	for range 3 {
		if got, err := c.System(t.Context()); err != nil || got.Serial != "SN1234" {
			t.Errorf("System() = %+v, %v", got, err)
		}
	}
}

// OpenIPMI's simulator refuses every Chassis Identify with CCh.
func TestIdentifyUnsupported(t *testing.T) {
	s := newServer(t)
	s.fail(chassisFn, 0x04, 0xCC, 0xCC)
	if err := open(t, s).Identify(t.Context(), true); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Identify(true) error = %v, want ErrUnsupported", err)
	}
}

func TestSessionPrivilegeLevel(t *testing.T) {
	for level, want := range map[string]byte{"": 4, "ADMINISTRATOR": 4, "OPERATOR": 3} {
		s := newServer(t)
		config := s.config()
		config.Address.Privilege = level
		_, err := ipmi.Open(t.Context(), config)
		s.with(func() {
			if err != nil || s.level != want {
				t.Errorf("Open at %q asks for level %d, %v, want %d", level, s.level, err, want)
			}
		})
		s.fail(appFn, 0x3B, 0x81)
		if _, err := ipmi.Open(t.Context(), config); !errors.Is(err, bmc.ErrUnauthorized) {
			t.Errorf("Open at %q, above the user's limit: error = %v, want ErrUnauthorized", level, err)
		}
	}
}

// IPMI v2.0 rev 1.1, table G-1: users may not change the power or the boot device.
func TestPrivilegeLevelBelowOperatorIsRefused(t *testing.T) {
	for _, level := range []string{"USER", "CALLBACK"} {
		s := newServer(t)
		config := s.config()
		config.Address.Privilege = level
		_, err := ipmi.Open(t.Context(), config)
		if !errors.Is(err, bmc.ErrPrivilege) || !strings.Contains(err.Error(), "privilegelevel="+level) || !strings.Contains(err.Error(), "OPERATOR or ADMINISTRATOR") {
			t.Errorf("Open at %s: error = %v, want ErrPrivilege that names this level and those that suffice", level, err)
		}
	}
}

func TestParseGUIDInThreeByteOrders(t *testing.T) {
	for _, guid := range [][16]byte{
		{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x46, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}, // SMBIOS
		{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x46, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}, // RFC 4122
		{0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, 0x77, 0x46, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00}, // IPMI v1.5
	} {
		s := newServer(t)
		s.with(func() { s.guid = guid })
		got, err := open(t, s).System(t.Context())
		if want := "00112233-4455-4677-8899-aabbccddeeff"; err != nil || got.UUID != want {
			t.Errorf("System().UUID of % x = %s, %v, want %s", guid, got.UUID, err, want)
		}
	}
}
