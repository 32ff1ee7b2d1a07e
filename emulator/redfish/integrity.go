package redfish

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

// measured is what measurements follow from.
var measured = PartIdentity | PartFirmware | PartSecureBoot

func integrityRows() []resource {
	const base = "/redfish/v1/ComponentIntegrity"
	certificates := "/redfish/v1/Chassis/{chassis}/TrustedComponents/{trusted}/Certificates"
	return []resource{
		{uri: base, schema: "ComponentIntegrityCollection", name: "Component Integrity", of: "integrity"},
		{uri: base + "/{integrity}", schema: "ComponentIntegrity.v1_3_2", shows: measured, read: componentIntegrity, actions: integrityActions},
		{uri: certificates, schema: "CertificateCollection", when: isRoot, name: "Certificates", of: "rootcert"},
		{uri: certificates + "/{rootcert}", schema: "Certificate.v1_11_0", when: isRoot, shows: PartIdentity, read: rootCertificate},
	}
}

// rootID is the root of trust, the one component that measures.
const rootID = "RoT"

func integrityIDs(view) []string { return []string{rootID} }

func rootCertificates(view) []string { return []string{"1"} }

// isRoot says whether a trusted component is the root of trust.
func isRoot(v view) bool { return v.ids["trusted"] == rootID }

func (v view) rootCertificate() string {
	return v.chassis("TrustedComponents", rootID, "Certificates", "1")
}

func rootCertificate(v view) object {
	der, err := v.m.Identity.AttestationCertificate(v.m.Profile)
	if err != nil {
		return certificate(bmc.Certificate{ID: "1"}, "Device")
	}
	return certificate(bmc.Certificate{ID: "1", Chain: [][]byte{der}}, "Device")
}

func rootOfTrust(v view) object {
	return object{
		"Name": "Root of Trust", "TrustedComponentType": "Integrated", "Manufacturer": v.m.Profile.Manufacturer, "Model": v.m.Profile.Model,
		"SerialNumber": v.m.Identity.SerialOf("rot", 0), "UUID": v.m.Identity.UUIDOf("rot", 0), "Status": status("Enabled"),
		"Links": object{
			"IntegratedInto": ref(v.manager()), "ComponentsProtected": refs(v.manager(), v.system()), "ComponentsProtected@odata.count": 2,
			"ComponentIntegrity": refs("/redfish/v1/ComponentIntegrity/" + rootID), "ComponentIntegrity@odata.count": 1,
		},
	}
}

// measurementKinds are the kinds as DSP2046 spells them.
var measurementKinds = map[machine.MeasurementKind]string{
	machine.MeasuredROM: "ImmutableROM", machine.MeasuredFirmware: "MutableFirmware",
	machine.MeasuredHardware: "HardwareConfiguration", machine.MeasuredSettings: "FirmwareConfiguration",
}

func componentIntegrity(v view) object {
	all := list(v.m.Measurements(), func(m machine.Measurement) object {
		return object{
			"MeasurementIndex": int(m.Index), "MeasurementType": measurementKinds[m.Kind], "Measurement": base64.StdEncoding.EncodeToString(m.Digest[:]),
			"MeasurementHashAlgorithm": "TPM_ALG_SHA_256",
		}
	})
	return object{
		"Name": "Root of Trust Integrity", "ComponentIntegrityType": "SPDM", "ComponentIntegrityTypeVersion": "1.1", "ComponentIntegrityEnabled": true,
		"TargetComponentURI": v.chassis("TrustedComponents", rootID), "Status": status("Enabled"),
		"SPDM": object{
			"Requester": ref(v.manager()),
			"IdentityAuthentication": object{
				"ResponderAuthentication": object{"VerificationStatus": "Success", "ComponentCertificate": ref(v.rootCertificate())},
			},
			"MeasurementSet": object{"MeasurementSpecification": "DMTF", "Measurements": all},
		},
		"Links": object{"ComponentsProtected": refs(v.manager(), v.system()), "ComponentsProtected@odata.count": 2},
	}
}

var integrityActions = []action{{
	name: "ComponentIntegrity.SPDMGetSignedMeasurements",
	inputs: []input{
		{name: "Nonce", kind: text, form: regexp.MustCompile(`^[0-9a-fA-F]{64}$`).MatchString},
		{name: "MeasurementIndices", kind: array, min: 1, max: 255, of: []input{{kind: integer, min: 0, max: 255}}},
		{name: "SlotId", kind: integer, min: 0, max: 0},
	},
	apply: func(_ context.Context, c operation) (reply, error) {
		var nonce, answer [32]byte
		if _, err := rand.Read(answer[:]); err != nil {
			return reply{}, err
		}
		if text := value(c.set, "Nonce", ""); text != "" {
			if _, err := hex.Decode(nonce[:], []byte(text)); err != nil {
				return reply{}, err // not reached: the form was checked
			}
		} else if _, err := rand.Read(nonce[:]); err != nil {
			return reply{}, err
		}
		var indices []byte
		all, _ := c.set["MeasurementIndices"].([]any)
		for _, x := range all {
			n, _ := x.(int64)
			indices = append(indices, byte(n))
		}
		if len(indices) == 1 && indices[0] == 255 { // all of them
			indices = nil
		}
		signed, err := c.view.m.SignedMeasurements(nonce, answer, indices, 0)
		if errors.Is(err, machine.ErrUnknown) {
			err = decline(http.StatusBadRequest, message.ActionParameterValueError.With("MeasurementIndices", "ComponentIntegrity.SPDMGetSignedMeasurements").About("#/MeasurementIndices"))
		}
		if err != nil {
			return reply{}, err
		}
		return reply{body: object{
			"@odata.type":        "#ComponentIntegrity.v1_3_2.SPDMGetSignedMeasurementsResponse",
			"SignedMeasurements": base64.StdEncoding.EncodeToString(signed), "Version": "1.1",
			"HashingAlgorithm": "TPM_ALG_SHA_256", "SigningAlgorithm": "TPM_ALG_ECDSA_ECC_NIST_P256", "Certificate": ref(c.view.rootCertificate()),
		}}, nil
	},
}}
