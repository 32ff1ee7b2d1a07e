package ipmi

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// guard stands between go-ipmi and its socket, and lets through only what the
// BMC has said in answer to what was asked. go-ipmi takes the first datagram
// for the answer to a message of the handshake, believes every packet of a
// session without looking at its AuthCode, and slices by the pad length that it
// has decrypted: a packet with the well-known console session ID that anybody
// may send would end the whole program.
type guard struct {
	net.Conn
	name, password []byte
	// proof is what RAKP 3 proves the password with, of a BMC that fills names up
	// elsewhere; nil: the name.
	proof []byte
	long  bool // the code of RAKP 2 had a byte more than it has
	// level is asked for when a session is opened already, not only in RAKP 1:
	// some BMCs make keys with that one (FreeIPMI, workaround opensesspriv).
	level byte

	mu     sync.Mutex
	cut    bool    // no more reads: the call's context has ended
	asked  byte    // payload type of the last packet that was sent
	wanted [3]byte // algorithms that were asked for
	bmc    [4]byte // the BMC's session ID
	ours   []byte  // random numbers
	theirs []byte
	role   byte
	sums   func([]byte) []byte // AuthCode; nil before RAKP 3
	block  cipher.Block
	seen   map[uint32]bool // session sequence numbers of the BMC
}

func newGuard(c net.Conn, who bmc.Credentials) *guard {
	password := make([]byte, maxPassword)
	copy(password, who.Password)
	return &guard{Conn: c, name: []byte(who.Username), password: password, seen: map[uint32]bool{}}
}

// Dial implements proxy.Dialer: it is how go-ipmi comes by the guard.
func (g *guard) Dial(string, string) (net.Conn, error) { return g, nil }

// Payload types and places in a packet (IPMI v2.0 rev 1.1, §13.6).
const (
	payloadIPMI = 0x00
	payloadOpen = 0x10
	payloadR1   = 0x12
	payloadR3   = 0x14
	header      = 16 // bytes before the payload
	refusal     = 8  // bytes of an answer of the handshake whose status is no success
)

// console is the session ID that go-ipmi has in every session.
var console = [4]byte{0xa3, 0xa2, 0xa1, 0xa0}

// algorithm is a hash that keys are made with.
type algorithm struct {
	hash func() hash.Hash
	icv  int // bytes of an AuthCode, and of the code of RAKP 4
}

// algorithms by the number of the authentication algorithm (§13.28).
var algorithms = map[byte]algorithm{1: {sha1.New, 12}, 3: {sha256.New, 16}}

func (a algorithm) sum(key []byte, parts ...[]byte) []byte {
	m := hmac.New(a.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// Write notes what is asked.
func (g *guard) Write(b []byte) (int, error) {
	g.mu.Lock()
	if len(b) >= header {
		body := b[header:]
		g.asked = b[5] & 0x3F
		switch {
		case g.asked == payloadOpen && len(body) >= 32:
			g.wanted = [3]byte{body[12], body[20], body[28]}
			b = bytes.Clone(b)
			b[header+1] = g.level
		case g.asked == payloadR1 && len(body) >= 28:
			g.ours, g.role = bytes.Clone(body[8:24]), body[24]
		case g.asked == payloadR3:
			g.keys()
			b = g.proven(b)
		}
	}
	g.mu.Unlock()
	return g.Conn.Write(b)
}

// keys makes the session's keys (§13.31, §13.32).
func (g *guard) keys() {
	a, ok := algorithms[g.wanted[0]]
	if !ok || g.theirs == nil || g.sums != nil {
		return
	}
	sik := a.sum(g.password, g.ours, g.theirs, []byte{g.role, byte(len(g.name))}, g.name)
	k1 := a.sum(sik, bytes.Repeat([]byte{1}, 20))
	g.sums = func(b []byte) []byte { return a.sum(k1, b)[:a.icv] }
	g.block, _ = aes.NewCipher(a.sum(sik, bytes.Repeat([]byte{2}, 20))[:16]) // 16 bytes are a key
}

// proven is RAKP 3 as a BMC wants it that fills names up: its code is made of the
// name as it is, and without the bit for lookup by name alone.
func (g *guard) proven(b []byte) []byte {
	a, ok := algorithms[g.wanted[0]]
	if g.proof == nil || !ok || g.theirs == nil || len(b) < header+refusal {
		return b
	}
	const privilege = 0x0F
	code := a.sum(g.password, g.theirs, console[:], []byte{g.role & privilege, byte(len(g.proof))}, g.proof)
	if len(b) != header+refusal+len(code) {
		return b
	}
	return append(bytes.Clone(b[:header+refusal]), code...)
}

// Read gives the next datagram that is an answer.
func (g *guard) Read(b []byte) (int, error) {
	for {
		n, err := g.Conn.Read(b)
		if err != nil {
			return n, err
		}
		g.mu.Lock()
		n, ok := g.admit(b, n)
		g.mu.Unlock()
		if ok {
			return n, nil
		}
	}
}

// admit reports whether the first n bytes of b are an answer, and how many
// they are then.
func (g *guard) admit(b []byte, n int) (int, bool) {
	p := b[:n]
	if len(p) < header || [5]byte(p) != [5]byte{6, 0, 0xFF, 7, 6} {
		return 0, false
	}
	size := int(binary.LittleEndian.Uint16(p[14:]))
	if len(p) < header+size {
		return 0, false
	}
	if p[5]&0x3F == payloadIPMI {
		return n, g.admitMessage(p, size)
	}
	if p[5] != g.asked+1 || len(p) != header+size || size < 2 || [8]byte(p[6:]) != [8]byte{} {
		return 0, false
	}
	body := p[header:]
	if status := body[1]; status != 0 {
		// Some BMCs end here (OpenIPMI's simulator does), and go-ipmi would
		// tell of bytes that are missing rather than of the status.
		if size < refusal && cap(b) >= header+refusal {
			clear(b[header+size : header+refusal])
			binary.LittleEndian.PutUint16(b[14:], refusal)
			n = header + refusal
		}
		return n, true
	}
	if a := algorithms[g.wanted[0]]; g.asked == payloadR1 && a.hash != nil && size == 40+a.hash().Size()+1 {
		// Some BMCs tell of a byte too many (FreeIPMI, workarounds supermicro20
		// and sun20).
		g.long = true
		size, n = size-1, n-1
		binary.LittleEndian.PutUint16(p[14:], uint16(size))
		body = body[:size]
	}
	return n, g.admitSetup(body)
}

// admitSetup is for the answers of a handshake that are no refusals.
func (g *guard) admitSetup(body []byte) bool {
	a := algorithms[g.wanted[0]]
	if a.hash == nil || len(body) < refusal || [4]byte(body[4:]) != console {
		return false
	}
	switch g.asked {
	case payloadOpen:
		if len(body) != 36 || g.wanted != [3]byte{body[16], body[24], body[32]} {
			return false
		}
		g.bmc = [4]byte(body[8:])
		return true
	case payloadR1:
		if len(body) != 40+a.hash().Size() {
			return false
		}
		g.theirs = bytes.Clone(body[8:24])
		return true
	case payloadR3:
		return len(body) == refusal+a.icv
	}
	return false
}

// admitMessage checks integrity, pads and number of a session's packet.
func (g *guard) admitMessage(p []byte, size int) bool {
	const flags = 0xC0 // encrypted and authenticated
	if g.sums == nil || p[5] != flags|payloadIPMI || [4]byte(p[6:]) != console {
		return false
	}
	icv := len(g.sums(nil))
	cut := len(p) - icv
	if cut < header+size+2 || !hmac.Equal(g.sums(p[4:cut]), p[cut:]) {
		return false
	}
	body := p[header : header+size]
	if len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return false
	}
	plain := make([]byte, len(body)-aes.BlockSize)
	cipher.NewCBCDecrypter(g.block, body[:aes.BlockSize]).CryptBlocks(plain, body[aes.BlockSize:])
	const least = 8 // bytes of an answer
	if pad := int(plain[len(plain)-1]); pad >= aes.BlockSize || len(plain)-1-pad < least {
		return false
	}
	number := binary.LittleEndian.Uint32(p[10:])
	if number == 0 || g.seen[number] {
		return false
	}
	g.seen[number] = true
	return true
}

// session is the BMC's session ID, as it is on the wire.
func (g *guard) session() [4]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bmc
}

// interrupt ends the read that is under way: go-ipmi would hold its lock until
// the end of the try.
func (g *guard) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = true
	_ = g.SetDeadline(time.Unix(1, 0))
}

// resume lets reads wait again.
func (g *guard) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = false
	_ = g.SetDeadline(time.Time{})
}

// SetReadDeadline does nothing after interrupt.
func (g *guard) SetReadDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut {
		return nil
	}
	return g.Conn.SetReadDeadline(t)
}
