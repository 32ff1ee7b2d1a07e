package ipmi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// labClock is a clock on which each wait moves the lab's time.
type labClock struct {
	*bmctest.Clock
	lab *racktest.Rack
}

func (c labClock) NewTimer(d time.Duration) clock.Timer {
	c.lab.Advance(d)
	return c.Clock.NewTimer(d)
}

// emulated is a BMC of the emulator with three accounts. how is a rack file's
// ipmi of it.
func emulated(t *testing.T, how string) (*racktest.Rack, Target) {
	t.Helper()
	r, err := rackfile.Parse("rack.yaml", fmt.Appendf(nil, `kind: Lab
accounts:
- {name: ADMIN, password: secret}
- {name: op, password: op-secret, role: Operator}
- {name: usr, password: usr-secret, role: ReadOnly}
hosts: [{count: 1, ipmi: {%s}}]
`, how))
	if err != nil {
		t.Fatal(err)
	}
	l := racktest.Start(t, rack.Config{Rack: &r})
	at, ok := l.First().IPMI()
	if !ok {
		t.Fatal("the BMC's IPMI is off")
	}
	return l, Target{
		Address: at.String(), Admin: fakeAdmin, Operator: fakeOperator, User: fakeUser, Timeout: 500 * time.Millisecond,
		IncludeSlow: true, Clock: labClock{&bmctest.Clock{}, l},
	}
}

// The emulator does all that a BMC must, however it is set up (statement F9).
func TestEmulator(t *testing.T) {
	for _, tt := range []struct {
		name, how string
		target    func(*Target)
		skips     int
	}{
		{"as it comes", "", nil, 2},
		{"every suite, v1.5", "suites: [17, 3, 1, 2, 6, 7, 8, 11, 12, 15, 16], v15: [md2, md5, password]", nil, 0},
		{"K_g", "kg: twenty bytes of K_g.", func(t *Target) { t.KG = []byte("twenty bytes of K_g.") }, 2},
		{"insecure", "suites: [0, 3, 17], v15: [none, md5]", func(t *Target) { t.Insecure = true }, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, target := emulated(t, tt.how)
			if tt.target != nil {
				tt.target(&target)
			}
			skips := 0
			for _, r := range Run(t.Context(), target, Checks()) {
				switch r.Verdict {
				case Pass:
				case Skip:
					skips++
				default:
					t.Errorf("%s: %s: %s", r.Name, r.Verdict, r.Detail)
				}
			}
			if skips != tt.skips {
				t.Errorf("%d checks were skipped, want %d", skips, tt.skips)
			}
		})
	}
}

// session is an administrator's, raised.
func (t Target) session(tb testing.TB) *Session {
	tb.Helper()
	p := &probe{Target: t}
	s, err := p.administrator(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.close(tb.Context()) })
	return s
}

// A console shows what the system prints and takes what is typed, for one
// session at a time.
func TestConsoleOfTheEmulator(t *testing.T) {
	l, target := emulated(t, "")
	if err := l.First().Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}); err != nil {
		t.Fatal(err)
	}
	s := target.session(t)
	c, err := s.Console(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Minute)
	var shown strings.Builder
	for shown.Len() < 100 {
		text, err := c.Read(t.Context(), time.Second)
		if err != nil {
			t.Fatalf("Read() error = %v after %q", err, shown.String())
		}
		shown.Write(text)
	}
	if err := c.Write(t.Context(), []byte("x\r")); err != nil {
		t.Errorf("Write() error = %v", err)
	}
	other := target.session(t)
	if _, err := other.Console(t.Context(), 1); !errors.Is(err, Code(0x80)) {
		t.Errorf("Console() of another session: error = %v, want %v", err, Code(0x80))
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close() error = %v", err)
	}
	if err := c.Close(t.Context()); !errors.Is(err, Code(0x80)) {
		t.Errorf("Close() again: error = %v, want %v", err, Code(0x80))
	}
	if c, err = other.Console(t.Context(), 1); err != nil {
		t.Errorf("Console() of another session, now that it is free: error = %v", err)
	} else if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close() error = %v", err)
	}
}

// A request reaches the controller behind the BMC, and no other.
func TestBridgeOfTheEmulator(t *testing.T) {
	_, target := emulated(t, "")
	s := target.session(t)
	const ipmb, satellite = 0, 0x2C
	data, err := s.Bridge(t.Context(), ipmb, satellite, GetDeviceID)
	if err != nil || len(data) < 11 {
		t.Fatalf("Bridge() = % X, %v", data, err)
	}
	device, err := s.Do(t.Context(), GetDeviceID)
	if err != nil || string(device) == string(data) {
		t.Errorf("the BMC is % X, the controller behind it % X, %v", device, data, err)
	}
	s.conn.Tries = 1
	if data, err := s.Bridge(t.Context(), ipmb, 0x52, GetDeviceID); err == nil {
		t.Errorf("Bridge() to nobody = % X", data)
	}
}

// With a fifth of the packets lost, doubled or late, every request is answered
// and none carried out twice.
func TestBadNetwork(t *testing.T) {
	_, target := emulated(t, "")
	target.Timeout, target.Tries = 30*time.Millisecond, 12
	s := target.session(t)
	reserve := Request{NetFn: Storage, Command: 0x42, Name: "Reserve SEL"}
	if _, err := s.Do(t.Context(), reserve); errors.Is(err, InvalidCommand) {
		t.Skip("the BMC has no SEL reservations")
	}
	chance := rand.New(rand.NewPCG(1, 2))
	var late [][]byte
	s.conn.Tamper.Wire = func(b []byte) [][]byte {
		var out [][]byte
		switch chance.IntN(10) {
		case 0, 1: // lost
		case 2, 3:
			out = [][]byte{b, b}
		case 4, 5:
			late = append(late, b)
			return nil
		default:
			out = [][]byte{b}
		}
		out, late = append(out, late...), nil
		return out
	}
	last := 0
	for i := range 60 {
		data, err := s.Do(t.Context(), reserve)
		if err != nil || len(data) != 2 {
			t.Fatalf("request %d = % X, %v", i, data, err)
		}
		got := int(data[0]) | int(data[1])<<8
		if i > 0 && got != last+1 {
			t.Errorf("request %d was given reservation %d after %d", i, got, last)
		}
		last = got
	}
}
