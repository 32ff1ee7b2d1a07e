package conformance

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"time"
)

// certChecks are the checks of certificates.
var certChecks = []Check{
	{
		ID: "CERT-001", Title: "GenerateCSR returns a signed request and leaves the certificate", Level: Reversible, Protocol: Redfish, Step: Day2,
		Predicts: "certificates cannot be managed", Remedy: "install certificates by hand",
		After: []string{"SYS-003"}, Run: requestGenerated,
	},
}

// requestGenerated lets the BMC generate a certificate signing request, which
// leaves its certificate as it is.
func requestGenerated(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	uri, err := place.Root.At("CertificateService").Link()
	if err != nil {
		return Skipped("the BMC has no CertificateService")
	}
	service, err := r.Page(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	target := service.At("Actions", "#CertificateService.GenerateCSR", "target").TextOr("")
	if target == "" {
		return Skipped("the certificate service has no GenerateCSR")
	}
	protocols, err := r.Page(ctx, place.Manager.At("NetworkProtocol").LinkOr("/redfish/v1/"))
	if err != nil {
		return Judge(err)
	}
	collection, err := protocols.At("HTTPS", "Certificates").Link()
	if err != nil {
		return Skipped("the manager has no HTTPS certificates")
	}
	before, err := r.Members(ctx, collection)
	if err != nil {
		return Judge(err)
	}
	name := r.bmc.client.base.Hostname()
	resp, err := r.Change(ctx, Change{Request: Request{
		Method: http.MethodPost, URI: target, Timeout: 2 * time.Minute, // keys take slow processors a while
		Body: map[string]any{
			"CertificateCollection": map[string]string{"@odata.id": collection}, "CommonName": name, "AlternativeNames": []string{name},
			"Organization": "Metalab", "OrganizationalUnit": "Conformance", "City": "Berlin", "State": "Berlin", "Country": "DE",
		},
	}})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("GenerateCSR: %s", resp.Problem())
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	v, err := resp.JSON()
	if err != nil {
		return Judge(err)
	}
	text, err := v.At("CSRString").Text()
	if err != nil {
		return Judge(err)
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return Failed("CSRString is not PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = request.CheckSignature()
	}
	switch {
	case err != nil:
		return Failed("the certificate signing request is not valid: %v", err)
	case request.Subject.CommonName != name:
		return Failed("the request is for %q, not %q", request.Subject.CommonName, name)
	}
	after, err := r.Members(ctx, collection)
	if err != nil {
		return Judge(err)
	}
	if strings.Join(before, " ") != strings.Join(after, " ") {
		return Failed("GenerateCSR changes the certificates from %v to %v", before, after)
	}
	return Passed("").With("request", "%s, %s", request.Subject, request.SignatureAlgorithm)
}
