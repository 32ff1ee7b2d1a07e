package session_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// old is a client of IPMI 1.5, from §22.16, §22.17 and table 13-8.
type old struct {
	from      netip.AddrPort
	auth      byte
	name      string
	password  string
	id        uint32
	challenge [16]byte
	seq       uint32
	out       uint32
	rqSeq     byte
}

func newOld(auth byte, name, password string) *old {
	return &old{from: netip.MustParseAddrPort("127.0.0.1:41000"), auth: auth, name: name, password: password, out: 0x1000}
}

func (c *old) packet(seq uint32, body []byte) []byte {
	b := append([]byte{6, 0, 0xff, 7, c.auth}, u32(seq)...)
	b = append(b, u32(c.id)...)
	b = append(b, c.code(seq, body)...)
	return append(append(b, byte(len(body))), body...)
}

func (c *old) code(seq uint32, body []byte) []byte {
	key := append([]byte(c.password), make([]byte, 16-len(c.password))...)
	all := bytes.Join([][]byte{key, u32(c.id), body, u32(seq), key}, nil)
	switch c.auth {
	case 0:
		return nil
	case 1:
		h := session.NewMD2()
		h.Write(all)
		return h.Sum(nil)
	case 2:
		h := md5.Sum(all)
		return h[:]
	}
	return key
}

func (c *old) activation(privilege byte) []byte {
	c.rqSeq++
	data := append([]byte{c.auth, privilege}, c.challenge[:]...)
	return message(6, c.rqSeq, 0x3a, append(data, u32(c.out)...)...)
}

func (w *world) old(c *old, packet []byte) session.Received {
	return w.table.Receive(w.now, c.from, bytes.Clone(packet), nil, w.auth)
}

func (w *world) begin(c *old) {
	w.Helper()
	var name [16]byte
	copy(name[:], c.name)
	id, words, code := w.table.Challenge(w.now, c.from, c.auth, name[:], w.auth)
	if code != 0 || id == 0 {
		w.Fatalf("Challenge = %08x, code %02xh", id, code)
	}
	c.id, c.challenge = id, words
}

// activate sends Activate Session, and checks the answer's header.
func (w *world) activate(c *old, packet []byte) {
	w.Helper()
	got := w.old(c, packet)
	if got.Session == nil {
		w.Fatalf("Activate Session was not heard")
	}
	q, err := wire.ParseRequest(got.Body)
	if err != nil {
		w.Fatal(err)
	}
	a, code := w.table.Activate(w.now, c.from, got.Session, q.Data, w.auth)
	if code != 0 || a.ID != c.id || a.Auth != c.auth || a.Sequence == 0 {
		w.Fatalf("Activate = %+v, code %02xh", a, code)
	}
	c.seq = a.Sequence
	w.sealed(c, got.Frame, c.out)
}

// sealed checks that an answer has a number.
func (w *world) sealed(c *old, f session.Frame, seq uint32) {
	w.Helper()
	body := []byte("an answer")
	if got, want := w.table.Wrap(nil, f, wire.PayloadIPMI, body), c.packet(seq, body); !bytes.Equal(got, want) {
		w.Errorf("answer % x, want % x", got, want)
	}
}

func newOldWorld(t testing.TB) *world {
	w := newWorld(t)
	w.auth.types = wire.AuthTypes(0).With(wire.AuthNone, wire.AuthMD2, wire.AuthMD5, wire.AuthPassword)
	return w
}

var everyAuth = []byte{0, 1, 2, 4}

func TestIPMI15(t *testing.T) {
	for _, auth := range everyAuth {
		t.Run(fmt.Sprint(auth), func(t *testing.T) {
			w, c := newOldWorld(t), newOld(auth, "ADMIN", "ADMIN")
			w.begin(c)
			if w.table.Find(c.id) != nil {
				t.Error("the session is open before Activate Session")
			}
			if w.old(c, c.packet(0, message(6, 1, 1))).Body != nil || w.old(c, c.packet(1, c.activation(4))).Body != nil {
				t.Error("something else than Activate Session without a number was heard")
			}
			first := c.packet(0, c.activation(4))
			w.activate(c, first)
			w.activate(c, first) // the answer was lost (§22.17)
			s := w.table.Find(c.id)
			if s == nil || !s.V15 || s.Privilege != wire.User || s.Limit != wire.Administrator || s.User.ID != 2 || s.Handle != 1 {
				t.Fatalf("session %+v, want that of user 2 at USER, up to ADMINISTRATOR", s)
			}
			if diff := cmp.Diff([]string{"ADMIN true"}, w.auth.admitted); diff != "" {
				t.Errorf("Admit (-want +got):\n%s", diff)
			}
			q := message(0, 3, 1)
			got := w.old(c, c.packet(c.seq, q))
			if got.Session != s || !bytes.Equal(got.Body, q) {
				t.Fatalf("Receive = %+v, want % x", got, q)
			}
			w.sealed(c, got.Frame, c.out+1)
			if w.old(c, first).Body != nil {
				t.Error("Activate Session without a number was heard in a session that is in use")
			}
			// In the session it sets the number of what the BMC sends.
			c.out = 0x77
			got = w.old(c, c.packet(c.seq+1, c.activation(3)))
			r, err := wire.ParseRequest(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			a, code := w.table.Activate(w.now, c.from, got.Session, r.Data, w.auth)
			if code != 0 || a.Sequence != c.seq+2 {
				t.Errorf("Activate in the session = %+v, code %02xh, want number %08x", a, code, c.seq+2)
			}
			w.sealed(c, got.Frame, 0x77)
		})
	}
}

func TestIPMI15IsDisabledByDefault(t *testing.T) {
	w := newWorld(t)
	for _, auth := range everyAuth {
		if id, _, code := w.table.Challenge(w.now, newOld(auth, "", "").from, auth, make([]byte, 16), w.auth); code != 0xcc || id != 0 {
			t.Errorf("Challenge of type %d = %08x, code %02xh, want code CCh", auth, id, code)
		}
	}
}

func TestChallengeRefusesUsers(t *testing.T) {
	w := newOldWorld(t)
	for _, tt := range []struct {
		name string
		code byte
	}{{"nobody", 0x81}, {"long", 0x81}, {"ADMIN", 0}} { // a password of 20 bytes is for IPMI 2.0 (§22.30)
		var name [16]byte
		copy(name[:], tt.name)
		if _, _, code := w.table.Challenge(w.now, newOld(2, "", "").from, 2, name[:], w.auth); code != tt.code {
			t.Errorf("Challenge(%q): code %02xh, want %02xh", tt.name, code, tt.code)
		}
	}
	w.auth.users = w.auth.users[:4]
	if _, _, code := w.table.Challenge(w.now, newOld(2, "", "").from, 2, make([]byte, 16), w.auth); code != 0x82 {
		t.Errorf("Challenge without a name: code %02xh, want 82h", code)
	}
}

func TestActivateSessionErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(w *world, c *old)
		level  byte
		code   byte
	}{
		{"nothing", func(*world, *old) {}, 4, 0},
		{"another challenge", func(_ *world, c *old) { c.challenge[3]++ }, 4, 0xcc},
		{"no number for answers", func(_ *world, c *old) { c.out = 0 }, 4, 0x84},
		{"no level", func(*world, *old) {}, 0, 0xcc},
		{"a level that nobody has", func(*world, *old) {}, 6, 0xcc},
		{"above the channel", func(w *world, _ *old) { w.auth.limit = wire.Operator }, 4, 0x86},
		{"above the user", func(w *world, _ *old) {}, 5, 0x86},
		{"no place", func(w *world, _ *old) {
			for _, c := range many(16) {
				w.login(c)
			}
		}, 4, 0x81},
		{"refused after all", func(w *world, _ *old) { w.auth.refuse = true }, 4, 0xd4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newOldWorld(t), newOld(2, "ADMIN", "ADMIN")
			w.begin(c)
			tt.change(w, c)
			got := w.old(c, c.packet(0, c.activation(tt.level)))
			q, err := wire.ParseRequest(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if _, code := w.table.Activate(w.now, c.from, got.Session, q.Data, w.auth); code != tt.code {
				t.Errorf("Activate: code %02xh, want %02xh", code, tt.code)
			}
			if open := w.table.Find(c.id) != nil; open != (tt.code == 0) {
				t.Errorf("session open: %t", open)
			}
			w.sealed(c, got.Frame, map[bool]uint32{true: c.out, false: 1}[tt.code == 0]) // in its form
			if _, code := w.table.Activate(w.now, c.from, nil, q.Data, w.auth); code != 0x85 && tt.code == 0 {
				t.Errorf("Activate outside of a session: code %02xh, want 85h", code)
			}
		})
	}
}

func TestIPMI15WrongPasswordIsCountedOnce(t *testing.T) {
	w, c := newOldWorld(t), newOld(2, "ADMIN", "WRONG")
	w.begin(c)
	wrong := c.packet(0, c.activation(4))
	for range 4 {
		if got := w.old(c, wrong); got.Body != nil || got.Reply != nil {
			t.Errorf("it was heard: %+v", got)
		}
	}
	if diff := cmp.Diff([]string{"ADMIN false"}, w.auth.admitted); diff != "" {
		t.Errorf("Admit (-want +got):\n%s", diff)
	}
	c.password = "ADMIN"
	w.activate(c, c.packet(0, c.activation(4)))
}

func TestIPMI15SequenceWindow(t *testing.T) {
	for _, tt := range []struct {
		seq  []int // from the first number
		want []bool
	}{
		{[]int{0, 1, 2, 1}, []bool{true, true, true, false}},
		{[]int{7, 16, 15, 24}, []bool{true, false, true, false}}, // 8 at most
		{[]int{-1, 8, 0}, []bool{false, false, true}},
		{[]int{5, 13, 5, 4, 6, 21}, []bool{true, true, false, false, true, true}},
	} {
		w, c := newOldWorld(t), newOld(2, "ADMIN", "ADMIN")
		w.begin(c)
		w.activate(c, c.packet(0, c.activation(4)))
		for i, n := range tt.seq {
			got := w.old(c, c.packet(c.seq+uint32(n), message(6, 1, 1))).Body != nil
			if got != tt.want[i] {
				t.Errorf("number %d (%d of %d) heard: %t, want %t", n, i, tt.seq, got, tt.want[i])
			}
		}
	}
}

func TestIPMI15And20SessionsAreSeparate(t *testing.T) {
	w, c, n := newOldWorld(t), newOld(0, "ADMIN", "ADMIN"), newClient(0, "ADMIN", "")
	w.begin(c)
	w.activate(c, c.packet(0, c.activation(4)))
	w.login(n)
	c.id, n.managed = n.managed, c.id
	if w.old(c, c.packet(c.seq, message(6, 1, 1))).Body != nil || w.hears(n, n.packet(0, message(6, 1, 1))) {
		t.Error("a session was heard in the form of the other")
	}
	c.id = n.managed
	c.auth = 2
	if w.old(c, c.packet(c.seq, message(6, 1, 1))).Body != nil {
		t.Error("another authentication type was heard")
	}
}

func TestMD2(t *testing.T) {
	// RFC 1319, appendix A.5.
	for in, want := range map[string]string{
		"":                           "8350e5a3e24c153df2275c9f80692773",
		"a":                          "32ec01ec4a6dac72c0ab96fb34c0b5d1",
		"abc":                        "da853b0d3f88d99b30283a69e6ded6bb",
		"message digest":             "ab4f496bfb2a530b219ff33031fe06b0",
		"abcdefghijklmnopqrstuvwxyz": "4e8ddff3650292ab5a4108c3aa47940b",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789":                   "da33def2a42df13975352846c30338cd",
		"12345678901234567890123456789012345678901234567890123456789012345678901234567890": "d5976f79d83d3a0dc9806c3c66f3efd8",
	} {
		h := session.NewMD2()
		h.Write([]byte(in))
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("MD2(%q) = %s, want %s", in, got, want)
		}
		h.Reset()
		if got := hex.EncodeToString(h.Sum(nil)); got != "8350e5a3e24c153df2275c9f80692773" {
			t.Errorf("MD2 after Reset = %s", got)
		}
	}
}
