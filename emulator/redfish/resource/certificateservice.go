package resource

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func certificateService(View) Object { return Object{"Name": "Certificate Service"} }

func certificateLocations(v View) Object {
	var uris []string
	web := v.httpsCertificates()
	for _, id := range httpsCertificateIDs(v) {
		uris = append(uris, web+"/"+id)
	}
	for _, s := range v.BMC.Slots {
		uris = append(uris, v.certificateURIs(bmc.MediaStore(s.ID), v.system("VirtualMedia", s.ID))...)
	}
	uris = append(uris, v.certificateURIs(bmc.BootStore, v.system("Boot"))...)
	for _, a := range v.BMC.Accounts {
		uris = append(uris, v.certificateURIs(bmc.AccountStore(a.ID), AccountURI(a.ID))...)
	}
	for _, sub := range v.BMC.Subscribers.List {
		uris = append(uris, v.certificateURIs(bmc.SubscriptionStore(sub.ID), SubscriptionsURI+"/"+sub.ID)...)
	}
	return Object{
		"Name":  "Certificate Locations",
		"Links": Object{"Certificates@odata.count": len(uris), "Certificates": refs(uris...)},
	}
}

// httpsCertificates returns the URI of the collection with the BMC's HTTPS
// certificate.
func (v View) httpsCertificates() string {
	return v.manager("NetworkProtocol", "HTTPS", "Certificates")
}

// certificateURIs returns the URIs of the certificates in a trust store.
func (v View) certificateURIs(name bmc.StoreName, above string) []string {
	return Map(v.BMC.Certificates.Store(name), func(c bmc.Certificate) string { return above + "/Certificates/" + c.ID })
}

// The names of algorithms and curves are those of the TCG's registry.
const (
	algRSA   = "TPM_ALG_RSA"
	algECDSA = "TPM_ALG_ECDSA"
)

var curves = []struct {
	id    string
	curve elliptic.Curve
}{{"TPM_ECC_NIST_P256", elliptic.P256()}, {"TPM_ECC_NIST_P384", elliptic.P384()}, {"TPM_ECC_NIST_P521", elliptic.P521()}}

func curveIDs(View) []string {
	var out []string
	for _, c := range curves {
		out = append(out, c.id)
	}
	return out
}

// rsaKeyLengths are the supported values of KeyBitLength.
var rsaKeyLengths = []int64{2048, 3072, 4096}

// keyInputs are the parameters that describe a new key pair.
var keyInputs = []Input{
	{Name: "KeyPairAlgorithm", Kind: Text, Allowed: OneOf(algECDSA, algRSA)},
	{Name: "KeyCurveId", Kind: Text, Allowed: curveIDs},
	{Name: "KeyBitLength", Kind: Integer, Min: rsaKeyLengths[0], Max: rsaKeyLengths[len(rsaKeyLengths)-1]},
}

// newKey generates a key pair as the parameters say; by default its algorithm is
// that of the factory certificate.
func (c Call) newKey(action string) (bmc.Key, error) {
	alg := algECDSA
	if c.View.BMC.Spec.Key == bmc.RSA2048 {
		alg = algRSA
	}
	alg = Value(c.Values, "KeyPairAlgorithm", alg)
	length := Value(c.Values, "KeyBitLength", rsaKeyLengths[0])
	curve := Value(c.Values, "KeyCurveId", curves[0].id)
	conflict := func(name, sent string) error {
		return Reject(http.StatusBadRequest, message.ActionParameterValueConflict.With(name, sent).About("#/"+name))
	}
	_, hasLength := c.Values["KeyBitLength"]
	_, hasCurve := c.Values["KeyCurveId"]
	switch {
	case alg == algRSA && hasCurve:
		return nil, conflict("KeyCurveId", curve)
	case alg == algECDSA && hasLength:
		return nil, conflict("KeyBitLength", strconv.FormatInt(length, 10))
	case !slices.Contains(rsaKeyLengths, length):
		return nil, Reject(http.StatusBadRequest,
			message.ActionParameterValueNotInList.With(strconv.FormatInt(length, 10), "KeyBitLength", action).About("#/KeyBitLength"))
	}
	var key any
	var err error
	if alg == algRSA {
		key, err = rsa.GenerateKey(rand.Reader, int(length))
	} else {
		i := slices.Index(curveIDs(c.View), curve)
		key, err = ecdsa.GenerateKey(curves[i].curve, rand.Reader)
	}
	if err != nil {
		return nil, fmt.Errorf("redfish: key pair: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("redfish: key pair: %w", err)
	}
	return der, nil
}

const (
	generateCSR = "CertificateService.GenerateCSR"
	replace     = "CertificateService.ReplaceCertificate"
)

var certificateServiceActions = []Action{
	{
		Name: generateCSR, Slow: true, // generating an RSA key takes long
		Inputs: append([]Input{
			{Name: "CertificateCollection", Kind: Link, Required: true},
			{Name: "CommonName", Kind: Text, Required: true, form: isNameAttribute},
			{Name: "AlternativeNames", Kind: Array, Of: []Input{{Kind: Text, form: isNameAttribute}}},
			{Name: "Country", Kind: Text, form: func(s string) bool { return len(s) == 2 && isNameAttribute(s) }},
			{Name: "State", Kind: Text, form: isNameAttribute},
			{Name: "City", Kind: Text, form: isNameAttribute},
			{Name: "Organization", Kind: Text, form: isNameAttribute},
			{Name: "OrganizationalUnit", Kind: Text, form: isNameAttribute},
			{Name: "Email", Kind: Text, form: func(s string) bool { return isNameAttribute(s) && strings.Contains(s, "@") }},
			{Name: "GivenName", Kind: Text, form: isNameAttribute},
			{Name: "Surname", Kind: Text, form: isNameAttribute},
			{Name: "Initials", Kind: Text, form: isNameAttribute},
			{Name: "KeyUsage", Kind: Array, Of: []Input{{Kind: Text, Allowed: usageNames}}},
		}, keyInputs...),
		Apply: makeCSR,
	},
	{
		Name: replace,
		Inputs: append([]Input{{Name: "CertificateUri", Kind: Link, Required: true}},
			certificateInputs...),
		Apply: replaceCertificate,
	},
}

// isNameAttribute reports whether a string is accepted as an attribute of a
// distinguished name: it is not empty, has no control characters and at most 255
// bytes. The upper bounds of some attributes in RFC 5280, appendix A.1, are smaller.
func isNameAttribute(s string) bool {
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

func usageNames(View) []string {
	var out []string
	for _, u := range keyUsageTypes {
		out = append(out, u.name)
	}
	return out
}

var (
	oidEmail     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}
	oidGivenName = asn1.ObjectIdentifier{2, 5, 4, 42}
	oidSurname   = asn1.ObjectIdentifier{2, 5, 4, 4}
	oidInitials  = asn1.ObjectIdentifier{2, 5, 4, 43}
	oidKeyUsage  = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidExtUsage  = asn1.ObjectIdentifier{2, 5, 29, 37}
)

// makeCSR generates a certificate signing request for the BMC's HTTPS
// certificate. The BMC has no keys of other certificates.
func makeCSR(ctx context.Context, c Call) (Result, error) {
	collection := strings.TrimSuffix(Value(c.Values, "CertificateCollection", ""), "/")
	if collection != c.View.httpsCertificates() {
		return Result{}, Reject(http.StatusBadRequest, message.ActionParameterValueNotInList.With(collection, "CertificateCollection", generateCSR).About("#/CertificateCollection"))
	}
	req, err := c.certificateRequest()
	if err != nil {
		return Result{}, err
	}
	key, err := c.newKey(generateCSR)
	if err != nil {
		return Result{}, err
	}
	csr, err := c.requestCSR(ctx, bmc.RequestCertificate{Key: key, Request: req})
	return Result{Body: Object{"CertificateCollection": Ref(collection), "CSRString": csr}}, err
}

// certificateRequest converts the parameters of GenerateCSR to a certificate
// request.
func (c Call) certificateRequest() (x509.CertificateRequest, error) {
	one := func(name string) []string {
		if s := Value(c.Values, name, ""); s != "" {
			return []string{s}
		}
		return nil
	}
	req := x509.CertificateRequest{Subject: pkix.Name{
		CommonName: Value(c.Values, "CommonName", ""), Country: one("Country"), Province: one("State"), Locality: one("City"),
		Organization: one("Organization"), OrganizationalUnit: one("OrganizationalUnit"),
	}}
	for _, extra := range []struct {
		name string
		oid  asn1.ObjectIdentifier
	}{{"Surname", oidSurname}, {"GivenName", oidGivenName}, {"Initials", oidInitials}, {"Email", oidEmail}} {
		if s := Value(c.Values, extra.name, ""); s != "" {
			req.Subject.ExtraNames = append(req.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: extra.oid, Value: s})
		}
	}
	names, _ := c.Values["AlternativeNames"].([]any)
	for _, n := range names {
		name := n.(string)
		if ip := net.ParseIP(name); ip != nil {
			req.IPAddresses = append(req.IPAddresses, ip)
			continue
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r > '~' || r == ' ' }) {
			return req, Reject(http.StatusBadRequest, message.ActionParameterValueFormatError.With(name, "AlternativeNames", generateCSR).About("#/AlternativeNames"))
		}
		req.DNSNames = append(req.DNSNames, name)
	}
	uses, _ := c.Values["KeyUsage"].([]any)
	var err error
	req.ExtraExtensions, err = usageExtensions(uses)
	return req, err
}

// usageExtensions returns the extensions that request key usages (RFC 5280,
// §4.2.1.3 and §4.2.1.12).
func usageExtensions(uses []any) (out []pkix.Extension, err error) {
	var bits x509.KeyUsage
	var ext []asn1.ObjectIdentifier
	for _, u := range keyUsageTypes {
		switch {
		case !slices.Contains(uses, any(u.name)):
		case u.bit != 0:
			bits |= u.bit
		default:
			ext = append(ext, u.oid)
		}
	}
	if bits != 0 {
		var b asn1.BitString
		for n := range 9 {
			if bits&(1<<n) == 0 {
				continue
			}
			for len(b.Bytes) <= n/8 {
				b.Bytes = append(b.Bytes, 0)
			}
			b.Bytes[n/8] |= 0x80 >> (n % 8)
			b.BitLength = n + 1
		}
		der, err := asn1.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("redfish: key usage: %w", err)
		}
		out = append(out, pkix.Extension{Id: oidKeyUsage, Critical: true, Value: der})
	}
	if len(ext) > 0 {
		der, err := asn1.Marshal(ext)
		if err != nil {
			return nil, fmt.Errorf("redfish: key usage: %w", err)
		}
		out = append(out, pkix.Extension{Id: oidExtUsage, Value: der})
	}
	return out, nil
}

// requestCSR applies the command that signs a certificate request and returns
// the request as PEM.
func (c Call) requestCSR(ctx context.Context, cmd bmc.RequestCertificate) (string, error) {
	evs, err := c.Host.ApplyBMC(ctx, cmd)
	if err != nil {
		return "", err
	}
	for _, ev := range evs {
		if made, ok := ev.(bmc.CertificateRequested); ok {
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: made.Request})), nil
		}
	}
	return "", errors.New("redfish: certificate request: not made")
}

// replaceCertificate replaces the certificate that CertificateUri names, in any
// collection.
func replaceCertificate(ctx context.Context, c Call) (Result, error) {
	uri := Value(c.Values, "CertificateUri", "")
	m := c.View.Tree.Find(&url.URL{Path: uri})
	missing := Reject(http.StatusBadRequest, message.ActionParameterValueNotInList.With(uri, "CertificateUri", replace).About("#/CertificateUri"))
	if m == nil || m.Action != nil || m.Members || TypeName(m.Schema) != "Certificate" {
		return Result{}, missing
	}
	v := m.View(TakeSnapshot(c.Host))
	if m.MissingVariable(v) != "" || !m.ConditionsHold(v) {
		return Result{}, missing
	}
	there := c
	there.View = v
	last := m.Vars[len(m.Vars)-1]
	out, err := Result{}, error(nil)
	if last == "webcert" {
		out, err = there.install(ctx, parameterCertificateError)
	} else {
		i := slices.IndexFunc(trustStores, func(s trustStore) bool { return s.variable == last })
		if i < 0 {
			return Result{}, missing
		}
		out, err = there.trust(ctx, trustStores[i].name(v), v.IDs[last], parameterCertificateError)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{URI: m.URI[:strings.LastIndexByte(m.URI, '/')+1] + out.ID}, nil
}

const (
	rekey = "Certificate.Rekey"
	renew = "Certificate.Renew"
)

// httpsCertificateActions generate a certificate signing request from the
// current HTTPS certificate, with a new key (Rekey) or with the current one
// (Renew).
var httpsCertificateActions = []Action{
	{
		Name: rekey, Slow: true, Inputs: keyInputs,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			key, err := c.newKey(rekey)
			if err != nil {
				return Result{}, err
			}
			return c.renewCSR(ctx, key)
		},
	},
	{
		Name: renew,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			if c.View.BMC.Certificates.HTTPS != nil {
				return c.renewCSR(ctx, nil)
			}
			factory, err := c.Host.FactoryCertificate()
			if err != nil {
				return Result{}, err
			}
			return c.renewCSR(ctx, factory.Key)
		},
	},
}

// renewCSR returns a certificate signing request with the names and key usages
// of the current HTTPS certificate. With a nil key the request has the key
// of that certificate.
func (c Call) renewCSR(ctx context.Context, key bmc.Key) (Result, error) {
	var now bmc.Certificate
	if installed := c.View.BMC.Certificates.HTTPS; installed != nil {
		now = installed.Certificate
	} else {
		factory, err := c.Host.FactoryCertificate()
		if err != nil {
			return Result{}, err
		}
		now = factory.Certificate
	}
	x, err := x509.ParseCertificate(now.Chain[0])
	if err != nil {
		return Result{}, fmt.Errorf("redfish: certificate %s: %w", now.ID, err)
	}
	var uses []any
	for _, u := range keyUsages(x) {
		uses = append(uses, u)
	}
	ext, err := usageExtensions(uses)
	if err != nil {
		return Result{}, err
	}
	csr, err := c.requestCSR(ctx, bmc.RequestCertificate{Key: key, Request: x509.CertificateRequest{
		RawSubject: x.RawSubject, DNSNames: x.DNSNames, IPAddresses: x.IPAddresses, ExtraExtensions: ext,
	}})
	return Result{Body: Object{"Certificate": Ref(c.View.URI), "CSRString": csr}}, err
}
