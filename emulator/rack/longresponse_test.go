package rack

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"
)

// Responses of any length arrive complete over a kept connection.
func TestLongResponsesAreComplete(t *testing.T) {
	l := open(t, Config{})
	serve(t, l)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	for _, uri := range []string{"/redfish/v1/", "/redfish/v1/$metadata", "/redfish/v1/openapi.yaml", "/redfish/v1/Systems/1", "/redfish/v1/$metadata"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.hosts[0].URL()+uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := l.hosts[0].Admin()
		r.SetBasicAuth(a.Name, a.Password)
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(w.Body)
		w.Body.Close()
		if err != nil || w.StatusCode != http.StatusOK || int64(len(body)) != w.ContentLength && w.ContentLength >= 0 {
			t.Errorf("%s: %s, %d of %d bytes, %v", uri, w.Status, len(body), w.ContentLength, err)
		}
	}
}
