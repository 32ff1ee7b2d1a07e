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
	keySize = 20 // bytes of a user's key and of K_G (§13.31)
	// constSize is the size of the constants that the keys are derived from: 20
	// bytes with every hash, as §13.32 spells them out and clients use them.
	constSize = 20
	aesKey    = 16
	block     = aes.BlockSize
)

// rakp describes an authentication algorithm.
type rakp struct {
	hash func() hash.Hash // nil: no key exchange authentication codes
	icv  int              // size of RAKP 4's integrity check value, in bytes
}

var algorithms = map[wire.Authentication]rakp{
	wire.RAKPNone:       {},
	wire.RAKPHMACSHA1:   {sha1.New, 12},
	wire.RAKPHMACMD5:    {md5.New, 16},
	wire.RAKPHMACSHA256: {sha256.New, 16},
}

// codeSizes maps integrity algorithms to the size of a packet's AuthCode, in
// bytes.
var codeSizes = map[wire.Integrity]int{
	wire.IntegrityNone:  0,
	wire.HMACSHA1x96:    12,
	wire.HMACMD5x128:    16,
	wire.MD5x128:        16,
	wire.HMACSHA256x128: 16,
}

// newHMAC returns an HMAC with a user's key, zero-padded or cut to the key
// size.
func (a rakp) newHMAC(password string) hash.Hash {
	var key [keySize]byte
	copy(key[:], password)
	return hmac.New(a.hash, key[:])
}

// sum returns the HMAC of the concatenated parts.
func sum(h hash.Hash, out []byte, parts ...[]byte) []byte {
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(out)
}

// keys holds the keys of a session and the states of its algorithms, which are
// made once. The zero value neither authenticates nor encrypts.
type keys struct {
	mac         hash.Hash // nil: packets have no AuthCode
	affixed     []byte    // written before and after the data; HMACs need none
	size        int       // bytes of the AuthCode
	v15Password bool      // IPMI 1.5 straight password: the AuthCode is affixed itself
	block       cipher.Block
	salt        [8]byte // makes the initialization vectors of this session unique
	code        [sha256.Size]byte
	iv          [block]byte
}

// derive derives the keys of a cipher suite from the session integrity key
// (§13.31, §13.32) and the user's password.
func (k *keys) derive(s wire.Suite, sik []byte, password string, salt []byte) error {
	a := algorithms[s.Authentication]
	copy(k.salt[:], salt)
	k.size = codeSizes[s.Integrity]
	if s.Integrity == wire.IntegrityNone {
		return nil // a suite without integrity does not encrypt either
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
		k.mac, k.affixed = md5.New(), make([]byte, keySize) // as FreeIPMI 1.6 computes it (checked against a packet of its session)
		copy(k.affixed, password)
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

// authCode returns the AuthCode of data. It is valid until the next call.
func (k *keys) authCode(data []byte) []byte {
	k.mac.Reset()
	if k.affixed == nil {
		k.mac.Write(data)
	} else {
		k.mac.Write(k.affixed)
		k.mac.Write(data)
		k.mac.Write(k.affixed)
	}
	return k.mac.Sum(k.code[:0])[:k.size]
}

// verifyAuthCode compares a packet's AuthCode in constant time.
func (k *keys) verifyAuthCode(data, code []byte) bool {
	return subtle.ConstantTimeCompare(k.authCode(data), code) == 1
}

// encrypt appends the AES-CBC-128 form of a body (§13.29): initialization
// vector, body, pad and pad length in blocks. The vector is the packet's
// number, which is never reused, encrypted with the session's key (NIST SP
// 800-38A, appendix C), so that it is unpredictable.
func (k *keys) encrypt(out []byte, number uint64, body []byte) []byte {
	copy(k.iv[:8], k.salt[:])
	binary.LittleEndian.PutUint64(k.iv[8:], number)
	k.block.Encrypt(k.iv[:], k.iv[:])
	from := len(out)
	out = append(append(out, k.iv[:]...), body...)
	pad := encryptedSize(len(body)) - block - len(body) - 1
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

// encryptedSize returns the size of a body's encrypted form.
func encryptedSize(body int) int { return block + (body+1+block-1)/block*block }

// decrypt decrypts a body in place. It is false for a body that is not a
// multiple of the block size, or whose pad is not 01h, 02h and so on.
func (k *keys) decrypt(b []byte) ([]byte, bool) {
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
