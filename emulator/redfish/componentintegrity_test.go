package redfish

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine"
)

const (
	integrity = "/redfish/v1/ComponentIntegrity/RoT"
	attest    = integrity + "/Actions/ComponentIntegrity.SPDMGetSignedMeasurements"
)

// verified checks signed measurements as a verifier does (DSP0274 1.1,
// §10.11) that has only the certificate, and returns the digests by index.
func verified(t *testing.T, s *Service, body, nonce string) map[int]string {
	t.Helper()
	w := call(t, s, "admin", "POST", attest, body)
	var got map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &got))
	if w.Code != 200 {
		t.Fatalf("%s", shape("POST", attest, body, w))
	}
	cert, _ := get(t, s, pluck(t, got, "Certificate/@odata.id").(string))
	block, _ := pem.Decode([]byte(cert["CertificateString"].(string)))
	x, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	must(t, x.CheckSignature(x.SignatureAlgorithm, x.RawTBSCertificate, x.Signature))
	raw, err := base64.StdEncoding.DecodeString(got["SignedMeasurements"].(string))
	must(t, err)
	signed, signature := raw[:len(raw)-64], raw[len(raw)-64:]
	sum := sha256.Sum256(signed)
	if !ecdsa.Verify(x.PublicKey.(*ecdsa.PublicKey), sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Fatal("the signature is not that of the certificate")
	}
	if nonce != "" && hex.EncodeToString(signed[4:36]) != nonce {
		t.Errorf("signed for the nonce %x, want %s", signed[4:36], nonce)
	}
	answer := signed[37:]
	if answer[0] != 0x11 || answer[1] != 0x60 {
		t.Fatalf("the measurements begin with % x", answer[:2])
	}
	blocks := answer[8 : 8+int(answer[5])+int(answer[6])<<8]
	out := map[int]string{}
	for len(blocks) > 0 {
		size := int(binary.LittleEndian.Uint16(blocks[2:]))
		out[int(blocks[0])] = base64.StdEncoding.EncodeToString(blocks[7 : 4+size])
		blocks = blocks[4+size:]
	}
	if len(out) != int(answer[4]) || len(answer) != 8+int(answer[5])+int(answer[6])<<8+32+2 {
		t.Errorf("%d blocks of %d, %d bytes", len(out), answer[4], len(answer))
	}
	return out
}

func TestSignedMeasurements(t *testing.T) {
	h, s := running(t)
	nonce := strings.Repeat("5a", 32)
	all := verified(t, s, `{"Nonce":"`+nonce+`"}`, nonce)
	shown, _ := get(t, s, integrity)
	for _, x := range pluck(t, shown, "SPDM/MeasurementSet/Measurements").([]any) {
		i := int(pluck(t, x, "MeasurementIndex").(float64))
		if all[i] != pluck(t, x, "Measurement") {
			t.Errorf("measurement %d is signed as %s, and shown as %v", i, all[i], pluck(t, x, "Measurement"))
		}
	}
	if some := verified(t, s, `{"MeasurementIndices":[2,6]}`, ""); len(some) != 2 || some[6] != all[6] {
		t.Errorf("asked for two: %v", some)
	}
	if again := verified(t, s, ``, ""); len(again) != len(all) || again[1] != all[1] {
		t.Errorf("asked again: %v, was %v", again, all)
	}
	// Only a change of the measured firmware changes the signed measurements.
	must(t, h.Apply(t.Context(), machine.ResetKeys{Databases: []string{"db"}, Delete: true}))
	changed := verified(t, s, ``, "")
	for i := range all {
		if (changed[i] != all[i]) != (i == 6) {
			t.Errorf("with other keys measurement %d is %s, was %s", i, changed[i], all[i])
		}
	}
	for body, key := range map[string]string{
		`{"Nonce":"12"}`: "ActionParameterValueFormatError", `{"MeasurementIndices":[77]}`: "ActionParameterValueError",
		`{"SlotId":1}`: "ActionParameterValueOutOfRange",
	} {
		w := call(t, s, "admin", "POST", attest, body)
		if keys, _ := errorOf(t, w); w.Code != 400 || keys[0] != key {
			t.Errorf("%s; want %s", shape("POST", attest, body, w), key)
		}
	}
}

func TestAttestationCertificatesDiffer(t *testing.T) {
	p := newHost(t).Machine().Profile
	a, b := machine.NewIdentity(1, 0, "a", p), machine.NewIdentity(1, 1, "b", p)
	one, err := a.AttestationCertificate(p)
	must(t, err)
	again, err := a.AttestationCertificate(p)
	must(t, err)
	other, err := b.AttestationCertificate(p)
	must(t, err)
	if string(one) != string(again) || string(one) == string(other) {
		t.Error("a root of trust is not itself, or not alone")
	}
}
