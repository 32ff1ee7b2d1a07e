package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// The driver of a provisioning knows no flags: labctl adds them to its error.
func TestUntrustedCertificateOfAProvisioningNamesItsFlags(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // drops the errors of the handshakes
	s.StartTLS()
	defer s.Close()
	address, err := bmcAddress(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = openRedfish(t.Context(), address, conformance.Config{Username: "admin", Password: "secret"})
	if err == nil || !strings.Contains(err.Error(), capture.Remedy) {
		t.Errorf("openRedfish() error = %v, want one with %q", err, capture.Remedy)
	}
}
