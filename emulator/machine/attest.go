package machine

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// The root of trust of a machine is a part beside its BMC that has a key and
// measures what runs (DSP0274, "SPDM"). The key derives from the machine's
// identity, so that a rack that is created again attests the same.

// MeasurementKind is what was measured; the values are DSP0274's
// DMTFSpecMeasurementValueType.
type MeasurementKind byte

// The kinds.
const (
	MeasuredROM      MeasurementKind = 0x00
	MeasuredFirmware MeasurementKind = 0x01
	MeasuredHardware MeasurementKind = 0x02
	MeasuredSettings MeasurementKind = 0x03
)

// Measurement is a digest of firmware, hardware or settings.
type Measurement struct {
	Index  byte // from 1 on
	Kind   MeasurementKind
	Name   string // for display
	Digest [sha256.Size]byte
}

// Measurements returns the root of trust's measurements. They depend on nothing
// but the measured parts.
func (v *View) Measurements() []Measurement {
	var out []Measurement
	add := func(kind MeasurementKind, name string, of ...string) {
		m := Measurement{Index: byte(len(out) + 1), Kind: kind, Name: name}
		m.Digest = sha256.Sum256([]byte(name + "\x00" + strings.Join(of, "\x00")))
		out = append(out, m)
	}
	add(MeasuredROM, "Root of trust", v.Profile.Manufacturer, v.Profile.Model)
	add(MeasuredFirmware, "BMC", v.BMCVersion())
	add(MeasuredFirmware, "BIOS", v.BIOSVersion())
	var versions []string
	for _, c := range v.Profile.Cards {
		if c.Component != "" {
			versions = append(versions, c.Component, v.Firmware.Version(c.Component))
		}
	}
	add(MeasuredFirmware, "Devices", versions...)
	add(MeasuredHardware, "Hardware", v.Profile.Processors.Model, fmt.Sprint(v.Profile.Processors.Sockets), fmt.Sprint(v.Profile.MemoryMiB), v.Identity.Serial)
	secure := []string{fmt.Sprint(v.SecureBoot.Current)}
	for _, database := range KeyDatabases[:4] {
		for _, k := range v.Keys(database) {
			secure = append(secure, database, string(k.DER), k.Text)
		}
	}
	add(MeasuredSettings, "Secure boot", secure...)
	return out
}

// attestationKey returns the private key of the root of trust.
func (id *Identity) attestationKey() *ecdsa.PrivateKey {
	curve := elliptic.P256()
	// The remainder by the order minus one, plus one, is never 0.
	d := new(big.Int).SetBytes(deriveBytes(id.Root, "attest", 0))
	d.Mod(d, new(big.Int).Sub(curve.Params().N, big.NewInt(1))).Add(d, big.NewInt(1))
	k, err := ecdsa.ParseRawPrivateKey(curve, d.FillBytes(make([]byte, 32)))
	if err != nil {
		panic(err) // the scalar is within the order
	}
	return k
}

// AttestationCertificate returns the self-signed certificate of the root of
// trust (DER).
func (id *Identity) AttestationCertificate(p *Profile) ([]byte, error) {
	k := id.attestationKey()
	t := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(deriveBytes(id.Root, "attest serial", 0)[:8]),
		Subject:      pkix.Name{Organization: []string{p.Manufacturer}, CommonName: p.Model + " Root of Trust", SerialNumber: id.SerialOf("rot", 0)},
		// Validity of certificates of devices without a clock (IEEE 802.1AR,
		// §8.7).
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	// Without a random source the signature is deterministic (RFC 6979).
	der, err := x509.CreateCertificate(nil, t, t, &k.PublicKey, k)
	if err != nil {
		return nil, fmt.Errorf("certificate of the root of trust: %w", err)
	}
	return der, nil
}

const (
	spdmVersion     = 0x11 // 1.1
	getMeasurements = 0xe0
	measurements    = 0x60
	signedAll       = 0xff
)

// SignedMeasurements returns signed measurements: an SPDM 1.1 request and
// response, with a signature over both (DSP0274 1.1, §10.11). Nil indices ask
// for all measurements. Nonces are the requester's and the responder's.
func (v *View) SignedMeasurements(nonce, answerNonce [32]byte, indices []byte, slot byte) ([]byte, error) {
	var blocks []byte
	count := 0
	for _, m := range v.Measurements() {
		wanted := indices == nil
		for _, i := range indices {
			wanted = wanted || i == m.Index
		}
		if !wanted {
			continue
		}
		count++
		value := append([]byte{byte(m.Kind), 0, 0}, m.Digest[:]...)
		binary.LittleEndian.PutUint16(value[1:], uint16(len(m.Digest)))
		block := []byte{m.Index, 1, 0, 0} // 1: DMTF's measurement format
		binary.LittleEndian.PutUint16(block[2:], uint16(len(value)))
		blocks = append(append(blocks, block...), value...)
	}
	if count == 0 || indices != nil && count != len(indices) {
		return nil, fmt.Errorf("measurements %v: %w", indices, ErrUnknown)
	}
	operation := byte(signedAll)
	if len(indices) == 1 {
		operation = indices[0]
	}
	l1 := append([]byte{spdmVersion, getMeasurements, 1, operation}, nonce[:]...)
	l1 = append(l1, slot)
	size := len(blocks)
	l1 = append(l1, spdmVersion, measurements, 0, slot, byte(count), byte(size), byte(size>>8), byte(size>>16))
	l1 = append(append(append(l1, blocks...), answerNonce[:]...), 0, 0) // no opaque data
	sum := sha256.Sum256(l1)
	r, s, err := signRaw(v.Identity.attestationKey(), sum[:])
	if err != nil {
		return nil, fmt.Errorf("attest: %w", err)
	}
	return append(append(l1, r...), s...), nil
}

// signRaw returns a signature in SPDM's form: both numbers in the length of the
// order.
func signRaw(k *ecdsa.PrivateKey, digest []byte) (r, s []byte, err error) {
	der, err := k.Sign(nil, digest, crypto.SHA256) // RFC 6979
	if err != nil {
		return nil, nil, err
	}
	var both struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &both); err != nil {
		return nil, nil, err
	}
	return both.R.FillBytes(make([]byte, 32)), both.S.FillBytes(make([]byte, 32)), nil
}
