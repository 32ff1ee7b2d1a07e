package ipmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Checks of the Open Session Request.
var openChecks = []Check{
	{"open: level", "the Open Session Response has the granted privilege level", "§13.18", Must, checkOpenLevel},
	{"open: role", "a reserved privilege level is refused", "§13.18, §13.24", Should, checkOpenRole},
	{"open: algorithms", "algorithms that no cipher suite combines are refused in 8 bytes", "§13.18, §13.24", Must, checkOpenAlgorithms},
	{"half open", "thirty unfinished handshakes do not prevent a login", "§6.12a", Must, checkHalfOpen},
	{"same console ID", "two consoles can use the same session ID and message tags", "§13.18", Must, checkSameConsole},
}

// handshake prepares a login of the administrator with the best suite.
func (p *probe) handshake(ctx context.Context) (*Handshake, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	id, err := p.anySuite(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.Handshake(p.login(id))
}

func checkOpenLevel(ctx context.Context, p *probe) error {
	h, err := p.handshake(ctx)
	if err != nil {
		return err
	}
	for _, asked := range []Privilege{0, Administrator, Operator, User} {
		h.login.Limit = asked
		what := "asked for " + asked.String()
		if err := h.Open(ctx); err != nil {
			return requireStep(err, what)
		}
		if h.Limit == 0 || h.Limit > 5 || asked != 0 && h.Limit > asked {
			return findingf("%s: granted %s", what, h.Limit)
		}
		if asked == 0 && h.Limit < Administrator {
			return findingf("%s: granted %s, which %s exceeds", what, h.Limit, p.Admin.Name)
		}
	}
	return nil
}

func checkOpenRole(ctx context.Context, p *probe) error {
	h, err := p.handshake(ctx)
	if err != nil {
		return err
	}
	h.login.Limit = 0x0F
	return refused(h.Open(ctx), "level Fh", InvalidRole)
}

func checkOpenAlgorithms(ctx context.Context, p *probe) error {
	h, err := p.handshake(ctx)
	if err != nil {
		return err
	}
	const reserved = 0x2F
	for _, tt := range []struct {
		what string
		with Suite
		want []Status
	}{
		{"authentication 2Fh", Suite{Auth: reserved, Integrity: h.suite.Integrity, Crypt: h.suite.Crypt}, []Status{InvalidAuth, NoSuite, NoAuthMatch}},
		{"integrity 2Fh", Suite{Auth: h.suite.Auth, Integrity: reserved, Crypt: h.suite.Crypt}, []Status{InvalidIntegrity, NoSuite, NoIntegrityMatch}},
		{"confidentiality 2Fh", Suite{Auth: h.suite.Auth, Integrity: h.suite.Integrity, Crypt: reserved}, []Status{InvalidCrypt, NoSuite}},
		{"SHA1 with SHA256", Suite{Auth: authSHA1, Integrity: integritySHA256, Crypt: cryptAES}, []Status{NoSuite, InvalidIntegrity, InvalidAuth, NoIntegrityMatch}},
		{"SHA256 with SHA1", Suite{Auth: authSHA256, Integrity: integritySHA1, Crypt: cryptAES}, []Status{NoSuite, InvalidIntegrity, InvalidAuth, NoIntegrityMatch}},
	} {
		if err := refused(h.OpenWith(ctx, tt.with), tt.what, tt.want...); err != nil {
			return err
		}
	}
	return nil
}

func checkHalfOpen(ctx context.Context, p *probe) error {
	for range 30 {
		h, err := p.handshake(ctx)
		if err != nil {
			return err
		}
		if err := h.Open(ctx); err != nil && !errors.Is(err, NoResources) {
			return requireStep(err, "open")
		}
	}
	s, err := p.open(ctx)
	if err != nil {
		return requireStep(err, "the login after")
	}
	_, err = s.Do(ctx, GetDeviceID)
	return requireStep(err, "the command after")
}

func checkSameConsole(ctx context.Context, p *probe) error {
	const asIpmitool = 0xA0A2A3A4
	var handshakes []*Handshake
	for range 2 {
		h, err := p.handshake(ctx)
		if err != nil {
			return err
		}
		h.Console, h.conn.tag = asIpmitool, 0
		handshakes = append(handshakes, h)
	}
	for i, step := range []func(*Handshake) error{
		func(h *Handshake) error { return h.Open(ctx) },
		func(h *Handshake) error { return h.Challenge(ctx) },
		func(h *Handshake) error {
			s, err := p.closeAfter(h.Prove(ctx))
			if err != nil {
				return err
			}
			_, err = s.Do(ctx, GetDeviceID)
			return err
		},
	} {
		for n, h := range handshakes {
			if err := step(h); err != nil {
				return requireStep(err, fmt.Sprintf("console %d, step %d", n+1, i+1))
			}
		}
	}
	if handshakes[0].ID == handshakes[1].ID {
		return findingf("both have session ID %08X", handshakes[0].ID)
	}
	return nil
}

// Checks of RAKP.
var rakpChecks = []Check{
	{"RAKP 1: name", "an unknown name is refused in 8 bytes", "§13.21, §13.24", Must, checkUnknownName},
	{"RAKP 1: session", "an unknown session is refused in 8 bytes, for console 0", "§13.21", Should, checkUnknownSession},
	{"RAKP 1: name length", "a name of 17 bytes is refused", "§13.20, §13.24", Should, checkNameLength},
	{"RAKP 3: code", "a wrong key exchange code is refused in 8 bytes and opens no session", "§13.23, §13.24", Must, checkWrongCode},
	{"RAKP 3: session", "an unknown session is refused in 8 bytes", "§13.23", Should, checkUnknownProof},
	{"wrong password", "a login with a wrong password opens no session", "§13.31", Must, checkWrongPassword},
	{"retries", "a repeated message of the handshake gets the same response again", "§13.17–13.23", Must, checkRetries},
	{"lookup", "a user is looked up by name, or by name and privilege level, as requested", "§13.20", Should, checkLookup},
	{"K_g", "a session opens only with the BMC's K_g", "§13.31", Must, checkKG},
}

// opened is a handshake that waits for RAKP 1.
func (p *probe) opened(ctx context.Context) (*Handshake, error) {
	h, err := p.handshake(ctx)
	if err != nil {
		return nil, err
	}
	return h, h.Open(ctx)
}

func checkUnknownName(ctx context.Context, p *probe) error {
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	h.login.Name = "no-such-user-1"
	return refused(h.Challenge(ctx), "an unknown name", UnknownName)
}

func checkUnknownSession(ctx context.Context, p *probe) error {
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	h.ID ^= 0x5A5A5A5A
	if err := refused(h.Challenge(ctx), "an unknown session", InvalidSessionID, InactiveSession); err != nil {
		return err
	}
	if console := h.lastResponse[4:8]; !bytes.Equal(console, make([]byte, 4)) {
		return findingf("console session ID % X, which nobody can know", console)
	}
	return nil
}

func checkNameLength(ctx context.Context, p *probe) error {
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	h.login.Name = "seventeen-letters"
	return refused(h.Challenge(ctx), "a name of 17 bytes", InvalidNameSize, IllegalParameter, UnknownName)
}

func checkWrongCode(ctx context.Context, p *probe) error {
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	if err := h.Challenge(ctx); err != nil {
		return err
	}
	h.conn.Tamper.Message = func(b []byte) []byte {
		b[len(b)-1] ^= 1
		return b
	}
	_, err = h.Prove(ctx)
	if err := refused(err, "a wrong code", InvalidICV); err != nil {
		return err
	}
	return p.unopened(ctx, h)
}

// unopened demands that a handshake has not opened its session.
func (p *probe) unopened(ctx context.Context, h *Handshake) error {
	h.keys()
	s, err := h.session()
	if err != nil {
		return err
	}
	h.conn.Tamper = Tamper{}
	h.conn.Tries = 1
	if _, err := s.Do(ctx, GetDeviceID); err == nil {
		return findingf("the session takes commands all the same")
	}
	return nil
}

func checkUnknownProof(ctx context.Context, p *probe) error {
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	if err := h.Challenge(ctx); err != nil {
		return err
	}
	h.ID ^= 0x5A5A5A5A
	_, err = h.Prove(ctx)
	return refused(err, "an unknown session", InvalidSessionID, InactiveSession)
}

func checkWrongPassword(ctx context.Context, p *probe) error {
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	h.login.Password = "not-" + p.Admin.Password
	if err := h.Challenge(ctx); !errors.Is(err, ErrPassword) {
		return findingf("RAKP 2 does not show that the password is wrong: %v", err)
	}
	_, err = h.Prove(ctx)
	if err := refused(err, "RAKP 3 of a wrong password", InvalidICV); err != nil {
		return err
	}
	return p.unopened(ctx, h)
}

func checkRetries(ctx context.Context, p *probe) error {
	h, err := p.handshake(ctx)
	if err != nil {
		return err
	}
	again := func(what string, kind PayloadType) error {
		response := h.lastResponse
		for range 2 {
			var second []byte
			tag := h.lastRequest[16]
			err := h.conn.roundTrip(ctx, what+" again", func() ([]byte, error) { return h.lastRequest, nil }, func(b []byte) (bool, error) {
				var ok bool
				second, ok = h.response(b, kind, tag)
				return ok, nil
			})
			if err != nil {
				return requireStep(err, what)
			}
			if !bytes.Equal(response, second) {
				return findingf("%s: first % X, then % X", what, response, second)
			}
		}
		return nil
	}
	if err := h.Open(ctx); err != nil {
		return err
	}
	if err := again("Open Session Request", PayloadOpenResponse); err != nil {
		return err
	}
	if err := h.Challenge(ctx); err != nil {
		return requireStep(err, "RAKP 1 after a repeated Open Session Request")
	}
	if err := again("RAKP 1", PayloadRAKP2); err != nil {
		return err
	}
	s, err := p.closeAfter(h.Prove(ctx))
	if err != nil {
		return requireStep(err, "RAKP 3 after a repeated RAKP 1")
	}
	if err := again("RAKP 3", PayloadRAKP4); err != nil {
		return err
	}
	_, err = s.Do(ctx, GetDeviceID)
	return requireStep(err, "a command after a repeated RAKP 3")
}

func checkLookup(ctx context.Context, p *probe) error {
	if _, err := p.openAs(ctx, p.Admin, Administrator, true); err != nil {
		return requireStep(err, "the administrator by name and level")
	}
	if _, err := p.openAs(ctx, p.Operator, Operator, true); err != nil {
		if errors.As(err, new(skipped)) {
			return err
		}
		return requireStep(err, "the operator by name and level")
	}
	_, err := p.openAs(ctx, p.Operator, Administrator, true)
	return refused(err, "the operator by its name and ADMINISTRATOR", UnknownName, UnauthorizedRole)
}

func checkKG(ctx context.Context, p *probe) error {
	if p.KG == nil {
		// Without one the password stands for it; with any other the proofs
		// of RAKP 4 differ.
		h, err := p.opened(ctx)
		if err != nil {
			return err
		}
		h.login.KG = []byte("some other key of 20")
		if err := h.Challenge(ctx); err != nil {
			return err
		}
		if _, err := h.Prove(ctx); !errors.Is(err, ErrKey) {
			return findingf("RAKP 4 proves a K_g that the BMC does not have: %v", err)
		}
		h.login.KG = nil
		h.keys()
		_, err = p.closeAfter(h.session()) // it is open: do not leave it behind
		return err
	}
	s, err := p.open(ctx)
	if err != nil {
		return requireStep(err, "with K_g")
	}
	if _, err := s.Do(ctx, GetDeviceID); err != nil {
		return requireStep(err, "with K_g")
	}
	h, err := p.opened(ctx)
	if err != nil {
		return err
	}
	h.login.KG = nil
	if err := h.Challenge(ctx); err != nil {
		return err
	}
	if _, err := h.Prove(ctx); !errors.Is(err, ErrKey) {
		return findingf("without K_g: %v", err)
	}
	return p.unopened(ctx, h)
}
