package resource

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// httpsCertificatesURI is the URI pattern of the collection with the BMC's HTTPS
// certificate. It always has one member.
const httpsCertificatesURI = "/redfish/v1/Managers/{manager}/NetworkProtocol/HTTPS/Certificates"

func certificateRows() []Row {
	rows := []Row{
		{URI: "/redfish/v1/CertificateService", Schema: "CertificateService.v1_2_1", DependsOn: partAccess | partCertificates | partMedia | partSubscribers,
			Read: certificateService, Actions: certificateServiceActions},
		{URI: "/redfish/v1/CertificateService/CertificateLocations", Schema: "CertificateLocations.v1_0_4",
			DependsOn: partAccess | partCertificates | partMedia | partSubscribers, Read: certificateLocations},
		{URI: httpsCertificatesURI, Schema: "CertificateCollection", DependsOn: partCertificates, Link: "-",
			collectionName: "HTTPS Certificates", memberVariable: "webcert", Create: &httpsCertificateCreate},
		{URI: httpsCertificatesURI + "/{webcert}", Schema: "Certificate.v1_11_0", DependsOn: partIdentity | partCertificates,
			Read: httpsCertificate, Remove: removeHTTPSCertificate, Refuses: factoryCertificate, Actions: httpsCertificateActions},
	}
	for _, s := range trustStores {
		rows = append(rows, storeRows(s)...)
	}
	return rows
}

// trustStore describes a collection of certificates that the BMC trusts and has
// no keys of.
type trustStore struct {
	parent   string // URI pattern of the resource that it belongs to, or of a part of it
	variable string // path variable of its members
	parts    Parts
	link     string // as Row.Link
	title    string
	use      string // Certificate.CertificateUsageTypes; "" when the standard defines none
	name     func(v View) bmc.StoreName
}

// trustStores are all trust stores of a BMC.
var trustStores = []trustStore{
	{"/redfish/v1/Systems/{system}/VirtualMedia/{slot}", "slotcert", partMedia, "", "Virtual Media Certificates", "",
		func(v View) bmc.StoreName { return bmc.MediaStore(v.IDs["slot"]) }},
	{"/redfish/v1/Systems/{system}/Boot", "bootcert", 0, "-", "Boot Certificates", "",
		func(View) bmc.StoreName { return bmc.BootStore }},
	{AccountsURI + "/{account}", "usercert", partAccess, "", "Account Certificates", "User",
		func(v View) bmc.StoreName { return bmc.AccountStore(v.IDs["account"]) }},
	{SubscriptionsURI + "/{subscription}", "subcert", partSubscribers, "", "Subscription Certificates", "",
		func(v View) bmc.StoreName { return bmc.SubscriptionStore(v.IDs["subscription"]) }},
}

func storeRows(s trustStore) []Row {
	uri := s.parent + "/Certificates"
	return []Row{
		{URI: uri, Schema: "CertificateCollection", DependsOn: s.parts | partCertificates, Link: s.link, collectionName: s.title, memberVariable: s.variable,
			Create: &create{Inputs: certificateInputs, Apply: func(ctx context.Context, c Call) (Result, error) {
				return c.trust(ctx, s.name(c.View), "", propertyCertificateError)
			}}},
		{URI: uri + "/{" + s.variable + "}", Schema: "Certificate.v1_11_0", DependsOn: s.parts | partCertificates,
			Read: func(v View) Object {
				c := Find(v.BMC.Certificates.Store(s.name(v)), v.IDs[s.variable], certificateID)
				return certificate(c, s.use)
			},
			Remove: func(ctx context.Context, c Call) (Result, error) {
				_, err := c.Host.ApplyBMC(ctx, bmc.Distrust{Store: s.name(c.View), ID: c.View.IDs[s.variable]})
				return Result{}, err
			}},
	}
}

func certificateID(c bmc.Certificate) string { return c.ID }

// storeMembers returns the function that lists the certificate IDs of the store
// with a path variable. It panics if there is no such store.
func storeMembers(variable string) func(v View) []string {
	for _, s := range trustStores {
		if s.variable == variable {
			return func(v View) []string { return Map(v.BMC.Certificates.Store(s.name(v)), certificateID) }
		}
	}
	panic("redfish: no store of " + variable)
}

// factoryID is the ID of the factory HTTPS certificate.
const factoryID = "1"

func httpsCertificateIDs(v View) []string {
	if installed := v.BMC.Certificates.HTTPS; installed != nil {
		return []string{installed.ID}
	}
	return []string{factoryID}
}

// factoryCertificate refuses to delete the factory certificate: the BMC would
// have none.
func factoryCertificate(v View, method string) bool {
	return method == http.MethodDelete && v.BMC.Certificates.HTTPS == nil
}

func httpsCertificate(v View) Object {
	c := bmc.Certificate{ID: factoryID}
	if installed := v.BMC.Certificates.HTTPS; installed != nil {
		c = installed.Certificate
	} else if factory, err := v.Host.FactoryCertificate(); err == nil {
		c = factory.Certificate
	}
	return certificate(c, "Web")
}

// certificate returns the body of a Certificate with its whole chain; the other
// properties describe the first certificate of the chain.
func certificate(c bmc.Certificate, use string) Object {
	o := Object{
		"Name": "Certificate " + c.ID, "CertificateString": encodePEM(c.Chain), "CertificateType": "PEM",
		"CertificateUsageTypes": []string{},
	}
	if use != "" {
		o["CertificateUsageTypes"] = []string{use}
	}
	if len(c.Chain) > 1 {
		o["CertificateType"] = "PEMchain"
	}
	if len(c.Chain) == 0 {
		return o
	}
	x, err := x509.ParseCertificate(c.Chain[0])
	if err != nil { // it was parsed when it was installed
		return o
	}
	sum := sha256.Sum256(x.Raw)
	o["Subject"], o["Issuer"] = identifier(x.Subject), identifier(x.Issuer)
	if names := alternativeNames(x); len(names) > 0 {
		o["Subject"].(Object)["AlternativeNames"] = names
	}
	o["ValidNotBefore"], o["ValidNotAfter"] = x.NotBefore.UTC().Format(time.RFC3339), x.NotAfter.UTC().Format(time.RFC3339)
	o["SerialNumber"], o["Fingerprint"], o["FingerprintHashAlgorithm"] = hexPairs(x.SerialNumber.Bytes()), hexPairs(sum[:]), "TPM_ALG_SHA256"
	o["SignatureAlgorithm"] = signatureOID(x)
	o["KeyUsage"] = keyUsages(x)
	return o
}

// encodePEM returns a DER chain as PEM.
func encodePEM(chain [][]byte) string {
	var b strings.Builder
	for _, der := range chain {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return b.String()
}

// hexPairs returns bytes in hexadecimal, separated by colons.
func hexPairs(b []byte) string {
	return strings.ReplaceAll(fmt.Sprintf("% X", b), " ", ":")
}

// identifier returns a distinguished name as Certificate.Identifier.
func identifier(n pkix.Name) Object {
	o := Object{"DisplayString": n.String()}
	for name, values := range map[string][]string{
		"Country": n.Country, "Organization": n.Organization, "OrganizationalUnit": n.OrganizationalUnit, "City": n.Locality, "State": n.Province,
	} {
		if len(values) > 0 {
			o[name] = values[0]
		}
	}
	if n.CommonName != "" {
		o["CommonName"] = n.CommonName
	}
	for _, a := range n.Names {
		if text, ok := a.Value.(string); ok && a.Type.Equal(oidEmail) {
			o["Email"] = text
		}
	}
	return o
}

func alternativeNames(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	names = append(names, c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	return names
}

// signatureOID returns the object identifier of a certificate's signature
// algorithm.
func signatureOID(c *x509.Certificate) string {
	var outer struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(c.Raw, &outer); err != nil {
		return ""
	}
	return outer.Algorithm.Algorithm.String()
}

// keyUsageTypes maps X.509 key usages to the values of Certificate.KeyUsage.
var keyUsageTypes = []struct {
	name string
	bit  x509.KeyUsage
	ext  x509.ExtKeyUsage // where bit is 0
	oid  asn1.ObjectIdentifier
}{
	{name: "DigitalSignature", bit: x509.KeyUsageDigitalSignature},
	{name: "NonRepudiation", bit: x509.KeyUsageContentCommitment},
	{name: "KeyEncipherment", bit: x509.KeyUsageKeyEncipherment},
	{name: "DataEncipherment", bit: x509.KeyUsageDataEncipherment},
	{name: "KeyAgreement", bit: x509.KeyUsageKeyAgreement},
	{name: "KeyCertSign", bit: x509.KeyUsageCertSign},
	{name: "CRLSigning", bit: x509.KeyUsageCRLSign},
	{name: "EncipherOnly", bit: x509.KeyUsageEncipherOnly},
	{name: "DecipherOnly", bit: x509.KeyUsageDecipherOnly},
	{name: "ServerAuthentication", ext: x509.ExtKeyUsageServerAuth, oid: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 1}},
	{name: "ClientAuthentication", ext: x509.ExtKeyUsageClientAuth, oid: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 2}},
	{name: "CodeSigning", ext: x509.ExtKeyUsageCodeSigning, oid: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 3}},
	{name: "EmailProtection", ext: x509.ExtKeyUsageEmailProtection, oid: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 4}},
	{name: "Timestamping", ext: x509.ExtKeyUsageTimeStamping, oid: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 8}},
	{name: "OCSPSigning", ext: x509.ExtKeyUsageOCSPSigning, oid: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 9}},
}

func keyUsages(c *x509.Certificate) []string {
	out := []string{}
	for _, u := range keyUsageTypes {
		has := u.bit != 0 && c.KeyUsage&u.bit != 0
		for _, e := range c.ExtKeyUsage {
			has = has || u.bit == 0 && e == u.ext
		}
		if has {
			out = append(out, u.name)
		}
	}
	return out
}

// certificateInputs are the properties of a certificate that a client uploads.
// CertificateString can hold a private key, so no response repeats it.
var certificateInputs = []Input{
	{Name: "CertificateString", Kind: Text, Required: true, Secret: true},
	{Name: "CertificateType", Kind: Text, Required: true, Allowed: OneOf("PEM", "PEMchain")},
}

// parseCertificate parses the uploaded CertificateString: a chain, and the
// private key of its first certificate if the client sent it.
func (c Call) parseCertificate() (chain [][]byte, key bmc.Key, err error) {
	rest := []byte(Value(c.Values, "CertificateString", ""))
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = after
		switch block.Type {
		case "CERTIFICATE":
			chain = append(chain, block.Bytes)
		case "PRIVATE KEY":
			key = block.Bytes
		case "EC PRIVATE KEY":
			k, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return nil, nil, bmc.ErrKey
			}
			if key, err = x509.MarshalPKCS8PrivateKey(k); err != nil {
				return nil, nil, bmc.ErrKey
			}
		case "RSA PRIVATE KEY":
			k, err := x509.ParsePKCS1PrivateKey(block.Bytes)
			if err != nil {
				return nil, nil, bmc.ErrKey
			}
			if key, err = x509.MarshalPKCS8PrivateKey(k); err != nil {
				return nil, nil, bmc.ErrKey
			}
		default: // a request, or an encrypted key
			return nil, nil, bmc.ErrCertificate
		}
	}
	if strings.TrimSpace(string(rest)) != "" || len(chain) == 0 || len(chain) > 1 && Value(c.Values, "CertificateType", "") == "PEM" {
		return nil, nil, bmc.ErrCertificate
	}
	return chain, key, nil
}

// isCertificateError reports whether an error means that an uploaded certificate
// is not valid.
func isCertificateError(err error) bool {
	return errors.Is(err, bmc.ErrCertificate) || errors.Is(err, bmc.ErrExpired) || errors.Is(err, bmc.ErrKey) || errors.Is(err, bmc.ErrUse)
}

// propertyCertificateError and parameterCertificateError return the message for an
// invalid certificate in a POST to a collection and in ReplaceCertificate.
func propertyCertificateError() message.Message {
	return message.PropertyValueError.With("CertificateString")
}
func parameterCertificateError() message.Message {
	return message.ActionParameterValueError.With("CertificateString", "CertificateService.ReplaceCertificate")
}

// storeCertificate parses the uploaded certificate and applies the BMC command
// that stores it. The result has the certificate's ID.
func (c Call) storeCertificate(ctx context.Context, word func() message.Message, do func(chain [][]byte, key bmc.Key) bmc.Command) (Result, error) {
	chain, key, err := c.parseCertificate()
	var evs []bmc.Event
	if err == nil {
		evs, err = c.Host.ApplyBMC(ctx, do(chain, key))
	}
	if isCertificateError(err) {
		return Result{}, Reject(http.StatusBadRequest, word().About("#/CertificateString"))
	}
	for _, ev := range evs {
		if installed, ok := ev.(bmc.CertificateInstalled); ok {
			return Result{ID: installed.ID}, err
		}
	}
	return Result{}, err
}

// trust adds the uploaded certificate to a trust store, or replaces the one with
// the ID instead.
func (c Call) trust(ctx context.Context, store bmc.StoreName, instead string, word func() message.Message) (Result, error) {
	return c.storeCertificate(ctx, word, func(chain [][]byte, _ bmc.Key) bmc.Command {
		return bmc.Trust{Store: store, Chain: chain, Instead: instead, RealTime: clock.Wall()}
	})
}

// install makes the uploaded certificate the BMC's HTTPS certificate.
func (c Call) install(ctx context.Context, word func() message.Message) (Result, error) {
	return c.storeCertificate(ctx, word, func(chain [][]byte, key bmc.Key) bmc.Command {
		return bmc.InstallHTTPS{Chain: chain, Key: key, RealTime: clock.Wall()}
	})
}

// httpsCertificateCreate replaces the HTTPS certificate: a service shows one at
// a time.
var httpsCertificateCreate = create{
	Inputs: certificateInputs,
	Apply:  func(ctx context.Context, c Call) (Result, error) { return c.install(ctx, propertyCertificateError) },
}

// removeHTTPSCertificate restores the factory HTTPS certificate.
func removeHTTPSCertificate(ctx context.Context, c Call) (Result, error) {
	_, err := c.Host.ApplyBMC(ctx, bmc.RemoveHTTPS{})
	return Result{}, err
}
