package session_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// The client here is written from the standard, byte by byte. It shares no code
// with the package, because a mistake in shared code would not be seen.

// fakeAuthenticator is a session.Authenticator with accounts and settings that a
// test sets.
type fakeAuthenticator struct {
	guid     [16]byte
	kg       []byte
	suites   []session.Suite
	types    wire.AuthTypes
	limit    wire.Privilege
	users    []session.User
	refuse   bool
	admitted []string
	faults   session.Faults
}

var _ session.FaultyAuthenticator = (*fakeAuthenticator)(nil)

func (r *fakeAuthenticator) Faults() session.Faults { return r.faults }

func (r *fakeAuthenticator) GUID() [16]byte                          { return r.guid }
func (r *fakeAuthenticator) KG() []byte                              { return r.kg }
func (r *fakeAuthenticator) Suites() []session.Suite                 { return r.suites }
func (r *fakeAuthenticator) AuthTypes(wire.Privilege) wire.AuthTypes { return r.types }
func (r *fakeAuthenticator) Limit() wire.Privilege                   { return r.limit }

func (r *fakeAuthenticator) User(name string, role wire.Privilege, byName bool) (session.User, bool) {
	for _, u := range r.users {
		if u.Name == name && (byName || u.Limit == role) {
			return u, true
		}
	}
	return session.User{}, false
}

func (r *fakeAuthenticator) Admit(u session.User, proved bool, _ netip.AddrPort) bool {
	r.admitted = append(r.admitted, fmt.Sprintf("%s %t", u.Name, proved))
	return !r.refuse
}

func newAuthenticator() *fakeAuthenticator {
	r := &fakeAuthenticator{limit: wire.Administrator}
	for i := range r.guid {
		r.guid[i] = byte(0xa0 + i)
	}
	for _, id := range []byte{17, 3, 16, 15, 2, 1, 12, 11, 8, 7, 6, 0} {
		r.suites = append(r.suites, session.Suite{ID: id, Limit: wire.Administrator})
	}
	r.users = []session.User{
		{ID: 2, Account: "1", Name: "ADMIN", Password: "ADMIN", Limit: wire.Administrator},
		{ID: 3, Account: "2", Name: "op", Password: "op", Limit: wire.Operator},
		{ID: 4, Account: "3", Name: "usr", Password: "usr", Limit: wire.User},
		{ID: 5, Account: "4", Name: "long", Password: "01234567890123456789", Limit: wire.Administrator},
		{ID: 6, Account: "5", Name: "", Password: "oper", Limit: wire.Operator},
		{ID: 7, Account: "6", Name: "", Password: "admin", Limit: wire.Administrator},
	}
	return r
}

// suiteOf is table 22-20.
var suiteOf = map[byte][3]byte{
	0: {0, 0, 0}, 1: {1, 0, 0}, 2: {1, 1, 0}, 3: {1, 1, 1}, 6: {2, 0, 0}, 7: {2, 2, 0}, 8: {2, 2, 1},
	11: {2, 3, 0}, 12: {2, 3, 1}, 15: {3, 0, 0}, 16: {3, 4, 0}, 17: {3, 4, 1},
}

type client struct {
	from             netip.AddrPort
	suite            byte
	name, password   string
	kg               string
	role             byte // with the name-only bit
	console, managed uint32
	tag              byte
	rm, rc           [16]byte
	guid             [16]byte
	sik, k1, k2      []byte
	seq              uint32
	rqSeq            byte
}

func newClient(suite byte, name, password string) *client {
	c := &client{
		from: netip.MustParseAddrPort("127.0.0.1:40000"), suite: suite, name: name, password: password,
		role: 0x14, console: 0xa0a2a3a4, seq: 2,
	}
	for i := range c.rm {
		c.rm[i] = byte(i*7 + 1)
	}
	return c
}

func (c *client) newHash() func() hash.Hash {
	return map[byte]func() hash.Hash{1: sha1.New, 2: md5.New, 3: sha256.New}[suiteOf[c.suite][0]]
}

func (c *client) hmac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(c.newHash(), key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func (c *client) key() []byte { return append([]byte(c.password), make([]byte, 20-len(c.password))...) }

func u32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

func (c *client) tail() []byte {
	return append([]byte{c.role, byte(len(c.name))}, c.name...)
}

// setup is a packet outside of a session.
func setup(payload byte, body []byte) []byte {
	b := []byte{6, 0, 0xff, 7, 6, payload, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(body)), byte(len(body) >> 8)}
	return append(b, body...)
}

func (c *client) openRequest(privilege byte) []byte {
	s := suiteOf[c.suite]
	b := append([]byte{c.tag, privilege, 0, 0}, u32(c.console)...)
	b = append(b, 0, 0, 0, 8, s[0], 0, 0, 0)
	b = append(b, 1, 0, 0, 8, s[1], 0, 0, 0)
	b = append(b, 2, 0, 0, 8, s[2], 0, 0, 0)
	return setup(0x10, b)
}

func (c *client) rakp1() []byte {
	b := append([]byte{c.tag, 0, 0, 0}, u32(c.managed)...)
	b = append(b, c.rm[:]...)
	b = append(b, c.role, 0, 0, byte(len(c.name)))
	return setup(0x12, append(b, c.name...))
}

func (c *client) rakp3() []byte {
	b := append([]byte{c.tag, 0, 0, 0}, u32(c.managed)...)
	if suiteOf[c.suite][0] != 0 {
		b = append(b, c.hmac(c.key(), c.rc[:], u32(c.console), c.tail())...)
	}
	return setup(0x14, b)
}

// body is that of a packet outside of a session.
func body(t testing.TB, packet []byte, payload byte) []byte {
	t.Helper()
	if len(packet) < 16 {
		t.Fatalf("answer % x, want a packet of payload type %02xh", packet, payload)
	}
	want := append([]byte{6, 0, 0xff, 7, 6, payload, 0, 0, 0, 0, 0, 0, 0, 0}, byte(len(packet)-16), byte((len(packet)-16)>>8))
	if !bytes.Equal(packet[:16], want) {
		t.Fatalf("header % x, want % x", packet[:16], want)
	}
	return packet[16:]
}

// world is a table, its auth and the time.
type world struct {
	testing.TB
	table *session.Table
	auth  *fakeAuthenticator
	now   time.Time
}

func newWorld(t testing.TB) *world { return newWorldWith(t, session.Config{}) }

func newWorldWith(t testing.TB, c session.Config) *world {
	if c.Rand == nil {
		c.Rand = seeded(1)
	}
	return &world{TB: t, table: session.New(c), auth: newAuthenticator(), now: time.Unix(1e9, 0)}
}

type chance struct{ r *rand.Rand }

func (c chance) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c.r.Uint32())
	}
	return len(b), nil
}

func seeded(n uint64) io.Reader { return chance{rand.New(rand.NewPCG(n, 0))} }

// send gives the table a copy of a packet, as it overwrites them.
func (w *world) send(c *client, packet []byte) session.Received {
	return w.table.Receive(w.now, c.from, bytes.Clone(packet), nil, w.auth)
}

// reply is the answer to a step of the handshake.
func (w *world) reply(c *client, packet []byte, payload byte) []byte {
	w.Helper()
	return body(w, w.send(c, packet).Reply, payload)
}

// open does Open Session.
func (w *world) open(c *client, privilege byte) {
	w.Helper()
	a := w.reply(c, c.openRequest(privilege), 0x11)
	if len(a) != 36 || a[0] != c.tag || a[1] != 0 || !bytes.Equal(a[4:8], u32(c.console)) {
		w.Fatalf("Open Session Response % x, want tag %d, status 0, console %08x, 36 bytes", a, c.tag, c.console)
	}
	s := suiteOf[c.suite]
	want := []byte{0, 0, 0, 8, s[0], 0, 0, 0, 1, 0, 0, 8, s[1], 0, 0, 0, 2, 0, 0, 8, s[2], 0, 0, 0}
	if !bytes.Equal(a[12:], want) {
		w.Fatalf("Open Session Response has algorithms % x, want % x", a[12:], want)
	}
	c.managed = binary.LittleEndian.Uint32(a[8:])
}

// identify does RAKP 1 and 2.
func (w *world) identify(c *client) {
	w.Helper()
	a := w.reply(c, c.rakp1(), 0x13)
	if len(a) < 40 || a[1] != 0 || !bytes.Equal(a[4:8], u32(c.console)) {
		w.Fatalf("RAKP 2 % x, want status 0, console %08x", a, c.console)
	}
	copy(c.rc[:], a[8:24])
	copy(c.guid[:], a[24:40])
	var want []byte
	if suiteOf[c.suite][0] != 0 {
		want = c.hmac(c.key(), u32(c.console), u32(c.managed), c.rm[:], c.rc[:], c.guid[:], c.tail())
	}
	if !bytes.Equal(a[40:], want) {
		w.Fatalf("RAKP 2: code % x, want % x", a[40:], want)
	}
}

// prove does RAKP 3 and 4.
func (w *world) prove(c *client) {
	w.Helper()
	a := w.reply(c, c.rakp3(), 0x15)
	if len(a) < 8 || a[1] != 0 || !bytes.Equal(a[4:8], u32(c.console)) {
		w.Fatalf("RAKP 4 % x, want status 0, console %08x", a, c.console)
	}
	c.derive()
	if want := c.icv(); !bytes.Equal(a[8:], want) {
		w.Fatalf("RAKP 4: code % x, want % x", a[8:], want)
	}
}

func (c *client) derive() {
	if suiteOf[c.suite][0] == 0 {
		return
	}
	key := c.key()
	if c.kg != "" {
		key = append([]byte(c.kg), make([]byte, 20-len(c.kg))...)
	}
	c.sik = c.hmac(key, c.rm[:], c.rc[:], c.tail())
	c.k1 = c.hmac(c.sik, bytes.Repeat([]byte{1}, 20))
	c.k2 = c.hmac(c.sik, bytes.Repeat([]byte{2}, 20))
}

func (c *client) icv() []byte {
	if suiteOf[c.suite][0] == 0 {
		return nil
	}
	size := map[byte]int{1: 12, 2: 16, 3: 16}[suiteOf[c.suite][0]]
	return c.hmac(c.sik, c.rm[:], u32(c.managed), c.guid[:])[:size]
}

func (w *world) login(c *client) *session.Session {
	w.Helper()
	w.open(c, 0)
	w.identify(c)
	w.prove(c)
	s := w.table.Find(c.managed)
	if s == nil {
		w.Fatalf("Find(%08x) = nil after RAKP 4", c.managed)
	}
	return s
}

// code is the integrity code of data.
func (c *client) code(data []byte) []byte {
	switch suiteOf[c.suite][1] {
	case 1:
		return c.hmac(c.k1, data)[:12]
	case 2, 4:
		return c.hmac(c.k1, data)[:16]
	case 3:
		h := md5.New()
		h.Write(c.key())
		h.Write(data)
		h.Write(c.key())
		return h.Sum(nil)
	}
	return nil
}

// packet is a packet of the session with the next number.
func (c *client) packet(payload byte, body []byte) []byte {
	c.seq++
	return c.numbered(payload, c.seq, body)
}

func (c *client) numbered(payload byte, seq uint32, body []byte) []byte {
	if suiteOf[c.suite][2] == 1 {
		payload |= 0x80
		body = c.encrypt(body, nil)
	}
	return c.signed(payload, seq, body)
}

// encrypt encrypts a payload as table 13-20 defines; pad, when not nil, replaces
// the confidentiality pad.
func (c *client) encrypt(body, pad []byte) []byte {
	plain := bytes.Clone(body)
	if pad == nil {
		for n := byte(1); (len(body)+len(pad)+1)%16 != 0; n++ {
			pad = append(pad, n)
		}
		pad = append(pad, byte(len(pad)))
	}
	plain = append(plain, pad...)
	iv := bytes.Repeat([]byte{0x5a}, 16)
	aes, err := aes.NewCipher(c.k2[:16])
	if err != nil {
		panic(err)
	}
	cipher.NewCBCEncrypter(aes, iv).CryptBlocks(plain, plain)
	return append(iv, plain...)
}

func (c *client) signed(payload byte, seq uint32, body []byte) []byte {
	sign := suiteOf[c.suite][1] != 0
	if sign {
		payload |= 0x40
	}
	b := append([]byte{6, 0, 0xff, 7, 6, payload}, u32(c.managed)...)
	b = append(b, u32(seq)...)
	b = append(b, byte(len(body)), byte(len(body)>>8))
	b = append(b, body...)
	if !sign {
		return b
	}
	pad := 0
	for (len(b)-4+pad+2)%4 != 0 {
		pad++
	}
	b = append(b, bytes.Repeat([]byte{0xff}, pad)...)
	b = append(b, byte(pad), 7)
	return append(b, c.code(b[4:])...)
}

// parse takes an answer apart: its number and its body.
func (c *client) parse(t testing.TB, b []byte) (payload byte, seq uint32, out []byte) {
	t.Helper()
	s := suiteOf[c.suite]
	if len(b) < 16 || !bytes.Equal(b[:5], []byte{6, 0, 0xff, 7, 6}) {
		t.Fatalf("answer % x is no RMCP+ packet", b)
	}
	payload = b[5]
	if signed, sealed := payload&0x40 != 0, payload&0x80 != 0; signed != (s[1] != 0) || sealed != (s[2] != 0) {
		t.Fatalf("answer in suite %d: signed %t, encrypted %t", c.suite, signed, sealed)
	}
	if id := binary.LittleEndian.Uint32(b[6:]); id != c.console {
		t.Fatalf("answer for session %08x, want %08x", id, c.console)
	}
	seq = binary.LittleEndian.Uint32(b[10:])
	n := int(binary.LittleEndian.Uint16(b[14:]))
	out = b[16 : 16+n]
	if s[1] != 0 {
		size := len(c.code(nil))
		covered := b[4 : len(b)-size]
		if !bytes.Equal(c.code(covered), b[len(b)-size:]) {
			t.Fatalf("answer % x: its code is wrong", b)
		}
		pad := int(b[len(b)-size-2])
		if len(covered)%4 != 0 || 16+n+pad+2+size != len(b) || b[len(b)-size-1] != 7 {
			t.Fatalf("answer % x: its trailer is wrong", b)
		}
	} else if 16+n != len(b) {
		t.Fatalf("answer % x: bytes follow its body", b)
	}
	if s[2] == 0 {
		return payload & 0x3f, seq, out
	}
	aes, err := aes.NewCipher(c.k2[:16])
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Clone(out[16:])
	cipher.NewCBCDecrypter(aes, out[:16]).CryptBlocks(plain, plain)
	pad := int(plain[len(plain)-1])
	for i := range pad {
		if plain[len(plain)-1-pad+i] != byte(i+1) {
			t.Fatalf("answer % x: its pad is wrong", plain)
		}
	}
	return payload & 0x3f, seq, plain[:len(plain)-1-pad]
}

// request returns an IPMI message with the next requester sequence number.
func (c *client) request(fn, cmd byte, data ...byte) []byte {
	c.rqSeq = (c.rqSeq + 1) & 0x3f
	return message(fn, c.rqSeq, cmd, data...)
}

func message(fn, seq, cmd byte, data ...byte) []byte {
	b := []byte{0x20, fn << 2, 0, 0x81, seq << 2, cmd}
	b[2] = -(b[0] + b[1])
	b = append(b, data...)
	var sum byte
	for _, x := range b[3:] {
		sum += x
	}
	return append(b, -sum)
}
