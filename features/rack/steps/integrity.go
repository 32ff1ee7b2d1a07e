package steps

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"

	"github.com/cucumber/godog"
)

const integrityURI = root + "/ComponentIntegrity/RoT"

func (s *scenario) registerIntegrity(sc *godog.ScenarioContext) {
	var before, signed map[int]string // digests by index
	measure := func(nonce byte) (err error) {
		before = signed
		signed, err = s.verified(strings.Repeat(hex.EncodeToString([]byte{nonce}), 32))
		return err
	}
	sc.Step(`^a verifier has the server's measurements signed$`, func() error { return measure(0x5a) })
	sc.Step(`^a verifier has the server's measurements signed again$`, func() error { return measure(0xa5) })
	sc.Step(`^they are what the server shows, signed by its root of trust for this verifier$`, func() error {
		a, err := s.get(integrityURI)
		if err != nil {
			return err
		}
		all, _ := a.at("SPDM/MeasurementSet/Measurements").([]any)
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
	sc.Step(`^they are what they were$`, func() error { return equal("the measurements", signed, before) })
	sc.Step(`^one of them is another$`, func() error {
		differ := 0
		for i := range signed {
			if signed[i] != before[i] {
				differ++
			}
		}
		return equal("the number of those that differ", differ, 1)
	})
	sc.Step(`^a verifier asks for a measurement that there is not$`, func() error {
		return s.send("POST", integrityURI+"/Actions/ComponentIntegrity.SPDMGetSignedMeasurements", object{"MeasurementIndices": []int{77}})
	})
	sc.Step(`^the operator turns the TPM off$`, func() error {
		return s.sendOK("PATCH", biosURI+"/Settings", object{"Attributes": object{"TpmSecurity": "Disabled"}})
	})
	sc.Step(`^the server's TPM is (on|off)$`, func(how string) error {
		want := map[string]string{"on": "Enabled", "off": "Disabled"}[how]
		a, err := s.get(root + "/Chassis/1/TrustedComponents/TPM")
		if err != nil {
			return err
		}
		if err := equal("the TPM", a.at("Status/State"), want); err != nil {
			return err
		}
		version := a.body["FirmwareVersion"]
		if a, err = s.get(systemURI); err != nil {
			return err
		}
		modules, _ := a.body["TrustedModules"].([]any)
		if len(modules) != 1 {
			return fmt.Errorf("the system has the modules %v", modules)
		}
		o, _ := modules[0].(map[string]any)
		module := response{body: o}
		return equal("the system's TPM", []any{module.at("Status/State"), module.at("FirmwareVersion")}, []any{want, version})
	})
}

// verified has measurements signed and checks them as a verifier does (DSP0274
// 1.1, §10.11) who knows nothing but the certificate of the root of trust. It
// returns the digests by index.
func (s *scenario) verified(nonce string) (map[int]string, error) {
	if err := s.sendOK("POST", integrityURI+"/Actions/ComponentIntegrity.SPDMGetSignedMeasurements", object{"Nonce": nonce}); err != nil {
		return nil, err
	}
	got := s.response
	text, _ := got.body["SignedMeasurements"].(string)
	all, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(all) < 64+37+8 {
		return nil, fmt.Errorf("%d bytes are signed: %w", len(all), err)
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
		return nil, fmt.Errorf("the signature is not that of the certificate")
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
	return out, nil
}
