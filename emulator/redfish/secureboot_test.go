package redfish

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func TestSecureBootLifecycle(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	const uri, db = sys + "/SecureBoot", sys + "/SecureBoot/SecureBootDatabases/db"
	check := func(enable bool, current, mode string) {
		t.Helper()
		got, _ := get(t, s, uri)
		if got["SecureBootEnable"] != enable || got["SecureBootCurrentBoot"] != current || got["SecureBootMode"] != mode {
			t.Errorf("SecureBoot is %v, %v, %v; want %t, %s, %s", got["SecureBootEnable"], got["SecureBootCurrentBoot"], got["SecureBootMode"], enable, current, mode)
		}
	}
	do := func(method, uri, body string, want int) map[string]any {
		t.Helper()
		w := call(t, s, "admin", method, uri, body)
		if w.Code != want {
			t.Fatalf("%s; want %d", shape(method, uri, body, w), want)
		}
		var got map[string]any
		if w.Body.Len() > 0 {
			must(t, json.Unmarshal(w.Body.Bytes(), &got))
		}
		return got
	}
	reset := func() {
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ForceRestart}))
		h.pass(10 * time.Minute)
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	h.pass(10 * time.Minute)
	check(false, "Disabled", "UserMode")
	do("PATCH", uri, `{"SecureBootEnable":true}`, 200)
	check(true, "Disabled", "UserMode")
	reset()
	check(true, "Enabled", "UserMode")
	do("POST", uri+"/Actions/SecureBoot.ResetKeys", `{"ResetKeysType":"DeletePK"}`, 204)
	check(true, "Enabled", "SetupMode")
	reset()
	check(true, "Disabled", "SetupMode")

	kek, _ := get(t, s, sys+"/SecureBoot/SecureBootDatabases/KEK/Certificates/1")
	pem := kek["CertificateString"].(string)
	body := func(db string) string {
		b, err := json.Marshal(map[string]any{"CertificateString": pem, "CertificateType": "PEM", "UefiSignatureOwner": "28d5e212-165b-4ca0-909b-c86b9cee0112"})
		must(t, err)
		return string(b)
	}
	made := do("POST", db+"/Certificates", body("db"), 201)
	if made["CertificateString"] != pem || made["UefiSignatureOwner"] != "28d5e212-165b-4ca0-909b-c86b9cee0112" {
		t.Errorf("the new certificate is %v", made)
	}
	do("POST", db+"/Certificates", body("db"), 409)
	do("DELETE", made["@odata.id"].(string), "", 204)
	do("POST", sys+"/SecureBoot/SecureBootDatabases/PK/Certificates", body("PK"), 201)
	check(true, "Disabled", "UserMode")
	reset()
	check(true, "Enabled", "UserMode")

	sum := strings.Repeat("0a", 32)
	signature := fmt.Sprintf(`{"SignatureString":%q,"SignatureType":"EFI_CERT_SHA256_GUID","SignatureTypeRegistry":"UEFI"}`, sum)
	made = do("POST", sys+"/SecureBoot/SecureBootDatabases/dbx/Signatures", signature, 201)
	do("DELETE", made["@odata.id"].(string), "", 204)
	do("POST", db+"/Actions/SecureBootDatabase.ResetKeys", `{"ResetKeysType":"DeleteAllKeys"}`, 204)
	if all, _ := get(t, s, db+"/Certificates"); all["Members@odata.count"] != 0.0 {
		t.Errorf("db has %v certificates", all["Members@odata.count"])
	}
	do("POST", uri+"/Actions/SecureBoot.ResetKeys", `{"ResetKeysType":"ResetAllKeysToDefault"}`, 204)
	if all, _ := get(t, s, db+"/Certificates"); all["Members@odata.count"] != 2.0 {
		t.Errorf("db has %v certificates", all["Members@odata.count"])
	}
}

func TestInvalidSecureBootKeyIsRejected(t *testing.T) {
	s := newService(t, newHost(t))
	const databases = sys + "/SecureBoot/SecureBootDatabases/"
	for _, tt := range []struct {
		method, uri, body string
		status            int
		key               string
	}{
		{"POST", "db/Certificates", `{"CertificateString":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----","CertificateType":"PEM"}`, 400, "PropertyValueError"},
		{"POST", "db/Certificates", `{"CertificateString":"hello","CertificateType":"PEM"}`, 400, "PropertyValueError"},
		{"POST", "db/Certificates", `{"CertificateString":"hello","CertificateType":"PKCS7"}`, 400, "PropertyValueNotInList"},
		{"POST", "db/Certificates", `{"CertificateType":"PEM"}`, 400, "PropertyMissing"},
		{"POST", "dbx/Signatures", `{"SignatureString":"xyz","SignatureType":"EFI_CERT_SHA256_GUID","SignatureTypeRegistry":"UEFI"}`, 400, "PropertyValueFormatError"},
		{"POST", "dbDefault/Certificates", `{"CertificateType":"PEM"}`, 405, "OperationNotAllowed"},
		{"DELETE", "dbDefault/Certificates/1", "", 405, "ResourceCannotBeDeleted"},
		{"DELETE", "db/Certificates/9", "", 404, "ResourceNotFound"},
		{"GET", "PK/Signatures", "", 404, "ResourceMissingAtURI"},
		{"POST", "dbDefault/Actions/SecureBootDatabase.ResetKeys", `{"ResetKeysType":"DeleteAllKeys"}`, 404, ""},
	} {
		w := call(t, s, "admin", tt.method, databases+tt.uri, tt.body)
		if w.Code != tt.status {
			t.Errorf("%s; want %d", shape(tt.method, tt.uri, tt.body, w), tt.status)
			continue
		}
		if keys, _ := errorOf(t, w); tt.key != "" && !strings.HasPrefix(keys[0], tt.key) {
			t.Errorf("%s; want %s", shape(tt.method, tt.uri, tt.body, w), tt.key)
		}
	}
}
