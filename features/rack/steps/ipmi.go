package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// ipmiClient is a client of IPMI that does what the usual programs do not: it holds
// a session, leaves logins unfinished, opens a console.
type ipmiClient struct {
	conns    []*ipmi.Conn
	sessions []*ipmi.Session
	console  *ipmi.Console
}

// responseTimeout is how long it waits for an answer, in real time: BMCs answer at
// once.
const responseTimeout = 2 * time.Second

func (s *scenario) registerIPMI(sc *godog.ScenarioContext) {
	sc.Step(`^the BMC is put through the checks of a strict client$`, s.passesChecks)
	sc.Step(`^(?:a client holds|another client opens) a session$`, func() error { return s.openSession(17) })
	sc.Step(`^(\d+) clients hold a session each$`, func(n int) error {
		for range n {
			if err := s.openSession(17); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^its session is there$`, func() error { return s.sessionAnswers(true) })
	sc.Step(`^its session is over$`, func() error { return s.sessionAnswers(false) })
	sc.Step(`^the client ends its session$`, func() error { return s.ipmi.sessions[0].Close(s.t.Context()) })
	sc.Step(`^(\d+) clients begin to log in and go away$`, s.halfOpen)
	sc.Step(`^the client opens the server's console$`, func() error { return s.openConsole(0) })
	sc.Step(`^the other client cannot open the server's console$`, func() error {
		var code ipmi.Code
		if err := s.openConsole(1); !errors.As(err, &code) || code != 0x80 {
			return fmt.Errorf("it can, or is told otherwise than that another has it: %w", err)
		}
		return nil
	})
	sc.Step(`^the operator switches IPMI (on|off)$`, func(how string) error {
		if at, err := s.address(); err == nil {
			s.save("ipmi", at)
		}
		return s.sendOK("PATCH", root+"/Managers/1/NetworkProtocol", object{"IPMI": object{"ProtocolEnabled": how == "on"}})
	})
	sc.Step("^the operator runs `([^`]+)` where IPMI was$", func(line string) error {
		at, err := netip.ParseAddrPort(s.saved["ipmi"])
		if err != nil {
			return err
		}
		return s.runProgramAt(line, at.Addr().String(), fmt.Sprint(at.Port()))
	})
	sc.Step(`^the BMC is restarted and up again$`, func() error {
		if err := s.sendOK("POST", root+"/Managers/1/Actions/Manager.Reset", object{"ResetType": "ForceRestart"}); err != nil {
			return err
		}
		s.advance(5, "minutes")
		return nil
	})
	sc.Step(`^the client leaves the console$`, func() error { return s.ipmi.console.Close(s.t.Context()) })
	sc.Step(`^the other client opens the server's console$`, func() error { return s.openConsole(1) })
	sc.Step(`^the console shows "([^"]*)"$`, s.consoleShows)
	sc.Step(`^somebody types "([^"]*)" there$`, func(text string) error { return s.ipmi.console.Write(s.t.Context(), []byte(text+"\r")) })
	sc.After(func(ctx context.Context, _ *godog.Scenario, _ error) (context.Context, error) {
		for _, c := range s.ipmi.conns {
			_ = c.Close() // its BMC may be gone
		}
		return ctx, nil
	})
}

// address is where the first server's BMC speaks IPMI.
func (s *scenario) address() (string, error) {
	at, ok := s.server(1).IPMI()
	if !ok {
		return "", errors.New("IPMI is switched off")
	}
	return at.String(), nil
}

// passesChecks makes all checks that take no time of the lab.
func (s *scenario) passesChecks() error {
	at, err := s.address()
	if err != nil {
		return err
	}
	target := ipmi.Target{
		Address: at, Admin: ipmi.Account{Name: "ADMIN", Password: "ADMIN"}, Operator: ipmi.Account{Name: "op", Password: "op"},
		User: ipmi.Account{Name: "usr", Password: "usr"}, Timeout: responseTimeout / 4,
	}
	var wrong []string
	passed := 0
	for _, r := range ipmi.Run(s.t.Context(), target, ipmi.Checks()) {
		switch r.Verdict {
		case ipmi.Pass:
			passed++
		case ipmi.Skip:
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %s", r.Name, r.Detail))
		}
	}
	if len(wrong) > 0 || passed == 0 {
		return fmt.Errorf("%d checks passed, and not: %s", passed, strings.Join(wrong, "; "))
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

// sessionAnswers asks something in the first session.
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
		return errors.New("it is still there")
	}
	return nil
}

func (s *scenario) halfOpen(n int) error {
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

// openConsole opens the console in the n-th session.
func (s *scenario) openConsole(n int) error {
	console, err := s.ipmi.sessions[n].Console(s.t.Context(), 1)
	if err == nil {
		s.ipmi.console = console
	}
	return err
}

// consoleShows reads the console until a text has come.
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
