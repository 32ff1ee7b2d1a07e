package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

const (
	keySize = 20 // of a user's key, and of K_G (§13.31)
	// constSize is that of the constants that keys are made of: 20 bytes with
	// every hash, as §13.32 writes them out and clients have them.
	constSize = 20
	aesKey    = 16
	block     = aes.BlockSize
)

// rakp is what an authentication algorithm is made of.
type rakp struct {
	hash func() hash.Hash // nil: codes are absent
	icv  int              // size of the code of RAKP 4
}

var algorithms = map[wire.Authentication]rakp{
	wire.RAKPNone:       {},
	wire.RAKPHMACSHA1:   {sha1.New, 12},
	wire.RAKPHMACMD5:    {md5.New, 16},
	wire.RAKPHMACSHA256: {sha256.New, 16},
}

// codeSizes are those of packets.
var codeSizes = map[wire.Integrity]int{
	wire.IntegrityNone:  0,
	wire.HMACSHA1x96:    12,
	wire.HMACMD5x128:    16,
	wire.MD5x128:        16,
	wire.HMACSHA256x128: 16,
}

// keyed is an HMAC with a user's key, which is padded with zeroes. One that is
// longer than it can be is cut.
func (a rakp) keyed(password string) hash.Hash {
	var key [keySize]byte
	copy(key[:], password)
	return hmac.New(a.hash, key[:])
}

// sum is an HMAC of the parts.
func sum(h hash.Hash, out []byte, parts ...[]byte) []byte {
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(out)
}

// keys are those of a session, with the states of their algorithms, which are
// made once. The zero value neither signs nor encrypts.
type keys struct {
	mac    hash.Hash // nil: packets have no codes
	around []byte    // written before and after what mac signs; HMACs need none
	size   int       // of the code
	plain  bool      // IPMI 1.5: the code is around, and nothing is signed
	block  cipher.Block
	salt   [8]byte // makes initialization vectors of this session
	code   [sha256.Size]byte
	iv     [block]byte
}

// derive makes the keys of a suite out of the session's integrity key (§13.31,
// §13.32) and the user's password.
func (k *keys) derive(s wire.Suite, sik []byte, password string, salt []byte) error {
	a := algorithms[s.Authentication]
	copy(k.salt[:], salt)
	k.size = codeSizes[s.Integrity]
	if s.Integrity == wire.IntegrityNone {
		return nil // and suites without integrity do not encrypt
	}
	var constant [constSize]byte
	more := hmac.New(a.hash, sik)
	material := func(n byte) []byte {
		for i := range constant {
			constant[i] = n
		}
		more.Reset()
		return sum(more, nil, constant[:])
	}
	if s.Integrity == wire.MD5x128 {
		k.mac, k.around = md5.New(), make([]byte, keySize) // as FreeIPMI 1.6 has it (packet of its session)
		copy(k.around, password)
	} else {
		k.mac = hmac.New(a.hash, material(1))
	}
	if s.Confidentiality == wire.ConfidentialityNone {
		return nil
	}
	var err error
	k.block, err = aes.NewCipher(material(2)[:aesKey])
	return err
}

// sign is the code of what a packet holds. It is good until the next call.
func (k *keys) sign(data []byte) []byte {
	k.mac.Reset()
	if k.around == nil {
		k.mac.Write(data)
	} else {
		k.mac.Write(k.around)
		k.mac.Write(data)
		k.mac.Write(k.around)
	}
	return k.mac.Sum(k.code[:0])[:k.size]
}

// signed says whether a packet's code is right, in a time that does not tell
// where it is wrong.
func (k *keys) signed(data, code []byte) bool {
	return subtle.ConstantTimeCompare(k.sign(data), code) == 1
}

// seal appends the AES-CBC-128 form of a body (§13.29): a vector, and body, pad
// and length of the pad in blocks. The vector is the number of the packet,
// which comes once, encrypted with the session's key (NIST SP 800-38A,
// appendix C): nobody else can tell it before.
func (k *keys) seal(out []byte, number uint64, body []byte) []byte {
	copy(k.iv[:8], k.salt[:])
	binary.LittleEndian.PutUint64(k.iv[8:], number)
	k.block.Encrypt(k.iv[:], k.iv[:])
	from := len(out)
	out = append(append(out, k.iv[:]...), body...)
	pad := sealedSize(len(body)) - block - len(body) - 1
	for i := range pad {
		out = append(out, byte(i+1))
	}
	out = append(out, byte(pad))
	last := out[from : from+block]
	for at := from + block; at < len(out); at += block {
		b := out[at : at+block]
		subtle.XORBytes(b, b, last)
		k.block.Encrypt(b, b)
		last = b
	}
	return out
}

// sealedSize is the size of a body's encrypted form.
func sealedSize(body int) int { return block + (body+1+block-1)/block*block }

// unseal decrypts a body where it is. False says that it is none: not of whole
// blocks, or with a pad that is not 01h, 02h and so on.
func (k *keys) unseal(b []byte) ([]byte, bool) {
	if len(b) < 2*block || len(b)%block != 0 {
		return nil, false
	}
	for at := len(b) - block; at > 0; at -= block {
		c := b[at : at+block]
		k.block.Decrypt(c, c)
		subtle.XORBytes(c, c, b[at-block:at])
	}
	b = b[block:]
	pad := int(b[len(b)-1])
	if pad >= block {
		return nil, false
	}
	b = b[:len(b)-1]
	for i, c := range b[len(b)-pad:] {
		if c != byte(i+1) {
			return nil, false
		}
	}
	return b[: len(b)-pad : len(b)-pad], true
}
