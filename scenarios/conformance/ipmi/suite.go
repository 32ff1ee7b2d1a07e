package ipmi

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"hash"
)

// Suite is a cipher suite: three algorithms by number (§13.28).
type Suite struct {
	ID        byte
	Auth      byte // Table 13-17
	Integrity byte // Table 13-18
	Crypt     byte // Table 13-19
}

// The algorithms.
const (
	authNone   = 0x00
	authSHA1   = 0x01
	authMD5    = 0x02
	authSHA256 = 0x03

	integrityNone   = 0x00
	integritySHA1   = 0x01
	integrityHMAC5  = 0x02
	integrityMD5    = 0x03
	integritySHA256 = 0x04

	cryptNone = 0x00
	cryptAES  = 0x01
)

// Suites are the standard's cipher suites, without those that use xRC4 (Table
// 22-20).
var Suites = []Suite{
	{0, authNone, integrityNone, cryptNone},
	{1, authSHA1, integrityNone, cryptNone},
	{2, authSHA1, integritySHA1, cryptNone},
	{3, authSHA1, integritySHA1, cryptAES},
	{6, authMD5, integrityNone, cryptNone},
	{7, authMD5, integrityHMAC5, cryptNone},
	{8, authMD5, integrityHMAC5, cryptAES},
	{11, authMD5, integrityMD5, cryptNone},
	{12, authMD5, integrityMD5, cryptAES},
	{15, authSHA256, integrityNone, cryptNone},
	{16, authSHA256, integritySHA256, cryptNone},
	{17, authSHA256, integritySHA256, cryptAES},
}

// suite returns the suite with a number.
func suite(id byte) (Suite, error) {
	for _, s := range Suites {
		if s.ID == id {
			return s, nil
		}
	}
	return Suite{}, fmt.Errorf("ipmi: cipher suite %d is none of the standard's without xRC4", id)
}

// rakp is an authentication algorithm: its hash, and how many bytes of it RAKP
// 4 contains (§13.28.1–3).
type rakp struct {
	hash func() hash.Hash // nil: none
	icv  int
}

var rakps = map[byte]rakp{
	authNone:   {},
	authSHA1:   {sha1.New, 12},
	authMD5:    {md5.New, 16},
	authSHA256: {sha256.New, 16},
}

// sum returns the HMAC over the parts; nil for the algorithm none.
func (a rakp) sum(key []byte, parts ...[]byte) []byte {
	if a.hash == nil {
		return nil
	}
	m := hmac.New(a.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// constant returns the 20 bytes from which an additional key is derived
// (§13.32).
func constant(n byte) []byte {
	c := make([]byte, 20)
	for i := range c {
		c[i] = n
	}
	return c
}

// integrity computes the integrity code over data with the session's key
// (§13.28.4). nil means none.
type integrity func(data []byte) []byte

// newIntegrity returns the integrity algorithm of a session. The password is
// padded to 20 bytes.
func newIntegrity(algorithm byte, k1, password []byte) integrity {
	keyed := func(h func() hash.Hash, size int) integrity {
		return func(data []byte) []byte {
			m := hmac.New(h, k1)
			m.Write(data)
			return m.Sum(nil)[:size]
		}
	}
	switch algorithm {
	case integritySHA1:
		return keyed(sha1.New, 12)
	case integrityHMAC5:
		return keyed(md5.New, 16)
	case integritySHA256:
		return keyed(sha256.New, 16)
	case integrityMD5:
		return func(data []byte) []byte {
			m := md5.New()
			m.Write(password)
			m.Write(data)
			m.Write(password)
			return m.Sum(nil)
		}
	}
	return nil
}

// padded returns a password or name, padded with zeros or cut to n bytes.
func padded(s string, n int) []byte {
	b := make([]byte, n)
	copy(b, s)
	return b
}
