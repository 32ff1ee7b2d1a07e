package session_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// refused checks that a step is answered with the 8 bytes of an error.
func (w *world) refused(c *client, packet []byte, payload byte, console uint32, status wire.Status) {
	w.Helper()
	a := w.reply(c, packet, payload)
	want := append([]byte{c.tag, byte(status), 0, 0}, u32(console)...)
	if !bytes.Equal(a, want) {
		w.Errorf("answer % x, want % x", a, want)
	}
}

// altered is a packet of the handshake with bytes of its body replaced.
func altered(packet []byte, at int, b ...byte) []byte {
	packet = bytes.Clone(packet)
	copy(packet[16+at:], b)
	return packet
}

// cut returns a packet of the handshake with only the first bytes of its body.
func cut(packet []byte, n int) []byte { return setup(packet[5], packet[16:16+n]) }

func TestOpenSessionErrors(t *testing.T) {
	base := func(c *client) []byte { return c.openRequest(4) }
	for _, tt := range []struct {
		name   string
		packet func(*client) []byte
		suites []session.Suite
		limit  wire.Privilege
		want   wire.Status
	}{
		{name: "authentication that nobody has", packet: func(c *client) []byte { return altered(base(c), 12, 0x3f) }, want: wire.StatusInvalidAuthentication},
		{name: "integrity that nobody has", packet: func(c *client) []byte { return altered(base(c), 20, 5) }, want: wire.StatusInvalidIntegrity},
		{name: "RC4", packet: func(c *client) []byte { return altered(base(c), 28, 2) }, want: wire.StatusInvalidConfidentiality},
		{name: "a triple that is no suite", packet: func(c *client) []byte { return altered(base(c), 12, 1) }, want: wire.StatusNoSuite},
		{name: "a suite that is not taken", packet: base, suites: []session.Suite{{ID: 3, Limit: 4}}, want: wire.StatusNoSuite},
		{name: "a suite with a lower limit", packet: base, suites: []session.Suite{{ID: 17, Limit: 3}}, want: wire.StatusNoSuite},
		{name: "no suite at all", packet: base, suites: []session.Suite{}, want: wire.StatusNoSuite},
		{name: "no authentication", packet: func(c *client) []byte { return altered(base(c), 8, 1) }, want: wire.StatusNoAuthentication},
		{name: "no integrity", packet: func(c *client) []byte { return altered(base(c), 16, 0) }, want: wire.StatusNoIntegrity},
		{name: "no confidentiality", packet: func(c *client) []byte { return cut(base(c), 24) }, want: wire.StatusIllegalParameter},
		{name: "another kind of algorithm", packet: func(c *client) []byte { return altered(base(c), 24, 3) }, want: wire.StatusInvalidPayload},
		{name: "a length that no proposal has", packet: func(c *client) []byte { return altered(base(c), 27, 9) }, want: wire.StatusIllegalParameter},
		{name: "cut", packet: func(c *client) []byte { return cut(base(c), 30) }, want: wire.StatusIllegalParameter},
		{name: "only the head", packet: func(c *client) []byte { return cut(base(c), 8) }, want: wire.StatusNoAuthentication},
		{name: "a role that nobody has", packet: func(c *client) []byte { return c.openRequest(6) }, want: wire.StatusInvalidRole},
		{name: "a channel without privileges", packet: base, limit: 0xff, want: wire.StatusInvalidRole},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
			c.tag = 0x5b
			if tt.suites != nil {
				w.auth.suites = tt.suites
			}
			if tt.limit != 0 {
				w.auth.limit = 0
			}
			w.refused(c, tt.packet(c), 0x11, c.console, tt.want)
			if _, ok := w.table.Deadline(); ok {
				t.Error("something is open after it")
			}
		})
	}
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	if got := w.send(c, cut(c.openRequest(4), 7)); got.Reply != nil {
		t.Errorf("a request without the client's session was answered with % x", got.Reply)
	}
}

func TestOpenSessionAnswersMaximumPrivilege(t *testing.T) {
	for _, tt := range []struct {
		asked, suite, channel, want byte
	}{
		{0, 4, 4, 4}, {0, 5, 5, 4}, {0, 3, 4, 3}, {0, 4, 2, 2},
		{1, 4, 4, 1}, {2, 4, 4, 2}, {4, 4, 4, 4}, {4, 4, 3, 3}, {5, 5, 5, 5}, {3, 4, 4, 3},
	} {
		w, c := newWorld(t), newClient(3, "ADMIN", "ADMIN")
		w.auth.suites = []session.Suite{{ID: 17, Limit: 5}, {ID: 3, Limit: wire.Privilege(tt.suite)}}
		w.auth.limit = wire.Privilege(tt.channel)
		a := w.reply(c, c.openRequest(tt.asked), 0x11)
		if a[1] != 0 || a[2] != tt.want || len(a) != 36 {
			t.Errorf("Open Session with %d asked, suite up to %d, channel up to %d: % x, want privilege %d", tt.asked, tt.suite, tt.channel, a, tt.want)
		}
	}
}

func TestBMCChoosesAmongProposals(t *testing.T) {
	proposal := func(kind, algorithm byte) []byte { return []byte{kind, 0, 0, 8, algorithm, 0, 0, 0} }
	anyOf := func(kind byte) []byte { return []byte{kind, 0, 0, 0, 0, 0, 0, 0} }
	for _, tt := range []struct {
		name      string
		privilege byte
		suites    []session.Suite
		proposals [][]byte
		want      []byte
	}{
		{"all left to it", 0, []session.Suite{{ID: 17, Limit: 4}, {ID: 3, Limit: 4}}, [][]byte{anyOf(0), anyOf(1), anyOf(2)}, []byte{3, 4, 1}},
		{"the first with the highest limit", 0, []session.Suite{{ID: 17, Limit: 3}, {ID: 3, Limit: 4}, {ID: 2, Limit: 4}}, [][]byte{anyOf(0), anyOf(1), anyOf(2)}, []byte{1, 1, 1}},
		{"the first with a limit that is enough", 2, []session.Suite{{ID: 17, Limit: 3}, {ID: 3, Limit: 4}}, [][]byte{anyOf(0), anyOf(1), anyOf(2)}, []byte{3, 4, 1}},
		{"encryption left to it", 0, []session.Suite{{ID: 17, Limit: 4}, {ID: 2, Limit: 4}}, [][]byte{proposal(0, 1), proposal(1, 1), anyOf(2)}, []byte{1, 1, 0}},
		{"several proposed", 0, []session.Suite{{ID: 17, Limit: 4}, {ID: 3, Limit: 4}}, [][]byte{proposal(0, 1), proposal(0, 3), proposal(1, 4), proposal(1, 1), proposal(2, 1)}, []byte{3, 4, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(17, "", "")
			w.auth.suites = tt.suites
			q := append([]byte{0, tt.privilege, 0, 0}, u32(c.console)...)
			a := w.reply(c, setup(0x10, append(q, slices.Concat(tt.proposals...)...)), 0x11)
			if a[1] != 0 || !bytes.Equal([]byte{a[16], a[24], a[32]}, tt.want) {
				t.Errorf("Open Session Response % x, want algorithms % x", a, tt.want)
			}
		})
	}
}

func TestRAKP1Errors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		packet func(*client) []byte
		limit  wire.Privilege
		want   wire.Status
	}{
		{name: "a user that is not there", packet: func(c *client) []byte { c.name = "nobody"; return c.rakp1() }, want: wire.StatusUnauthorizedName},
		{name: "a user without that level", packet: func(c *client) []byte { c.role = 0x03; return c.rakp1() }, want: wire.StatusUnauthorizedName},
		{name: "no role", packet: func(c *client) []byte { c.role = 0x10; return c.rakp1() }, want: wire.StatusInvalidRole},
		{name: "a role that nobody has", packet: func(c *client) []byte { c.role = 0x16; return c.rakp1() }, want: wire.StatusInvalidRole},
		{name: "a long name", packet: func(c *client) []byte { c.name = "seventeen letters"; return c.rakp1() }, want: wire.StatusInvalidNameLength},
		{name: "cut", packet: func(c *client) []byte { return cut(c.rakp1(), 30) }, want: wire.StatusIllegalParameter},
		{name: "only the head", packet: func(c *client) []byte { return cut(c.rakp1(), 8) }, want: wire.StatusIllegalParameter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
			w.open(c, 0)
			c.tag = 9
			w.refused(c, tt.packet(c), 0x13, c.console, tt.want)
			c.tag, c.name, c.role = 10, "ADMIN", 0x14 // the client sets it right (§13.21)
			w.identify(c)
			w.prove(c)
		})
	}
	t.Run("a session that is not there", func(t *testing.T) {
		w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
		w.open(c, 0)
		c.managed++
		w.refused(c, c.rakp1(), 0x13, 0, wire.StatusInvalidSession)
		w.refused(c, c.rakp3(), 0x15, 0, wire.StatusInvalidSession)
	})
	t.Run("the session of another address", func(t *testing.T) {
		w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
		w.open(c, 0)
		c.from = netip.MustParseAddrPort("127.0.0.1:40001")
		w.refused(c, c.rakp1(), 0x13, 0, wire.StatusInvalidSession)
	})
}

func TestRAKP3Errors(t *testing.T) {
	t.Run("the wrong password", func(t *testing.T) {
		for _, suite := range []byte{3, 8, 17} {
			w, c := newWorld(t), newClient(suite, "ADMIN", "ADMIN")
			w.open(c, 0)
			w.identify(c)
			c.password = "WRONG"
			w.refused(c, c.rakp3(), 0x15, c.console, wire.StatusInvalidCode)
			w.refused(c, c.rakp3(), 0x15, c.console, wire.StatusInvalidCode) // a repeated message
			if diff := cmp.Diff([]string{"ADMIN false"}, w.auth.admitted); diff != "" || w.table.Len() != 0 {
				t.Errorf("suite %d: %d sessions; Admit (-want +got):\n%s", suite, w.table.Len(), diff)
			}
			c.password, c.tag = "ADMIN", 1
			w.refused(c, c.rakp3(), 0x15, c.console, wire.StatusInactiveSession) // it begins again
			w.identify(c)
			w.prove(c)
		}
	})
	t.Run("a code where there is none", func(t *testing.T) {
		w, c := newWorld(t), newClient(0, "ADMIN", "")
		w.open(c, 0)
		w.identify(c)
		w.refused(c, setup(0x14, append(c.rakp3()[16:], 1, 2, 3)), 0x15, c.console, wire.StatusInvalidCode)
	})
	t.Run("no code where there is one", func(t *testing.T) {
		w, c := newWorld(t), newClient(3, "ADMIN", "ADMIN")
		w.open(c, 0)
		w.identify(c)
		w.refused(c, cut(c.rakp3(), 8), 0x15, c.console, wire.StatusInvalidCode)
	})
	t.Run("before RAKP 1", func(t *testing.T) {
		w, c := newWorld(t), newClient(3, "ADMIN", "ADMIN")
		w.open(c, 0)
		w.refused(c, c.rakp3(), 0x15, c.console, wire.StatusInactiveSession)
	})
	t.Run("a login that is refused after all", func(t *testing.T) {
		w, c := newWorld(t), newClient(3, "ADMIN", "ADMIN")
		w.auth.refuse = true
		w.open(c, 0)
		w.identify(c)
		w.refused(c, c.rakp3(), 0x15, c.console, wire.StatusInvalidCode)
	})
	t.Run("the client gives up", func(t *testing.T) {
		w, c := newWorld(t), newClient(3, "ADMIN", "ADMIN")
		w.open(c, 0)
		w.identify(c)
		for range 2 {
			if got := w.send(c, altered(cut(c.rakp3(), 8), 1, byte(wire.StatusInvalidCode))); got.Reply != nil {
				t.Errorf("it was answered with % x", got.Reply)
			}
		}
		if diff := cmp.Diff([]string{"ADMIN false"}, w.auth.admitted); diff != "" {
			t.Errorf("Admit (-want +got):\n%s", diff)
		}
		w.refused(c, c.rakp3(), 0x15, c.console, wire.StatusInactiveSession)
	})
}

func TestUsersAreFoundByNameOrByLevel(t *testing.T) {
	for _, tt := range []struct {
		name, password string
		role           byte
		user           byte
		limit          wire.Privilege
	}{
		{"ADMIN", "ADMIN", 0x14, 2, 4},
		{"ADMIN", "ADMIN", 0x13, 2, 3}, // not above what was asked
		{"ADMIN", "ADMIN", 0x15, 2, 4},
		{"op", "op", 0x14, 3, 3}, // not above the user's
		{"op", "op", 0x11, 3, 1},
		{"op", "op", 0x03, 3, 3},
		{"", "oper", 0x03, 6, 3}, // the level alone (§13.20)
		{"", "admin", 0x04, 7, 4},
		{"", "oper", 0x14, 6, 3}, // the first without name
		{"long", "01234567890123456789", 0x14, 5, 4},
	} {
		w, c := newWorld(t), newClient(17, tt.name, tt.password)
		c.role = tt.role
		s := w.login(c)
		want := min(tt.limit, wire.User)
		if s.User.ID != tt.user || s.Limit != tt.limit || s.Privilege != want {
			t.Errorf("%q with role %02xh: user %d up to %d at %d, want %d up to %d at %d", tt.name, tt.role, s.User.ID, s.Limit, s.Privilege, tt.user, tt.limit, want)
		}
	}
}

func TestRepeatedHandshakeMessageGetsTheSameResponse(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	same := func(name string, packet, first []byte) {
		t.Helper()
		for range 2 {
			if got := w.send(c, packet); !bytes.Equal(got.Reply, first) {
				t.Errorf("%s again: % x, want % x", name, got.Reply, first)
			}
		}
	}
	open := w.send(c, c.openRequest(0)).Reply
	same("Open Session", c.openRequest(0), open)
	w.open(c, 0)
	first := w.send(c, c.rakp1()).Reply
	same("RAKP 1", c.rakp1(), first)
	same("Open Session, late", c.openRequest(0), open)
	w.identify(c)
	third := w.send(c, c.rakp3()).Reply
	same("RAKP 3", c.rakp3(), third)
	same("RAKP 1, late", c.rakp1(), first)
	w.prove(c)
	if n := w.table.Len(); n != 1 {
		t.Fatalf("%d sessions, want 1", n)
	}
	if diff := cmp.Diff([]string{"ADMIN true"}, w.auth.admitted); diff != "" {
		t.Errorf("Admit (-want +got):\n%s", diff)
	}

	// A new message with the same tag is a new one.
	d := newClient(17, "ADMIN", "ADMIN")
	d.from = netip.MustParseAddrPort("127.0.0.1:7")
	w.open(d, 0)
	w.identify(d)
	was := d.rc
	d.rm[0]++
	w.identify(d)
	if d.rc == was {
		t.Error("RAKP 1 with another random number was answered with the same")
	}
	w.prove(d)

	// Once the session is used, old copies are nothing.
	w.exchange(c, c.request(6, 1))
	for _, packet := range [][]byte{c.rakp1(), c.rakp3()} {
		if got := w.send(c, packet); got.Reply != nil || got.Body != nil {
			t.Errorf("an old copy of % x was answered", packet)
		}
	}
	w.exchange(c, c.request(6, 1))
}

func TestClientsWithEqualConsoleIDs(t *testing.T) {
	w := newWorld(t)
	var all []*client
	for i := range 8 {
		c := newClient(3, "ADMIN", "ADMIN") // ipmitool: tag 0 and session A0A2A3A4h always
		c.from = netip.AddrPortFrom(c.from.Addr(), uint16(50000+i))
		all = append(all, c)
		w.open(c, 0)
	}
	for _, c := range all {
		w.identify(c)
	}
	for i, c := range all {
		w.prove(c)
		if s := w.table.Find(c.managed); int(s.Handle) != i+1 || s.From != c.from {
			t.Errorf("client %d has handle %d and address %s", i, s.Handle, s.From)
		}
	}
	for _, c := range all {
		c.parse(t, w.exchange(c, c.request(6, 1)))
	}
}

func TestFailingRandomSourceOpensNoSession(t *testing.T) {
	w := newWorldWith(t, session.Config{Rand: bytes.NewReader(nil)})
	c := newClient(17, "ADMIN", "ADMIN")
	w.refused(c, c.openRequest(0), 0x11, c.console, wire.StatusNoResources)
	w.table = session.New(session.Config{Rand: bytes.NewReader([]byte{1, 2, 3, 4, 5})})
	w.open(c, 0)
	w.refused(c, c.rakp1(), 0x13, c.console, wire.StatusNoResources)
}

func TestPresencePing(t *testing.T) {
	w, c := newWorld(t), newClient(17, "", "")
	ping := func(tag byte) []byte { return []byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, tag, 0, 0} }
	// DCMI v1.5, table 6-13.
	want := []byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x40, 0x2a, 0, 16, 0, 0, 0x8e, 0x71, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0}
	if got := w.send(c, ping(0x2a)).Reply; !bytes.Equal(got, want) {
		t.Errorf("pong % x, want % x", got, want)
	}
	for name, packet := range map[string][]byte{
		"a ping that is no question": ping(0xff),
		"an acknowledged ping":       {6, 0, 7, 0x86},
		"an acknowledged IPMI":       append([]byte{6, 0, 7, 0x87}, setup(0, nil)[4:]...),
		"a pong":                     want,
		"an OEM's class":             {6, 0, 0xff, 8, 0, 0, 0, 0},
		"another version":            append([]byte{7}, ping(1)[1:]...),
		"nothing of IPMI":            {6, 0, 0xff, 7},
		"nothing":                    {},
	} {
		if got := w.send(c, packet); got.Reply != nil || got.Body != nil {
			t.Errorf("%s was answered: %+v", name, got)
		}
	}
}

func TestMessagesOutsideOfSessions(t *testing.T) {
	w, c := newWorld(t), newClient(17, "", "")
	q := message(6, 1, 0x38, 0x8e, 4)
	v15 := append([]byte{6, 0, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(q))}, q...)
	for name, packet := range map[string][]byte{"IPMI 1.5": v15, "RMCP+": setup(0, q)} {
		got := w.send(c, packet)
		if got.Session != nil || !bytes.Equal(got.Body, q) {
			t.Errorf("%s: Receive = %+v, want the body % x and no session", name, got, q)
			continue
		}
		back := w.table.Wrap(nil, got.Frame, wire.PayloadIPMI, q)
		if !bytes.Equal(back, packet) {
			t.Errorf("%s: answer % x, want it in the same form: % x", name, back, packet)
		}
	}
	for name, packet := range map[string][]byte{
		"encrypted":                setup(0x80, q),
		"signed":                   setup(0x40, q),
		"serial over LAN":          setup(1, q),
		"a response of a BMC":      setup(0x11, q),
		"an OEM's payload":         setup(0x20, q),
		"IPMI 1.5 with a code":     append([]byte{6, 0, 0xff, 7, 2}, make([]byte, 25)...),
		"a session nobody has":     append([]byte{6, 0, 0xff, 7, 6, 0, 1, 2, 3, 4, 1, 0, 0, 0, byte(len(q)), 0}, q...),
		"a 1.5 session nobody has": append([]byte{6, 0, 0xff, 7, 0, 1, 0, 0, 0, 1, 2, 3, 4, byte(len(q))}, q...),
	} {
		if got := w.send(c, packet); got.Reply != nil || got.Body != nil {
			t.Errorf("%s was heard: %+v", name, got)
		}
	}
}

func TestSessionIDsAreNeverZeroOrTaken(t *testing.T) {
	again := bytes.Repeat([]byte{0, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0}, 1)
	w := newWorldWith(t, session.Config{Rand: bytes.NewReader(again)})
	var ids []uint32
	for i := range 2 {
		c := newClient(17, "ADMIN", "ADMIN")
		c.tag = byte(i)
		w.open(c, 0)
		ids = append(ids, c.managed)
	}
	if fmt.Sprint(ids) != "[7 8]" {
		t.Errorf("session IDs %v, want 7 and 8", ids)
	}
}
