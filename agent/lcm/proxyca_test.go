package lcm

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
)

// The certificates of a proxy that reads TLS are trusted beside the others, for the downloads of its
// machines alone.
func TestDownloadTrustsTheCertificatesOfTheProxy(t *testing.T) {
	f, s := newAPI(), newServer(t)
	data := []byte("a script")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	m := &lcmv1.LCMMachine{Spec: lcmv1.LCMMachineSpec{ProxySecretName: "proxy"}}
	p := map[string]string{"url": server.URL + "/a", "sha256": module.Sum(data), "path": "/opt/a"}
	downloads := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}}
	for _, tt := range []struct{ ca, want string }{{"", "certificate signed by unknown authority"}, {ca, "8 bytes are in /opt/a"}, {"x", "proxy: Secret default/proxy: CA_CERTIFICATE: give certificates in PEM"}, {"", "certificate signed by unknown authority"}} {
		f.secret("proxy", map[string]string{"CA_CERTIFICATE": tt.ca})
		a := newAgent(t, f, s)
		a.Downloads = downloads
		if r := a.run(t.Context(), m, downloader(p)); !strings.Contains(r.message, tt.want) {
			t.Errorf("with %.30q: %+v, want %q", tt.ca, r, tt.want)
		}
	}
}
