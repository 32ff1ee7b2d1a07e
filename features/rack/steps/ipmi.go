package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// ipmiClient holds connections, sessions and a SOL console open between steps,
// which ipmitool and FreeIPMI cannot do.
type ipmiClient struct {
	conns    []*ipmi.Conn
	sessions []*ipmi.Session
	console  *ipmi.Console
}

// responseTimeout is how long a client waits for a response, in real time: BMCs
// answer at once.
const responseTimeout = 2 * time.Second

func (s *scenario) registerIPMI(sc *stepRegistry) {
	sc.Step(`^the BMC passes the conformance checks$`, s.passesChecks)
	sc.Step(`^the BMC has executed (Cold Reset)$`, func(name string) { s.lab.AwaitCommand(name) })
	sc.Step(`^(?:a|another) client opens an IPMI session$`, func() error { return s.openSession(17) })
	sc.Step(`^(\d+) clients open an IPMI session each$`, func(n int) error {
		for range n {
			if err := s.openSession(17); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^its IPMI session answers$`, func() error { return s.sessionAnswers(true) })
	sc.NegativeStep(`^its IPMI session is closed$`, func() error { return s.sessionAnswers(false) })
	sc.Step(`^DCMI capabilities ([\d, ]+) are read without a session, of version ([0-9a-f ]+)$`, s.dcmiCapabilities)
	sc.Step(`^the client sends Close Session$`, func() error { return s.ipmi.sessions[0].Close(s.t.Context()) })
	sc.Step(`^(\d+) logins stop after RAKP message 2$`, s.beginLogins)
	sc.Step("^the client runs `([^`]+)` against the former IPMI port$", func(line string) error {
		at, err := netip.ParseAddrPort(s.saved["ipmi"])
		if err != nil {
			return err
		}
		return s.runProgramAt(line, at.Addr().String(), fmt.Sprint(at.Port()))
	})
	sc.Step(`^the client activates SOL$`, func() error { return s.activateSOL(0) })
	sc.Step(`^the other client activates SOL$`, func() error { return s.activateSOL(1) })
	sc.Step(`^the other client gets completion code (0x[0-9a-f]{2}) when it activates SOL$`, func(want string) error {
		var code ipmi.Code
		if err := s.activateSOL(1); !errors.As(err, &code) {
			return fmt.Errorf("there is no completion code: %w", err)
		}
		return equal("the completion code", fmt.Sprintf("%#02x", byte(code)), want)
	})
	sc.Step(`^the client deactivates SOL$`, func() error { return s.ipmi.console.Close(s.t.Context()) })
	sc.Step(`^SOL shows "([^"]*)"$`, s.consoleShows)
	sc.Step(`^one in (\d+) datagrams is (lost|doubled|swapped)$`, func(n int, how string) error {
		wire := map[string]fault.Wire{"lost": fault.Lost, "doubled": fault.Doubled, "swapped": fault.Swapped}[how]
		_, err := s.lab.AddFault(fault.Rule{Wire: wire, Probability: 1 / float64(n)})
		return err
	})
	sc.Step(`^the BMC answers each command but logins with completion code (0x[0-9a-f]{2})$`, func(code string) error {
		n, err := strconv.ParseUint(code, 0, 8)
		if err != nil {
			return err
		}
		_, err = s.lab.AddFault(fault.Rule{Path: "/ipmi/00/**", Code: byte(n)})
		return err
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, _ error) (context.Context, error) {
		for _, c := range s.ipmi.conns {
			_ = c.Close() // its BMC may be gone
		}
		return ctx, nil
	})
}

// address returns where the first server's BMC listens for IPMI.
func (s *scenario) address() (string, error) {
	at, ok := s.server(1).IPMI()
	if !ok {
		return "", errors.New("IPMI is switched off")
	}
	return at.String(), nil
}

// dcmiCapabilities asks for parameters of Get DCMI Capabilities (DCMI 1.5, 6.1.1)
// outside of a session, in both framings.
func (s *scenario) dcmiCapabilities(parameters, version string) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	for _, framing := range []ipmi.Framing{ipmi.V15, ipmi.V20} {
		for _, p := range strings.Split(parameters, ", ") {
			get := ipmi.Request{NetFn: 0x2c, Command: 0x01, Data: []byte{0xdc, byte(number(p))}, Name: "Get DCMI Capabilities"}
			data, err := c.Ask(s.t.Context(), framing, get)
			if err != nil {
				return err
			}
			if len(data) < 5 || fmt.Sprintf("% x", data[:4]) != "dc "+version {
				return fmt.Errorf("parameter %s is % x", p, data)
			}
		}
	}
	return nil
}

// checksNotRun are the conformance checks that a check of the generic BMC skips: two are
// for an idle BMC, and two for one that has IPMI 1.5 sessions with a password.
var checksNotRun = []string{"session limit", "idle", "v1.5 activation", "v1.5 packets"}

// passesChecks runs all conformance checks that take no time of the lab. It fails when
// another check than checksNotRun is skipped.
func (s *scenario) passesChecks() error {
	at, err := s.address()
	if err != nil {
		return err
	}
	target := ipmi.Target{
		Address: at, Admin: ipmi.Account{Name: "ADMIN", Password: "ADMIN"}, Operator: ipmi.Account{Name: "op", Password: "op"},
		User: ipmi.Account{Name: "usr", Password: "usr"}, Timeout: responseTimeout / 4,
	}
	var wrong, skipped []string
	passed := 0
	for _, r := range ipmi.Run(s.t.Context(), target, ipmi.Checks()) {
		switch r.Verdict {
		case ipmi.Pass:
			passed++
		case ipmi.Skip:
			skipped = append(skipped, r.Name)
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %s", r.Name, r.Detail))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d checks passed, and not: %s", passed, strings.Join(wrong, "; "))
	}
	if !slices.Equal(skipped, checksNotRun) {
		return fmt.Errorf("the checks %q were skipped, want %q", skipped, checksNotRun)
	}
	return nil
}

func (s *scenario) dial() (*ipmi.Conn, error) {
	at, err := s.address()
	if err != nil {
		return nil, err
	}
	c, err := ipmi.Dial(s.t.Context(), at)
	if err != nil {
		return nil, err
	}
	c.Timeout = responseTimeout
	s.ipmi.conns = append(s.ipmi.conns, c)
	return c, nil
}

// openSession openSession a session at the administrator's level.
func (s *scenario) openSession(suite byte) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	session, err := c.Login(s.t.Context(), ipmi.Login{Name: "ADMIN", Password: "ADMIN", Suite: suite})
	if err != nil {
		return err
	}
	if _, err := session.Raise(s.t.Context(), ipmi.Administrator); err != nil {
		return err
	}
	s.ipmi.sessions = append(s.ipmi.sessions, session)
	return nil
}

// sessionAnswers sends Get Device ID in the first session, and checks whether it is
// answered.
func (s *scenario) sessionAnswers(want bool) error {
	conn := s.ipmi.sessions[0].Conn()
	if !want {
		conn.Timeout, conn.Tries = 200*time.Millisecond, 1
	}
	_, err := s.ipmi.sessions[0].Do(s.t.Context(), ipmi.GetDeviceID)
	if want && err != nil {
		return err
	}
	if !want && err == nil {
		return errors.New("the session still answers")
	}
	return nil
}

// beginLogins sends Open Session and RAKP message 1 for n logins.
func (s *scenario) beginLogins(n int) error {
	for range n {
		c, err := s.dial()
		if err != nil {
			return err
		}
		h, err := c.Handshake(ipmi.Login{Name: "ADMIN", Password: "ADMIN", Suite: 17})
		if err != nil {
			return err
		}
		if err := errors.Join(h.Open(s.t.Context()), h.Challenge(s.t.Context())); err != nil {
			return err
		}
	}
	return nil
}

// activateSOL activates SOL in the n-th session.
func (s *scenario) activateSOL(n int) error {
	console, err := s.ipmi.sessions[n].Console(s.t.Context(), 1)
	if err == nil {
		s.ipmi.console = console
	}
	return err
}

// consoleShows reads the console until it has shown a text.
func (s *scenario) consoleShows(text string) error {
	var all bytes.Buffer
	for !strings.Contains(all.String(), text) {
		more, err := s.ipmi.console.Read(s.t.Context(), responseTimeout)
		if err != nil {
			return fmt.Errorf("%w: it shows %q", err, all.String())
		}
		all.Write(more)
	}
	return nil
}
