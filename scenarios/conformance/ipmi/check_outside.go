package ipmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Checks of what a BMC says to who has no session.
var outsideChecks = []Check{
	{"ping", "a presence ping gets a presence pong", "§13.2.3, §13.2.4", Must, checkPing},
	{"acknowledgements", "RMCP acknowledgements get no response, and IPMI messages get no acknowledgement", "§13.2.2", Must, checkACK},
	{"garbage", "malformed packets get no response", "§13.1.3", Must, checkGarbage},
	{"capabilities", "authentication capabilities have the requested form, in v1.5 and RMCP+ packets", "§22.13", Must, checkCapabilities},
	{"capabilities of nothing", "authentication capabilities of a reserved channel or level are refused", "§22.13", Should, checkNoCapabilities},
	{"GUID", "the system GUID is readable outside of sessions and equals that in RAKP 2", "§22.14", Must, checkGUID},
	{"unknown before login", "other commands outside of a session are refused or get no response", "§6.8, appendix G", Must, checkOutsideCommands},
}

func checkPing(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	pong, err := c.Ping(ctx)
	if err != nil {
		return requireStep(err, "ping")
	}
	want := append(rmcp(classASF), 0, 0, 0x11, 0xBE, 0x40)
	const size = 28
	switch {
	case len(pong.Raw) != size || !bytes.HasPrefix(pong.Raw, want):
		return findingf("the pong is % X", pong.Raw)
	case !pong.IPMI || pong.ASF != 1:
		return findingf("supported entities are %02Xh, not 81h", pong.Raw[20])
	case pong.Interactions&0x5F != 0 || !bytes.Equal(pong.Raw[22:], make([]byte, 6)):
		return findingf("reserved bits are set: % X", pong.Raw[21:])
	case pong.Enterprise == enterpriseASF && pong.OEM != [4]byte{}:
		return findingf("OEM-defined bytes % X of nobody", pong.OEM)
	}
	return nil
}

func checkACK(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	if err := p.expectNoAnswer(ctx, c, "an RMCP acknowledgement", []byte{6, 0, 0, classACK | classASF}, []byte{6, 0, 0, classACK | classIPMI}); err != nil {
		return err
	}
	// A sequence number other than FFh asks for an acknowledgement.
	c.Tamper.Wire = func(b []byte) [][]byte {
		b[2] = 0x05
		return [][]byte{b}
	}
	_, err = c.AuthCapabilities(ctx, V15, thisChannel, Administrator, false)
	for _, d := range c.dropped {
		return findingf("an IPMI message was acknowledged: %s", d)
	}
	return requireStep(err, "a message with an RMCP sequence number")
}

func checkGarbage(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	h, err := c.Handshake(p.login(17))
	if err != nil {
		return err
	}
	valid, err := c.bare(Header{Payload: PayloadOpenRequest}, h.openRequest(h.suite))
	if err != nil {
		return err
	}
	var bad [][]byte
	for cut := range len(valid) {
		bad = append(bad, valid[:cut])
	}
	bad = append(bad,
		append([]byte{5}, valid[1:]...),                // another version of RMCP
		append([]byte{6, 0, 0xFF, 8}, valid[4:]...),    // another class
		append([]byte{6, 0, 0xFF, 7, 3}, valid[5:]...), // no authentication type
		bytes.Repeat([]byte{0xFF}, 64),
		bytes.Repeat([]byte{0}, 1400),
	)
	return p.expectNoAnswer(ctx, c, "garbage", bad...)
}

func checkCapabilities(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	for _, f := range []Framing{V15, V20} {
		for _, extended := range []bool{false, true} {
			what := fmt.Sprintf("in %s, extended: %v", f, extended)
			a, err := c.AuthCapabilities(ctx, f, thisChannel, Administrator, extended)
			if err != nil {
				return requireStep(err, what)
			}
			switch {
			case a.Extended != extended:
				return findingf("%s: bit 7 of the types is %v", what, a.Extended)
			case !extended && (a.V20 || a.V15 || a.TwoKey):
				return findingf("%s: bits of the extended form are set: %+v", what, a)
			case extended && !a.V20:
				return findingf("%s: no RMCP+ sessions: %+v", what, a)
			case a.Reserved != [3]byte{}:
				return findingf("%s: reserved bits are set: % X", what, a.Reserved)
			case a.Channel == thisChannel || a.Channel > 0x0B:
				return findingf("%s: the channel is %02Xh, which is no number of one", what, a.Channel)
			case extended && a.TwoKey != (p.KG != nil):
				return findingf("%s: K_g is set: %v, which is not so", what, a.TwoKey)
			case a.Names&4 == 0:
				return findingf("%s: no users with names, though %s is one", what, p.Admin.Name)
			}
			same, err := c.AuthCapabilities(ctx, f, a.Channel, Administrator, extended)
			if err != nil {
				return requireStep(err, what+", by number")
			}
			if same != a {
				return findingf("%s: %+v by its number, %+v as Eh", what, same, a)
			}
		}
	}
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	if a, err := s.AuthCapabilities(ctx, thisChannel, Administrator, true); err != nil || !a.V20 {
		return findingf("within a session: %+v, %v", a, err)
	}
	return nil
}

func checkNoCapabilities(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	for _, tt := range []struct {
		what    string
		channel byte
		level   Privilege
	}{
		{"reserved channel Ch", 0x0C, Administrator},
		{"reserved level 0", thisChannel, 0},
		{"reserved level Fh", thisChannel, 0x0F},
	} {
		_, err := c.AuthCapabilities(ctx, V15, tt.channel, tt.level, true)
		if err := refused(err, tt.what, InvalidField); err != nil {
			return err
		}
	}
	return nil
}

func checkGUID(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	if s.GUID == [16]byte{} {
		return findingf("RAKP 2 has GUID 0")
	}
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	for _, f := range []Framing{V15, V20} {
		g, err := c.GUID(ctx, f)
		if err != nil {
			return requireStep(err, f.String())
		}
		if g != s.GUID {
			return findingf("in %s: % X, but in RAKP 2 % X", f, g, s.GUID)
		}
	}
	if g, err := s.SystemGUID(ctx); err != nil || g != s.GUID {
		return findingf("within a session: % X, %v; in RAKP 2 % X", g, err, s.GUID)
	}
	return nil
}

// checkOutsideCommands asks for what needs a session. BMCs refuse it with D4h
// or drop it.
func checkOutsideCommands(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	c.Tries = 1
	for _, f := range []Framing{V15, V20} {
		for _, r := range []Request{GetChassisStatus, GetDeviceID} {
			data, err := c.Ask(ctx, f, r)
			switch {
			case err == nil:
				return findingf("%s in %s outside of a session: % X", r, f, data)
			case !errors.As(err, new(Code)) && !errors.Is(err, ErrNoAnswer):
				return requireStep(err, r.String())
			case len(data) > 0:
				return findingf("%s is refused, and % X told all the same", r, data)
			}
		}
	}
	_, err = c.Ping(ctx)
	return requireStep(err, "the ping after")
}

// Checks of the list of cipher suites.
var suiteChecks = []Check{
	{"suites listed", "the list of cipher suites is the same in v1.5 and RMCP+ packets and in a session", "§22.15", Must, checkSuiteList},
	{"suites true", "a session opens with each listed cipher suite and with no other", "§13.17, §22.15", Must, checkSuites},
	{"suite 0", "cipher suite 0 opens no session without a password", "§13.28.2", Must, checkSuite0},
}

func checkSuiteList(ctx context.Context, p *probe) error {
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	var lists []string
	for _, ask := range []asker{s.conn.outside(V15), s.conn.outside(V20), s.Do} {
		l, err := cipherSuites(ctx, ask, thisChannel)
		if err != nil {
			return requireStep(err, "the list")
		}
		for _, one := range l {
			if std, err := suite(one.ID); err == nil && std != one {
				return findingf("suite %d is listed with algorithms %d, %d, %d", one.ID, one.Auth, one.Integrity, one.Crypt)
			}
		}
		lists = append(lists, fmt.Sprint(l))
	}
	if lists[0] != lists[1] || lists[0] != lists[2] {
		return findingf("v1.5 framing lists %s, RMCP+ framing %s, a session %s", lists[0], lists[1], lists[2])
	}
	return nil
}

func checkSuites(ctx context.Context, p *probe) error {
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	offered, err := c.CipherSuites(ctx, V15, thisChannel)
	if err != nil {
		return requireStep(err, "the list")
	}
	listed := map[byte]bool{}
	for _, s := range offered {
		listed[s.ID] = true
	}
	for _, s := range Suites {
		what := fmt.Sprintf("suite %d", s.ID)
		if !listed[s.ID] {
			h, err := c.Handshake(p.login(s.ID))
			if err != nil {
				return err
			}
			if err := refused(h.Open(ctx), what, NoSuite, InvalidAuth, InvalidIntegrity, InvalidCrypt, NoAuthMatch, NoIntegrityMatch); err != nil {
				return err
			}
			continue
		}
		session, err := p.closeAfter(c.Login(ctx, p.login(s.ID)))
		if err != nil {
			return requireStep(err, what)
		}
		if _, err := session.Do(ctx, GetDeviceID); err != nil {
			return requireStep(err, what)
		}
	}
	return nil
}

func checkSuite0(ctx context.Context, p *probe) error {
	if p.Insecure {
		return skipped("it is wanted here")
	}
	c, err := p.dial(ctx)
	if err != nil {
		return err
	}
	c.Tries = 2
	_, err = p.closeAfter(c.Login(ctx, p.login(0)))
	return refused(err, "cipher suite 0", NoSuite, InvalidAuth, InvalidIntegrity, InvalidCrypt, NoAuthMatch, NoIntegrityMatch)
}
