package redfish

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const (
	web   = "/redfish/v1/Managers/1/NetworkProtocol/HTTPS/Certificates"
	csrAt = "/redfish/v1/CertificateService/Actions/CertificateService.GenerateCSR"
	swap  = "/redfish/v1/CertificateService/Actions/CertificateService.ReplaceCertificate"
)

// testCA signs the certificate requests of BMCs under test.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestCA(t *testing.T) testCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(t, err)
	c, err = x509.ParseCertificate(der)
	must(t, err)
	return testCA{c, key}
}

// sign returns a PEM certificate for a certificate signing request.
func (ca testCA) sign(t *testing.T, csr string, how ...func(*x509.Certificate)) string {
	t.Helper()
	req := parseCSR(t, csr)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(0x1234), RawSubject: req.RawSubject, DNSNames: req.DNSNames, IPAddresses: req.IPAddresses,
		NotBefore: ca.cert.NotBefore, NotAfter: ca.cert.NotAfter,
	}
	for _, h := range how {
		h(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.cert, req.PublicKey, ca.key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func parseCSR(t *testing.T, csr string) *x509.CertificateRequest {
	t.Helper()
	block, _ := pem.Decode([]byte(csr))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		t.Fatalf("no request: %q", csr)
	}
	req, err := x509.ParseCertificateRequest(block.Bytes)
	must(t, err)
	must(t, req.CheckSignature())
	return req
}

func parseCertificate(t *testing.T, text any) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text.(string)))
	c, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return c
}

// body returns a JSON object made of alternating names and values.
func body(t *testing.T, pairs ...any) string {
	t.Helper()
	o := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	raw, err := json.Marshal(o)
	must(t, err)
	return string(raw)
}

func csrOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	s, _ := decoded(t, w)["CSRString"].(string)
	if strings.Contains(w.Body.String(), "PRIVATE") {
		t.Errorf("a response shows a private key: %s", w.Body)
	}
	return s
}

// TestGenerateCSRAndReplaceCertificate shows statement B7.
func TestGenerateCSRAndReplaceCertificate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		extra []any
		check func(*x509.CertificateRequest) bool
	}{
		{"default", nil, func(r *x509.CertificateRequest) bool {
			return r.PublicKey.(*ecdsa.PublicKey).Curve == elliptic.P256()
		}},
		{"P-384", []any{"KeyPairAlgorithm", "TPM_ALG_ECDSA", "KeyCurveId", "TPM_ECC_NIST_P384"}, func(r *x509.CertificateRequest) bool {
			return r.PublicKey.(*ecdsa.PublicKey).Curve == elliptic.P384()
		}},
		{"RSA", []any{"KeyPairAlgorithm", "TPM_ALG_RSA", "KeyBitLength", 2048}, func(r *x509.CertificateRequest) bool {
			return r.PublicKey.(*rsa.PublicKey).N.BitLen() == 2048
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			s, ca := newService(t, h), newTestCA(t)
			_, before := get(t, s, web+"/1")
			ask := body(t, append([]any{
				"CertificateCollection", map[string]string{"@odata.id": web}, "CommonName", "bmc-7.test", "AlternativeNames", []string{"bmc-7.test", "192.0.2.7"},
				"Country", "CH", "City", "Bern", "State", "Bern", "Organization", "Test", "OrganizationalUnit", "Lab", "Email", "a@bmc.test",
				"KeyUsage", []string{"ServerAuthentication", "DigitalSignature"},
			}, tt.extra...)...)
			w := call(t, s, "admin", "POST", csrAt, ask)
			if w.Code != 200 {
				t.Fatalf("%s", shape("POST", csrAt, ask, w))
			}
			req := parseCSR(t, csrOf(t, w))
			if req.Subject.CommonName != "bmc-7.test" || req.Subject.Country[0] != "CH" || !slices.Equal(req.DNSNames, []string{"bmc-7.test"}) || len(req.IPAddresses) != 1 || len(req.Extensions) != 3 || !tt.check(req) {
				t.Errorf("request: %+v", req)
			}
			if decoded(t, w)["CertificateCollection"].(map[string]any)["@odata.id"] != web {
				t.Errorf("%s", w.Body)
			}
			text := ca.sign(t, csrOf(t, w))
			// A restart between request and replacement keeps the key.
			st := h.bmc.State()
			h.bmc = bmc.New(&h.d.BMC, nil, &st)
			w = call(t, s, "admin", "POST", swap, body(t, "CertificateString", text, "CertificateType", "PEM", "CertificateUri", map[string]string{"@odata.id": web + "/1"}))
			uri := w.Header().Get("Location")
			if w.Code != 204 || uri != web+"/2" {
				t.Fatalf("%s", shape("POST", swap, "", w))
			}
			got, etag := get(t, s, uri)
			if got["CertificateString"] != text || etag == before || got["SerialNumber"] != "12:34" || got["Subject"].(map[string]any)["Email"] != "a@bmc.test" {
				t.Errorf("%v", got)
			}
			if diff := cmp.Diff([]any{"bmc-7.test", "192.0.2.7"}, got["Subject"].(map[string]any)["AlternativeNames"]); diff != "" {
				t.Errorf("AlternativeNames (-want +got):\n%s", diff)
			}
			converse(t, s, step{"admin", "GET", web + "/1", "", nil, 404, "ResourceNotFound"})
			all, _ := get(t, s, web)
			if all["Members@odata.count"] != 1.0 {
				t.Errorf("%v certificates", all["Members@odata.count"])
			}
			// After DELETE the factory certificate is back.
			converse(t, s,
				step{"admin", "DELETE", uri, "", nil, 204, ""},
				step{"admin", "DELETE", web + "/1", "", nil, 405, "ResourceCannotBeDeleted"},
			)
			if _, etag := get(t, s, web+"/1"); etag != before {
				t.Error("the certificate that the BMC came with is another one")
			}
		})
	}
}

func TestCertificateRenewAndRekey(t *testing.T) {
	s, ca := newService(t, newHost(t)), newTestCA(t)
	first, _ := get(t, s, web+"/1")
	old := parseCertificate(t, first["CertificateString"])
	w := converse(t, s, step{"admin", "POST", web + "/1/Actions/Certificate.Renew", "", nil, 200, ""})
	req := parseCSR(t, csrOf(t, w))
	if !req.PublicKey.(*ecdsa.PublicKey).Equal(old.PublicKey) || req.Subject.String() != old.Subject.String() || !slices.Equal(req.DNSNames, old.DNSNames) {
		t.Errorf("renewal asks for another: %+v", req)
	}
	if decoded(t, w)["Certificate"].(map[string]any)["@odata.id"] != web+"/1" {
		t.Errorf("%s", w.Body)
	}
	install := func(csr string) string {
		t.Helper()
		w := converse(t, s, step{"admin", "POST", web, body(t, "CertificateString", ca.sign(t, csr), "CertificateType", "PEM"), nil, 201, ""})
		return w.Header().Get("Location")
	}
	second := install(csrOf(t, w))
	w = converse(t, s, step{"admin", "POST", second + "/Actions/Certificate.Rekey", `{"KeyCurveId":"TPM_ECC_NIST_P384"}`, nil, 200, ""})
	req = parseCSR(t, csrOf(t, w))
	if req.PublicKey.(*ecdsa.PublicKey).Equal(old.PublicKey) || req.Subject.String() != old.Subject.String() {
		t.Errorf("the new key is the old one, or for another: %+v", req)
	}
	third := install(csrOf(t, w))
	w = converse(t, s, step{"admin", "POST", third + "/Actions/Certificate.Renew", "", nil, 200, ""})
	if again := parseCSR(t, csrOf(t, w)); !again.PublicKey.(*ecdsa.PublicKey).Equal(req.PublicKey) {
		t.Error("the renewal of a certificate that was installed has another key")
	}
}

func TestReplaceCertificateWithPrivateKey(t *testing.T) {
	s, ca := newService(t, newHost(t)), newTestCA(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	pair, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(ec)
	must(t, err)
	sec1, err := x509.MarshalECPrivateKey(ec)
	must(t, err)
	for _, tt := range []struct {
		kind   string
		key    []byte
		signer any
	}{{"PRIVATE KEY", pkcs8, ec}, {"EC PRIVATE KEY", sec1, ec}, {"RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(pair), pair}} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, tt.signer)
		must(t, err)
		cert := ca.sign(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})))
		text := string(pem.EncodeToMemory(&pem.Block{Type: tt.kind, Bytes: tt.key})) + cert
		w := converse(t, s, step{"admin", "POST", web, body(t, "CertificateString", text, "CertificateType", "PEM"), nil, 201, ""})
		if got := decoded(t, w); got["CertificateString"] != cert {
			t.Errorf("%s: CertificateString = %v, want the certificate alone", tt.kind, got["CertificateString"])
		}
	}
}

func TestInvalidCertificateIsRejected(t *testing.T) {
	s, ca := newService(t, newHost(t)), newTestCA(t)
	csr := csrOf(t, converse(t, s, step{"admin", "POST", csrAt, body(t, "CertificateCollection", map[string]string{"@odata.id": web}, "CommonName", "x"), nil, 200, ""}))
	good := ca.sign(t, csr)
	stranger := csrOf(t, converse(t, newService(t, newHost(t)), step{"admin", "POST", csrAt, body(t, "CertificateCollection", map[string]string{"@odata.id": web}, "CommonName", "x"), nil, 200, ""}))
	const param, property = "ActionParameterValueError", "PropertyValueError"
	for name, text := range map[string]string{
		"noise":          "hush",
		"nothing":        "",
		"cut short":      good[:len(good)/2],
		"a request":      csr,
		"noise behind":   good + "hush",
		"two as one":     good + good,
		"of a client":    ca.sign(t, csr, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
		"expired":        ca.sign(t, csr, func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Hour) }),
		"of another key": ca.sign(t, stranger),
	} {
		for at, key := range map[string]string{web: property, swap: param} {
			sent := body(t, "CertificateString", text, "CertificateType", "PEM")
			if at == swap {
				sent = body(t, "CertificateString", text, "CertificateType", "PEM", "CertificateUri", map[string]string{"@odata.id": web + "/1"})
			}
			w := call(t, s, "admin", "POST", at, sent)
			keys, infos := errorOf(t, w)
			if w.Code != 400 || keys[0] != key || infos[0].Related[0] != "#/CertificateString" || strings.Contains(w.Body.String(), "hush") {
				t.Errorf("%s: %s", name, shape("POST", at, "", w))
			}
		}
	}
	to := map[string]string{"@odata.id": web}
	converse(t, s,
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", to), nil, 400, "ActionParameterMissing"},
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", map[string]string{"@odata.id": sys}, "CommonName", "x"), nil, 400, "ActionParameterValueNotInList"},
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", to, "CommonName", "x", "Country", "CHE"), nil, 400, "ActionParameterValueFormatError"},
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", to, "CommonName", "x", "KeyBitLength", 2048), nil, 400, "ActionParameterValueConflict"},
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", to, "CommonName", "x", "KeyPairAlgorithm", "TPM_ALG_RSA", "KeyCurveId", "TPM_ECC_NIST_P256"), nil, 400, "ActionParameterValueConflict"},
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", to, "CommonName", "x", "KeyPairAlgorithm", "TPM_ALG_RSA", "KeyBitLength", 2049), nil, 400, "ActionParameterValueNotInList"},
		step{"admin", "POST", csrAt, body(t, "CertificateCollection", to, "CommonName", "x", "KeyUsage", []string{"Baking"}), nil, 400, "ActionParameterValueNotInList"},
		step{"operator", "POST", csrAt, body(t, "CertificateCollection", to, "CommonName", "x"), nil, 403, "InsufficientPrivilege"},
		step{"admin", "POST", swap, body(t, "CertificateString", good, "CertificateType", "PKCS7", "CertificateUri", map[string]string{"@odata.id": web + "/1"}), nil, 400, "ActionParameterValueNotInList"},
		step{"admin", "POST", swap, body(t, "CertificateString", good, "CertificateType", "PEM", "CertificateUri", map[string]string{"@odata.id": web + "/9"}), nil, 400, "ActionParameterValueNotInList"},
		step{"admin", "POST", swap, body(t, "CertificateString", good, "CertificateType", "PEM", "CertificateUri", map[string]string{"@odata.id": sys}), nil, 400, "ActionParameterValueNotInList"},
	)
}

// TestTrustedCertificates shows statement B7.
func TestTrustedCertificates(t *testing.T) {
	s, ca := newService(t, newHost(t)), newTestCA(t)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}))
	for _, tt := range []struct {
		at  string
		who as
	}{{sys + "/VirtualMedia/Cd/Certificates", "operator"}, {sys + "/Boot/Certificates", "operator"}, {resource.AccountURI("3") + "/Certificates", "admin"}} {
		w := converse(t, s,
			step{"reader", "GET", tt.at, "", nil, 403, "InsufficientPrivilege"},
			step{"reader", "POST", tt.at, "{}", nil, 403, "InsufficientPrivilege"},
			step{tt.who, "POST", tt.at, body(t, "CertificateString", text), nil, 400, "PropertyMissing"},
			step{tt.who, "POST", tt.at, body(t, "CertificateString", "x", "CertificateType", "PEM"), nil, 400, "PropertyValueError"},
			step{tt.who, "POST", tt.at, body(t, "CertificateString", text+text, "CertificateType", "PEMchain"), nil, 201, ""},
		)
		uri := w.Header().Get("Location")
		if got := decoded(t, w); got["CertificateType"] != "PEMchain" || got["CertificateString"] != text+text {
			t.Errorf("%v", got)
		}
		w = converse(t, s, step{"admin", "POST", swap, body(t, "CertificateString", text, "CertificateType", "PEM", "CertificateUri", map[string]string{"@odata.id": uri}), nil, 204, ""})
		next := w.Header().Get("Location")
		if next == uri || !strings.HasPrefix(next, tt.at+"/") {
			t.Errorf("Location of the replacement: %s", next)
		}
		converse(t, s,
			step{tt.who, "GET", uri, "", nil, 404, ""},
			step{tt.who, "GET", next, "", nil, 200, ""},
		)
		locations, _ := get(t, s, "/redfish/v1/CertificateService/CertificateLocations")
		var listed []string
		for _, c := range locations["Links"].(map[string]any)["Certificates"].([]any) {
			listed = append(listed, c.(map[string]any)["@odata.id"].(string))
		}
		if diff := cmp.Diff([]string{web + "/1", next}, listed); diff != "" {
			t.Errorf("CertificateLocations (-want +got):\n%s", diff)
		}
		converse(t, s,
			step{tt.who, "DELETE", next, "", nil, 204, ""},
			step{tt.who, "GET", next, "", nil, 404, ""},
		)
	}
}
