package conformance

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// ipmiSuites are the cipher suites that clients try, the best first.
var ipmiSuites = []byte{17, 3}

// IPMISession opens an IPMI session of ADMINISTRATOR level with the run's
// credentials. The caller ends it with IPMIClose.
func (r *Run) IPMISession(ctx context.Context) (*ipmi.Session, error) {
	var all error
	if r.bmc.ipmiSilent {
		return nil, ipmi.ErrNoAnswer
	}
	for _, suite := range ipmiSuites {
		conn, err := ipmi.Dial(ctx, r.bmc.conf.IPMI)
		if err != nil {
			return nil, err
		}
		conn.Timeout, conn.Tries = r.ipmiTimeout(), 3
		s, err := conn.Login(ctx, ipmi.Login{Name: r.bmc.conf.Username, Password: r.bmc.conf.Password, Suite: suite, Role: ipmi.Administrator})
		if err == nil {
			if _, err = s.Raise(ctx, ipmi.Administrator); err == nil {
				return s, nil
			}
		}
		conn.Close()
		all = errors.Join(all, fmt.Errorf("cipher suite %d: %w", suite, err))
		if errors.Is(err, ipmi.UnknownName) || errors.Is(err, ipmi.ErrPassword) || errors.Is(err, ipmi.InvalidICV) {
			break // another try with the same credentials would count towards a lockout
		}
	}
	return nil, all
}

// IPMIClose ends a session and its socket.
func (r *Run) IPMIClose(ctx context.Context, s *ipmi.Session) {
	_ = s.Close(context.WithoutCancel(ctx)) // it ends by itself when this is lost
	s.Conn().Close()
}

// IPMIDo sends a command that changes nothing, and records it as evidence.
func (r *Run) IPMIDo(ctx context.Context, s *ipmi.Session, q ipmi.Request) ([]byte, error) {
	began := r.bmc.conf.Clock.Now()
	data, err := s.Do(ctx, q)
	x := Exchange{
		Check: r.check, Began: began, Method: "IPMI", URL: "udp://" + r.bmc.conf.IPMI + "/" + q.String(),
		RequestBody: []byte(hex.EncodeToString(q.Data)), Body: []byte(hex.EncodeToString(data)), Size: int64(len(data)), Took: r.bmc.conf.Clock.Since(began),
	}
	if err != nil {
		x.Error = err.Error()
	}
	r.keep(r.bmc.client.record(x))
	return data, err
}

// IPMIChange journals a command that changes something, and sends it. Each undo is
// the network function, the command and the data of a command.
func (r *Run) IPMIChange(ctx context.Context, s *ipmi.Session, level Level, q ipmi.Request, undo ...[]byte) ([]byte, error) {
	if !r.level.Allows(level) {
		return nil, fmt.Errorf("IPMI %s: %w: it needs --level %s", q, ErrLevel, level)
	}
	if r.bmc.dry != nil {
		r.bmc.dry.print(fmt.Sprintf("IPMI %s % x", q, q.Data))
		return nil, nil
	}
	if level.Allows(Disruptive) && !r.bmc.sure {
		if err := r.confirm(ctx); err != nil {
			return nil, err
		}
	}
	e := Entry{Time: r.Now().UTC(), Check: r.check, Method: "IPMI", URI: q.String()}
	for _, u := range undo {
		e.Undo = append(e.Undo, Undo{IPMI: u})
	}
	e, err := r.journal().append(e)
	if err != nil {
		return nil, err
	}
	r.Forget()
	data, err := r.IPMIDo(ctx, s, q)
	done := Entry{Write: e.Write, Time: r.Now().UTC(), Status: 200}
	if code := ipmi.Code(0); errors.As(err, &code) {
		done.Status = 400
	} else if err != nil {
		return nil, err // whether it reached the BMC is unknown: it stays open
	}
	if _, jerr := r.journal().append(done); jerr != nil {
		return nil, jerr
	}
	return data, err
}

// undoIPMI sends an undo in a session of its own.
func (r *Run) undoIPMI(ctx context.Context, command []byte) error {
	if len(command) < 2 {
		return fmt.Errorf("IPMI command of %d bytes in the journal", len(command))
	}
	if r.bmc.conf.IPMI == "" {
		return errors.New("the journal has an IPMI command: use --ipmi")
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return err
	}
	defer r.IPMIClose(ctx, s)
	_, err = r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.NetFn(command[0]), Command: command[1], Data: command[2:]})
	return err
}

// dryIPMI prints the IPMI commands that a check would send.
func (r *Run) dryIPMI(what string) Outcome {
	r.bmc.dry.print("IPMI " + what)
	return Passed("")
}
