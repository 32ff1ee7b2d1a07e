package lab

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// mold makes certificates like a first one that x509.CreateCertificate has made,
// and to the byte as that would make them, in less than half of the time: it
// does not check what the lab's own authority has signed. They have keys of one
// kind and nothing wrong with them.
type mold struct {
	before []byte // the subject, behind the serial number
	org    []byte // of the subject
	key    []byte // the algorithm of the subject's key
	// extensions are those but the one with the names, which is nil.
	extensions [][]byte
	algorithm  []byte // of the signature
}

// DER (ITU-T X.690) of what a mold makes anew.
const (
	derBits       = 0x03
	derOctets     = 0x04
	derPrintable  = 0x13
	derSequence   = 0x30
	derSet        = 0x31
	derDNS        = 0x82 // RFC 5280, §4.2.1.6
	derIP         = 0x87
	derExtensions = 0xa3 // RFC 5280, §4.1
)

var (
	oidCommonName = []byte("\x06\x03\x55\x04\x03")
	oidSubjectAlt = []byte("\x06\x03\x55\x1d\x11")
)

// der is a value of a tag.
func der(tag byte, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	n := len(body)
	switch {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, body...)
	case n < 0x100:
		return append([]byte{tag, 0x81, byte(n)}, body...)
	}
	return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, body...) // none is longer
}

// newMold makes a mold of a certificate.
func newMold(of *x509.Certificate) (*mold, error) {
	// What is signed of a certificate (RFC 5280, §4.1).
	var t struct {
		Version, Serial, Algorithm, Issuer, Validity asn1.RawValue
		Subject, Key                                 []asn1.RawValue
		Extensions                                   []asn1.RawValue `asn1:"explicit,tag:3"`
	}
	if _, err := asn1.Unmarshal(of.RawTBSCertificate, &t); err != nil {
		return nil, fmt.Errorf("lab: certificate: %w", err)
	}
	if len(t.Subject) != 2 || len(t.Key) != 2 {
		return nil, errors.New("lab: certificate: it is none of ours")
	}
	m := &mold{
		before: bytes.Join([][]byte{t.Algorithm.FullBytes, t.Issuer.FullBytes, t.Validity.FullBytes}, nil),
		org:    t.Subject[0].FullBytes, key: t.Key[0].FullBytes, algorithm: t.Algorithm.FullBytes,
	}
	for _, x := range t.Extensions {
		if bytes.HasPrefix(x.Bytes, oidSubjectAlt) {
			x.FullBytes = nil
		}
		m.extensions = append(m.extensions, x.FullBytes)
	}
	return m, nil
}

var versionThree = []byte{0xa0, 3, 2, 1, 2}

// keyBits is a public key as certificates have it (RFC 5480, §2.2; RFC 8017,
// §A.1.1).
func keyBits(key crypto.PublicKey) ([]byte, error) {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return k.Bytes()
	case *rsa.PublicKey:
		return x509.MarshalPKCS1PublicKey(k), nil
	}
	return nil, fmt.Errorf("lab: certificate: a key of %T is none of ours", key)
}

// cast makes the certificate of a leaf.
func (m *mold) cast(l leaf, serial *big.Int, key crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	number, err := asn1.Marshal(serial)
	if err != nil {
		return nil, err
	}
	bits, err := keyBits(key)
	if err != nil {
		return nil, err
	}
	names := der(derSequence, der(derDNS, []byte(l.host)), der(derIP, l.addr.AsSlice()))
	var extensions []byte
	for _, x := range m.extensions {
		if x == nil {
			x = der(derSequence, oidSubjectAlt, der(derOctets, names))
		}
		extensions = append(extensions, x...)
	}
	signed := der(derSequence, versionThree, number, m.before,
		der(derSequence, m.org, der(derSet, der(derSequence, oidCommonName, der(derPrintable, []byte(l.addr.String()))))),
		der(derSequence, m.key, der(derBits, []byte{0}, bits)),
		der(derExtensions, der(derSequence, extensions)),
	)
	digest := sha256.Sum256(signed)
	signature, err := signer.Sign(nil, digest[:], crypto.SHA256) // the same each time (RFC 6979)
	if err != nil {
		return nil, err
	}
	return der(derSequence, signed, m.algorithm, der(derBits, []byte{0}, signature)), nil
}
