package session_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// hears says whether a packet is heard at all.
func (w *world) hears(c *client, packet []byte) bool {
	got := w.send(c, packet)
	if got.Reply != nil || (got.Session == nil) != (got.Body == nil) {
		w.Errorf("Receive(% x) = %+v, want a body in a session or nothing", packet, got)
	}
	return got.Body != nil
}

func TestSequenceWindow(t *testing.T) {
	// Numbers in their order, and whether each is taken (§6.12.14).
	for _, tt := range []struct {
		name string
		seq  []uint32
		want []bool
	}{
		{"in order", []uint32{1, 2, 3}, []bool{true, true, true}},
		{"ipmitool begins at 3", []uint32{3, 4}, []bool{true, true}},
		{"duplicates", []uint32{1, 1, 2, 1, 2}, []bool{true, false, true, false, false}},
		{"out of order", []uint32{5, 3, 4, 3, 6, 5}, []bool{true, true, true, false, true, false}},
		{"15 ahead", []uint32{1, 16, 32, 31}, []bool{true, true, false, true}},
		{"16 behind", []uint32{40, 24, 23, 25, 24}, []bool{true, true, false, true, false}},
		{"far ahead does not kill", []uint32{1, 1000, 0x80000000, 0xffffffff, 2}, []bool{true, false, false, true, true}},
		{"never back", []uint32{10, 20, 5, 21, 4, 20}, []bool{true, true, true, true, false, false}},
		{"around", []uint32{0xfffffffe, 0xffffffff, 0, 1, 0xfffffffd, 0xffffffff, 2}, []bool{true, true, false, true, true, false, true}},
		{"none", []uint32{0, 1}, []bool{false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, suite := range []byte{1, 2, 17} {
				w, c := newWorld(t), newClient(suite, "ADMIN", "ADMIN")
				w.login(c)
				for i, n := range tt.seq {
					if got := w.hears(c, c.numbered(0, n, message(6, 1, 1))); got != tt.want[i] {
						t.Errorf("suite %d: number %08x (%d of %08x) heard: %t, want %t", suite, n, i, tt.seq, got, tt.want[i])
					}
				}
			}
		})
	}
}

func TestInvalidPacketsAreDropped(t *testing.T) {
	q := message(6, 1, 1, 1, 2, 3)
	for _, suite := range []byte{2, 3, 7, 11, 12, 16, 17} {
		w, c := newWorld(t), newClient(suite, "ADMIN", "ADMIN")
		s := w.login(c)
		w.exchange(c, c.request(6, 1))
		used := s.LastUsed
		w.now = w.now.Add(time.Second)
		good := c.numbered(0, 10, q)
		// Each bit of the packet, whose number is the next that is taken.
		for i := range len(good) * 8 {
			bad := bytes.Clone(good)
			bad[i/8] ^= 1 << (i % 8)
			// Receivers ignore the reserved byte of the RMCP header, and the reserved
			// bits of the class and of the format.
			if i/8 == 1 || i/8 == 2 || i/8 == 3 && i%8 > 4 && i%8 < 7 {
				continue
			}
			if got := w.send(c, bad); got.Body != nil || got.Reply != nil {
				t.Fatalf("suite %d: packet with bit %d changed was heard: %+v", suite, i, got)
			}
		}
		for n := range good {
			if w.hears(c, good[:n]) {
				t.Fatalf("suite %d: packet cut to %d bytes was heard", suite, n)
			}
		}
		if w.hears(c, append(bytes.Clone(good), 0)) {
			t.Errorf("suite %d: packet with a byte more was heard", suite)
		}
		if !s.LastUsed.Equal(used) {
			t.Errorf("suite %d: wrong packets keep the session alive", suite)
		}
		if !w.hears(c, good) {
			t.Errorf("suite %d: the packet itself is not heard after wrong ones with its number", suite)
		}
	}
}

func TestPacketsAreProtectedAsTheSuiteSays(t *testing.T) {
	q := message(6, 1, 1)
	for _, suite := range []byte{2, 3, 17} {
		w, c := newWorld(t), newClient(suite, "ADMIN", "ADMIN")
		w.login(c)
		plain := append([]byte{6, 0, 0xff, 7, 6, 0}, u32(c.managed)...)
		plain = append(append(append(plain, u32(5)...), byte(len(q)), 0), q...)
		if w.hears(c, plain) {
			t.Errorf("suite %d: a packet without code was heard", suite)
		}
		if suite == 2 {
			continue
		}
		if w.hears(c, c.signed(0, 6, q)) {
			t.Errorf("suite %d: a packet that is not encrypted was heard", suite)
		}
		plain[5] = 0x80
		if w.hears(c, plain) {
			t.Errorf("suite %d: a packet that is encrypted without code was heard", suite)
		}
		if !w.hears(c, c.numbered(0, 6, q)) {
			t.Errorf("suite %d: a right packet was not heard", suite)
		}
	}
	w, c := newWorld(t), newClient(1, "ADMIN", "ADMIN")
	w.login(c)
	signed := append([]byte{6, 0, 0xff, 7, 6, 0x40}, u32(c.managed)...)
	signed = append(append(append(signed, u32(5)...), byte(len(q)), 0), q...)
	if w.hears(c, append(signed, 0, 7)) {
		t.Error("suite 1: a packet that says it is signed was heard")
	}
}

func TestPadsOfEncryptionAreChecked(t *testing.T) {
	body := message(6, 1, 1) // 7 bytes
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	w.login(c)
	for _, tt := range []struct {
		name string
		body []byte
		want bool
	}{
		{"right", c.encrypt(body, []byte{1, 2, 3, 4, 5, 6, 7, 8, 8}), true},
		{"another value", c.encrypt(body, []byte{1, 2, 3, 4, 5, 6, 7, 9, 8}), false},
		{"another first", c.encrypt(body, []byte{0, 2, 3, 4, 5, 6, 7, 8, 8}), false},
		{"longer than a block", c.encrypt(body, append(bytes.Repeat([]byte{16}, 24), 16)), false},
		{"no pad", c.encrypt(append(body, 1, 2, 3, 4, 5, 6, 7, 8), []byte{0}), true},
		{"a block of it alone", c.encrypt(nil, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15}), true},
		{"only a vector", bytes.Repeat([]byte{0x5a}, 16), false},
		{"nothing", nil, false},
		{"half a block", c.encrypt(body, nil)[:24], false},
	} {
		c.seq++
		if got := w.hears(c, c.signed(0x80, c.seq, tt.body)); got != tt.want {
			t.Errorf("pad %s: heard %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestVectorsNeverRepeat(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	s := w.login(c)
	s.ProtectSOL(true, true)
	seen := map[string]bool{}
	for i := range 1000 {
		f := session.SOLFrame(s)
		b := w.table.Wrap(nil, f, wire.PayloadSOL, []byte("the same"))
		iv := string(b[16:32])
		if seen[iv] {
			t.Fatalf("packet %d has the vector % x of another", i, iv)
		}
		seen[iv] = true
	}
}

func TestSerialOverLAN(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	s := w.login(c)
	data := []byte{1, 0, 0, 0, 'a'}
	got := w.send(c, c.packet(1, data))
	if got.Session != s || got.Payload != wire.PayloadSOL || !bytes.Equal(got.Body, data) {
		t.Fatalf("Receive = %+v, want the payload % x", got, data)
	}
	payload, _, back := c.parse(t, w.table.Wrap(nil, session.SOLFrame(s), wire.PayloadSOL, data))
	if payload != 1 || !bytes.Equal(back, data) {
		t.Errorf("SOLFrame: payload %d, % x, want 1, % x", payload, back, data)
	}

	s.ProtectSOL(false, false)
	if w.hears(c, c.packet(1, data)) {
		t.Error("an encrypted payload was heard where none was agreed on")
	}
	plain := append([]byte{6, 0, 0xff, 7, 6, 1}, u32(c.managed)...)
	plain = append(append(append(plain, u32(1)...), byte(len(data)), 0), data...)
	if !w.hears(c, plain) {
		t.Error("a plain payload was not heard")
	}
	if w.hears(c, plain) {
		t.Error("it was heard twice")
	}
	want := append([]byte{6, 0, 0xff, 7, 6, 1}, u32(c.console)...)
	want = append(append(append(want, u32(1)...), byte(len(data)), 0), data...)
	if b := w.table.Wrap(nil, session.SOLFrame(s), wire.PayloadSOL, data); !bytes.Equal(b, want) {
		t.Errorf("plain payload % x, want % x", b, want)
	}
	w.exchange(c, c.request(6, 1)) // commands are protected all the same

	s.ProtectSOL(true, false)
	b := w.table.Wrap(nil, session.SOLFrame(s), wire.PayloadSOL, data)
	if b[5] != 0x41 || !bytes.Equal(c.code(b[4:len(b)-16]), b[len(b)-16:]) {
		t.Errorf("signed payload % x, want type 41h and its code", b)
	}
	if w.hears(c, c.packet(2, data)) {
		t.Error("an OEM's payload was heard")
	}
}

func TestAuthenticatedAndPlainPacketsHaveSeparateSequences(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	s := w.login(c)
	s.ProtectSOL(false, false)
	for want := uint32(1); want < 4; want++ {
		b := w.table.Wrap(nil, session.SOLFrame(s), wire.PayloadSOL, nil)
		if got := binary.LittleEndian.Uint32(b[10:]); got != want {
			t.Errorf("plain packet has number %d, want %d (§6.12.13)", got, want)
		}
		if _, got, _ := c.parse(t, w.exchange(c, c.request(6, 1))); got != want {
			t.Errorf("signed packet has number %d, want %d", got, want)
		}
	}
}

func TestSessionFollowsItsClient(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	s := w.login(c)
	c.from = netip.MustParseAddrPort("127.0.0.9:1234") // a NAT has forgotten it
	w.exchange(c, c.request(6, 1))
	if s.From != c.from {
		t.Errorf("From = %s, want %s", s.From, c.from)
	}
}

func TestResponseAfterCloseSessionIsProtected(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	w.login(c)
	q := c.request(6, 0x3c)
	got := w.send(c, c.packet(0, q))
	if !w.table.Close(c.managed) || w.table.Close(c.managed) {
		t.Error("Close is not true once")
	}
	if _, _, b := c.parse(t, w.table.Wrap(nil, got.Frame, wire.PayloadIPMI, q)); !bytes.Equal(b, q) {
		t.Errorf("answer % x, want % x", b, q)
	}
	if w.hears(c, c.packet(0, q)) {
		t.Error("a closed session was heard")
	}
}

func TestRepeatedRequestGetsTheStoredResponse(t *testing.T) {
	w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
	s := w.login(c)
	ask := func(q []byte) (answer []byte, again bool) {
		t.Helper()
		if !w.hears(c, c.packet(0, q)) {
			t.Fatalf("message % x was not heard", q)
		}
		return s.Repeat(q)
	}
	var qs [][]byte
	for n := range byte(4) {
		q := message(0, n, 2, n)
		qs = append(qs, q)
		if _, again := ask(q); again {
			t.Fatalf("new message %d was said to be repeated", n)
		}
		s.Remember(q, []byte{0xaa, n})
		w.now = w.now.Add(time.Second)
	}
	for n, q := range qs { // late copies, with numbers of their own
		if a, again := ask(q); !again || !bytes.Equal(a, []byte{0xaa, byte(n)}) {
			t.Errorf("message %d again: % x, %t, want aa %02x, true", n, a, again, n)
		}
	}
	for _, q := range [][]byte{message(0, 0, 2, 9), message(0, 5, 2, 0), message(0, 0, 3, 0)} {
		if _, again := ask(q); again {
			t.Errorf("message % x was said to be repeated", q)
		}
	}
	q := message(0, 9, 2)
	s.Remember(q, []byte{9})
	if _, again := ask(qs[0]); again {
		t.Error("the oldest was not forgotten for the newest")
	}
	w.now = w.now.Add(9 * time.Second)
	if _, again := ask(q); !again {
		t.Error("it was forgotten after 9 s")
	}
	w.now = w.now.Add(time.Second)
	if _, again := ask(q); again {
		t.Error("it was not forgotten after 10 s: a client that does not count gets old answers")
	}
}
