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

// verifiedConn is the connection between go-ipmi and the BMC. It passes on only
// datagrams that the BMC has sent in answer to the last packet. go-ipmi itself
// takes the first datagram for the answer to a handshake message, accepts every
// packet of a session without checking its AuthCode, and slices by the decrypted
// pad length: a forged packet with go-ipmi's constant console session ID would
// crash the process.
type verifiedConn struct {
	net.Conn
	name, password []byte
	// proofName is the user name that RAKP 3 is computed from, for a BMC that pads
	// the name elsewhere; nil for name.
	proofName []byte
	longRAKP2 bool // the key exchange code of RAKP 2 had a byte too many
	// level is requested in Open Session, too, not only in RAKP 1: some BMCs
	// derive keys from it (FreeIPMI, workaround opensesspriv).
	level byte

	mu            sync.Mutex
	interrupted   bool    // reads fail: the call's context has ended
	sentPayload   byte    // payload type of the last packet sent
	requested     [3]byte // algorithms of Open Session
	bmcSession    [4]byte // session ID of the BMC
	consoleRandom []byte  // random number of RAKP 1
	bmcRandom     []byte
	role          byte
	authCode      func([]byte) []byte // computes the AuthCode; nil before RAKP 3
	block         cipher.Block
	seenNumbers   map[uint32]bool // session sequence numbers received from the BMC
}

func newVerifiedConn(c net.Conn, who bmc.Credentials) *verifiedConn {
	password := make([]byte, maxPassword)
	copy(password, who.Password)
	return &verifiedConn{Conn: c, name: []byte(who.Username), password: password, seenNumbers: map[uint32]bool{}}
}

// Dial implements proxy.Dialer, through which go-ipmi takes the connection.
func (g *verifiedConn) Dial(string, string) (net.Conn, error) { return g, nil }

// Payload types and offsets in a packet (IPMI v2.0 rev 1.1, §13.6).
const (
	payloadIPMI = 0x00
	payloadOpen = 0x10
	payloadR1   = 0x12
	payloadR3   = 0x14
	headerSize  = 16 // offset of the payload
	refusalSize = 8  // bytes of a handshake answer with an error status
)

// consoleSessionID is the console session ID of every go-ipmi session.
var consoleSessionID = [4]byte{0xa3, 0xa2, 0xa1, 0xa0}

// algorithm is a hash for key derivation.
type algorithm struct {
	hash func() hash.Hash
	icv  int // bytes of an AuthCode and of the integrity check value of RAKP 4
}

// algorithms maps the numbers of authentication algorithms (§13.28).
var algorithms = map[byte]algorithm{1: {sha1.New, 12}, 3: {sha256.New, 16}}

func (a algorithm) mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(a.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// Write sends a packet and records the fields that the response must match.
func (g *verifiedConn) Write(b []byte) (int, error) {
	g.mu.Lock()
	if len(b) >= headerSize {
		body := b[headerSize:]
		g.sentPayload = b[5] & 0x3F
		switch {
		case g.sentPayload == payloadOpen && len(body) >= 32:
			g.requested = [3]byte{body[12], body[20], body[28]}
			b = bytes.Clone(b)
			b[headerSize+1] = g.level
		case g.sentPayload == payloadR1 && len(body) >= 28:
			g.consoleRandom, g.role = bytes.Clone(body[8:24]), body[24]
		case g.sentPayload == payloadR3:
			g.deriveKeys()
			b = g.rewriteRAKP3(b)
		}
	}
	g.mu.Unlock()
	return g.Conn.Write(b)
}

// deriveKeys derives the session's keys (§13.31, §13.32).
func (g *verifiedConn) deriveKeys() {
	a, ok := algorithms[g.requested[0]]
	if !ok || g.bmcRandom == nil || g.authCode != nil {
		return
	}
	sik := a.mac(g.password, g.consoleRandom, g.bmcRandom, []byte{g.role, byte(len(g.name))}, g.name)
	k1 := a.mac(sik, bytes.Repeat([]byte{1}, 20))
	g.authCode = func(b []byte) []byte { return a.mac(k1, b)[:a.icv] }
	g.block, _ = aes.NewCipher(a.mac(sik, bytes.Repeat([]byte{2}, 20))[:16]) // a key of 16 bytes is valid
}

// rewriteRAKP3 returns RAKP 3 for a BMC that pads user names: such a BMC expects
// the code to be computed from the plain name and without the name-only lookup
// bit.
func (g *verifiedConn) rewriteRAKP3(b []byte) []byte {
	a, ok := algorithms[g.requested[0]]
	if g.proofName == nil || !ok || g.bmcRandom == nil || len(b) < headerSize+refusalSize {
		return b
	}
	const privilege = 0x0F
	code := a.mac(g.password, g.bmcRandom, consoleSessionID[:], []byte{g.role & privilege, byte(len(g.proofName))}, g.proofName)
	if len(b) != headerSize+refusalSize+len(code) {
		return b
	}
	return append(bytes.Clone(b[:headerSize+refusalSize]), code...)
}

// Read reads the next datagram that is a valid answer.
func (g *verifiedConn) Read(b []byte) (int, error) {
	for {
		n, err := g.Conn.Read(b)
		if err != nil {
			return n, err
		}
		g.mu.Lock()
		n, ok := g.accept(b, n)
		g.mu.Unlock()
		if ok {
			return n, nil
		}
	}
}

// accept reports whether the first n bytes of b are a valid answer, and its length
// after corrections.
func (g *verifiedConn) accept(b []byte, n int) (int, bool) {
	p := b[:n]
	if len(p) < headerSize || [5]byte(p) != [5]byte{6, 0, 0xFF, 7, 6} {
		return 0, false
	}
	size := int(binary.LittleEndian.Uint16(p[14:]))
	if len(p) < headerSize+size {
		return 0, false
	}
	if p[5]&0x3F == payloadIPMI {
		return n, g.acceptMessage(p, size)
	}
	if p[5] != g.sentPayload+1 || len(p) != headerSize+size || size < 2 || [8]byte(p[6:]) != [8]byte{} {
		return 0, false
	}
	body := p[headerSize:]
	if status := body[1]; status != 0 {
		// Some BMCs end the message here (OpenIPMI's simulator does). Pad it, or
		// go-ipmi reports missing bytes instead of the status.
		if size < refusalSize && cap(b) >= headerSize+refusalSize {
			clear(b[headerSize+size : headerSize+refusalSize])
			binary.LittleEndian.PutUint16(b[14:], refusalSize)
			n = headerSize + refusalSize
		}
		return n, true
	}
	if a := algorithms[g.requested[0]]; g.sentPayload == payloadR1 && a.hash != nil && size == 40+a.hash().Size()+1 {
		// Some BMCs declare a byte too many (FreeIPMI, workarounds supermicro20
		// and sun20).
		g.longRAKP2 = true
		size, n = size-1, n-1
		binary.LittleEndian.PutUint16(p[14:], uint16(size))
		body = body[:size]
	}
	return n, g.acceptHandshake(body)
}

// acceptHandshake checks a handshake answer with status 0.
func (g *verifiedConn) acceptHandshake(body []byte) bool {
	a := algorithms[g.requested[0]]
	if a.hash == nil || len(body) < refusalSize || [4]byte(body[4:]) != consoleSessionID {
		return false
	}
	switch g.sentPayload {
	case payloadOpen:
		if len(body) != 36 || g.requested != [3]byte{body[16], body[24], body[32]} {
			return false
		}
		g.bmcSession = [4]byte(body[8:])
		return true
	case payloadR1:
		if len(body) != 40+a.hash().Size() {
			return false
		}
		g.bmcRandom = bytes.Clone(body[8:24])
		return true
	case payloadR3:
		return len(body) == refusalSize+a.icv
	}
	return false
}

// acceptMessage checks AuthCode, padding and sequence number of a session's
// packet.
func (g *verifiedConn) acceptMessage(p []byte, size int) bool {
	const flags = 0xC0 // encrypted and authenticated
	if g.authCode == nil || p[5] != flags|payloadIPMI || [4]byte(p[6:]) != consoleSessionID {
		return false
	}
	icv := len(g.authCode(nil))
	cut := len(p) - icv
	if cut < headerSize+size+2 || !hmac.Equal(g.authCode(p[4:cut]), p[cut:]) {
		return false
	}
	body := p[headerSize : headerSize+size]
	if len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return false
	}
	plain := make([]byte, len(body)-aes.BlockSize)
	cipher.NewCBCDecrypter(g.block, body[:aes.BlockSize]).CryptBlocks(plain, body[aes.BlockSize:])
	const least = 8 // bytes of the shortest answer
	if pad := int(plain[len(plain)-1]); pad >= aes.BlockSize || len(plain)-1-pad < least {
		return false
	}
	number := binary.LittleEndian.Uint32(p[10:])
	if number == 0 || g.seenNumbers[number] {
		return false
	}
	g.seenNumbers[number] = true
	return true
}

// sessionID returns the BMC's session ID in wire order.
func (g *verifiedConn) sessionID() [4]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bmcSession
}

// interrupt aborts the read that is in progress: go-ipmi would hold its lock until
// the timeout of the try.
func (g *verifiedConn) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted = true
	_ = g.SetDeadline(time.Unix(1, 0))
}

// resume permits reads again.
func (g *verifiedConn) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted = false
	_ = g.SetDeadline(time.Time{})
}

// SetReadDeadline does nothing after interrupt.
func (g *verifiedConn) SetReadDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.interrupted {
		return nil
	}
	return g.Conn.SetReadDeadline(t)
}
