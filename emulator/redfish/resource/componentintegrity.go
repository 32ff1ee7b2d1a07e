package resource

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// measurementParts are the parts of the state that measurements depend on.
var measurementParts = partIdentity | partFirmware | partSecureBoot

func integrityRows() []Row {
	const base = "/redfish/v1/ComponentIntegrity"
	certificates := "/redfish/v1/Chassis/{chassis}/TrustedComponents/{trusted}/Certificates"
	return []Row{
		{URI: base, Schema: "ComponentIntegrityCollection", collectionName: "Component Integrity", memberVariable: "integrity"},
		{URI: base + "/{integrity}", Schema: "ComponentIntegrity.v1_3_2", DependsOn: measurementParts, Read: componentIntegrity, Actions: integrityActions},
		{URI: certificates, Schema: "CertificateCollection", When: isRoot, collectionName: "Certificates", memberVariable: "rootcert"},
		{URI: certificates + "/{rootcert}", Schema: "Certificate.v1_11_0", When: isRoot, DependsOn: partIdentity, Read: rootCertificate},
	}
}

// rootID is the ID of the root of trust, the only component that measures.
const rootID = "RoT"

func integrityIDs(View) []string { return []string{rootID} }

func rootCertificates(View) []string { return []string{"1"} }

// isRoot reports whether a trusted component is the root of trust.
func isRoot(v View) bool { return v.IDs["trusted"] == rootID }

func (v View) rootCertificate() string {
	return v.chassis("TrustedComponents", rootID, "Certificates", "1")
}

func rootCertificate(v View) Object {
	der, err := v.Machine.Identity.AttestationCertificate(v.Machine.Profile)
	if err != nil {
		return certificate(bmc.Certificate{ID: "1"}, "Device")
	}
	return certificate(bmc.Certificate{ID: "1", Chain: [][]byte{der}}, "Device")
}

func rootOfTrust(v View) Object {
	return Object{
		"Name": "Root of Trust", "TrustedComponentType": "Integrated", "Manufacturer": v.Machine.Profile.Manufacturer, "Model": v.Machine.Profile.Model,
		"SerialNumber": v.Machine.Identity.SerialOf("rot", 0), "UUID": v.Machine.Identity.UUIDOf("rot", 0), "Status": status("Enabled"),
		"Links": Object{
			"IntegratedInto": Ref(v.manager()), "ComponentsProtected": refs(v.manager(), v.system()), "ComponentsProtected@odata.count": 2,
			"ComponentIntegrity": refs("/redfish/v1/ComponentIntegrity/" + rootID), "ComponentIntegrity@odata.count": 1,
		},
	}
}

// measurementKinds maps measurement kinds to MeasurementType (DSP2046).
var measurementKinds = map[machine.MeasurementKind]string{
	machine.MeasuredROM: "ImmutableROM", machine.MeasuredFirmware: "MutableFirmware",
	machine.MeasuredHardware: "HardwareConfiguration", machine.MeasuredSettings: "FirmwareConfiguration",
}

func componentIntegrity(v View) Object {
	all := Map(v.Machine.Measurements(), func(m machine.Measurement) Object {
		return Object{
			"MeasurementIndex": int(m.Index), "MeasurementType": measurementKinds[m.Kind], "Measurement": base64.StdEncoding.EncodeToString(m.Digest[:]),
			"MeasurementHashAlgorithm": "TPM_ALG_SHA_256",
		}
	})
	return Object{
		"Name": "Root of Trust Integrity", "ComponentIntegrityType": "SPDM", "ComponentIntegrityTypeVersion": "1.1", "ComponentIntegrityEnabled": true,
		"TargetComponentURI": v.chassis("TrustedComponents", rootID), "Status": status("Enabled"),
		"SPDM": Object{
			"Requester": Ref(v.manager()),
			"IdentityAuthentication": Object{
				"ResponderAuthentication": Object{"VerificationStatus": "Success", "ComponentCertificate": Ref(v.rootCertificate())},
			},
			"MeasurementSet": Object{"MeasurementSpecification": "DMTF", "Measurements": all},
		},
		"Links": Object{"ComponentsProtected": refs(v.manager(), v.system()), "ComponentsProtected@odata.count": 2},
	}
}

var integrityActions = []Action{{
	Name: "ComponentIntegrity.SPDMGetSignedMeasurements",
	Inputs: []Input{
		{Name: "Nonce", Kind: Text, form: regexp.MustCompile(`^[0-9a-fA-F]{64}$`).MatchString},
		{Name: "MeasurementIndices", Kind: Array, Min: 1, Max: 255, Of: []Input{{Kind: Integer, Min: 0, Max: 255}}},
		{Name: "SlotId", Kind: Integer, Min: 0, Max: 0},
	},
	Apply: func(_ context.Context, c Call) (Result, error) {
		var nonce, answer [32]byte
		if _, err := rand.Read(answer[:]); err != nil {
			return Result{}, err
		}
		if text := Value(c.Values, "Nonce", ""); text != "" {
			if _, err := hex.Decode(nonce[:], []byte(text)); err != nil {
				return Result{}, err // not reached: the form was checked
			}
		} else if _, err := rand.Read(nonce[:]); err != nil {
			return Result{}, err
		}
		var indices []byte
		all, _ := c.Values["MeasurementIndices"].([]any)
		for _, x := range all {
			n, _ := x.(int64)
			indices = append(indices, byte(n))
		}
		if len(indices) == 1 && indices[0] == 255 { // all of them
			indices = nil
		}
		signed, err := c.View.Machine.SignedMeasurements(nonce, answer, indices, 0)
		if errors.Is(err, machine.ErrUnknown) {
			err = Reject(http.StatusBadRequest, message.ActionParameterValueError.With("MeasurementIndices", "ComponentIntegrity.SPDMGetSignedMeasurements").About("#/MeasurementIndices"))
		}
		if err != nil {
			return Result{}, err
		}
		return Result{Body: Object{
			"@odata.type":        "#ComponentIntegrity.v1_3_2.SPDMGetSignedMeasurementsResponse",
			"SignedMeasurements": base64.StdEncoding.EncodeToString(signed), "Version": "1.1",
			"HashingAlgorithm": "TPM_ALG_SHA_256", "SigningAlgorithm": "TPM_ALG_ECDSA_ECC_NIST_P256", "Certificate": Ref(c.View.rootCertificate()),
		}}, nil
	},
}}
