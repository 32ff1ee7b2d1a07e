package steps

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
)

const integrityURI = root + "/ComponentIntegrity/RoT"

// registerIntegrity binds the steps about SPDM measurements and the TPM.
func (s *scenario) registerIntegrity(sc *stepRegistry) {
	var before, signed map[int]string // digests by index
	measure := func(nonce byte) (err error) {
		before = signed
		signed, err = s.verifiedMeasurements(strings.Repeat(hex.EncodeToString([]byte{nonce}), 32))
		return err
	}
	sc.Step(`^the client gets signed measurements with a nonce$`, func() error { return measure(0x5a) })
	sc.Step(`^the client gets signed measurements with another nonce$`, func() error { return measure(0xa5) })
	sc.Step(`^they are the measurements of the MeasurementSet, signed for this nonce$`, func() error {
		r, err := s.get(integrityURI)
		if err != nil {
			return err
		}
		all, _ := r.at("SPDM/MeasurementSet/Measurements").([]any)
		shown := map[int]string{}
		for _, x := range all {
			o, _ := x.(map[string]any)
			i, _ := o["MeasurementIndex"].(float64)
			shown[int(i)], _ = o["Measurement"].(string)
		}
		if len(shown) < 3 || !maps.Equal(shown, signed) {
			return fmt.Errorf("signed are %v, shown %v", signed, shown)
		}
		return nil
	})
	sc.Step(`^the measurements are the same as before$`, func() error {
		if len(before) == 0 {
			return errors.New("no measurements were signed before")
		}
		return equal("the measurements", signed, before)
	})
	sc.Step(`^one measurement differs from before$`, func() error {
		differ := 0
		for i := range signed {
			if signed[i] != before[i] {
				differ++
			}
		}
		return equal("the number of measurements that differ", differ, 1)
	})
	sc.Step(`^the TPM is (Enabled|Disabled)$`, func(want string) error {
		tpm, err := s.get(chassisURI + "/TrustedComponents/TPM")
		if err != nil {
			return err
		}
		if err := equal("Status/State of the TPM", tpm.at("Status/State"), want); err != nil {
			return err
		}
		r, err := s.get(systemURI)
		if err != nil {
			return err
		}
		if modules, _ := r.body["TrustedModules"].([]any); len(modules) != 1 {
			return fmt.Errorf("the system has the TrustedModules %v", modules)
		}
		if err := equal("Status/State of the TrustedModule", r.at("TrustedModules/0/Status/State"), want); err != nil {
			return err
		}
		return equal("FirmwareVersion of the TrustedModule", r.at("TrustedModules/0/FirmwareVersion"), tpm.body["FirmwareVersion"])
	})
}

// verifiedMeasurements gets signed measurements, checks the signature and the
// nonce as a verifier does (DSP0274 1.1, §10.11) that knows the certificate of the
// root of trust alone, and returns the digests by index.
func (s *scenario) verifiedMeasurements(nonce string) (map[int]string, error) {
	if err := s.sendOK("POST", integrityURI+"/Actions/ComponentIntegrity.SPDMGetSignedMeasurements", object{"Nonce": nonce}); err != nil {
		return nil, err
	}
	got := s.response
	text, _ := got.body["SignedMeasurements"].(string)
	all, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(all) < 64+37+8 {
		return nil, fmt.Errorf("SignedMeasurements have %d bytes: %w", len(all), err)
	}
	cert, err := s.get(fmt.Sprint(got.at("Certificate/@odata.id")))
	if err != nil {
		return nil, err
	}
	text, _ = cert.body["CertificateString"].(string)
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, fmt.Errorf("the certificate is %s", cert)
	}
	x, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := x.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T", x.PublicKey)
	}
	signed, signature := all[:len(all)-64], all[len(all)-64:]
	sum := sha256.Sum256(signed)
	if !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return nil, fmt.Errorf("the signature does not verify with the certificate")
	}
	if err := equal("the nonce", hex.EncodeToString(signed[4:36]), nonce); err != nil {
		return nil, err
	}
	answered := signed[37:]
	blocks := answered[8:]
	blocks = blocks[:min(len(blocks), int(answered[5])+int(answered[6])<<8)]
	out := map[int]string{}
	for len(blocks) > 7 {
		end := 4 + int(binary.LittleEndian.Uint16(blocks[2:]))
		if end < 7 || end > len(blocks) {
			return nil, fmt.Errorf("a block of %d bytes in %d", end, len(blocks))
		}
		out[int(blocks[0])] = base64.StdEncoding.EncodeToString(blocks[7:end])
		blocks = blocks[end:]
	}
	if len(out) == 0 {
		return nil, errors.New("no measurement is signed")
	}
	return out, nil
}
