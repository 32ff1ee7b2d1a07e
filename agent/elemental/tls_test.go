package elemental_test

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/elemental"
)

// serveTLS serves the fake API at another address than its URI's, which tokens name.
func serveTLS(t *testing.T, a *api) *httptest.Server {
	var l *httptest.Server
	l = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host = "https", r.Host
		text := strings.Replace(r.URL.String(), l.URL+"/r", uri, 1)
		u, err := r.URL.Parse(text)
		if err != nil {
			t.Error(err)
			return
		}
		r.URL = u
		a.serve(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// E-36: http needs insecureAllowHttp, an unknown CA is tried again, and caCert is PEM or a path.
func TestTLS(t *testing.T) {
	a := newAPI(t, registrationWith(""))
	a.fail = func(string, string, map[string]any) int { return http.StatusTeapot }
	l := serveTLS(t, a)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw}))
	for _, tt := range []struct{ name, registration, agent, want string }{
		{"inline", "  uri: " + l.URL + "/r\n  caCert: |\n" + indent(ca), "", "418 I'm a teapot: refused by the test"},
		{"path", "  uri: " + l.URL + "/r\n  caCert: /etc/ca.crt\n", "", "418 I'm a teapot: refused by the test"},
		{"no such path", "  uri: " + l.URL + "/r\n  caCert: /etc/none.crt\n", "", "registration.caCert: it is no PEM, and no file can be read by that name"},
		{"no certificate", "  uri: " + l.URL + "/r\n  caCert: '-----BEGIN NONSENSE'\n", "", "registration.caCert has no certificate"},
		{"unknown CA", "  uri: " + l.URL + "/r\n", "", "certificate signed by unknown authority"},
		{"skip", "  uri: " + l.URL + "/r\n", "  insecureSkipTlsVerify: true\n", "418 I'm a teapot"},
		{"http", "  uri: " + plain.URL + "\n", "", "use https, or set agent.insecureAllowHttp"},
		{"http allowed", "  uri: " + plain.URL + "\n", "  insecureAllowHttp: true\n", "404 Not Found: 404 page not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			s.put("/etc/ca.crt", ca)
			s.put(elemental.DefaultConfigFile, "registration:\n"+tt.registration+"agent:\n  osPlugin: dummy\n  reconciliation: 10ms\n"+tt.agent)
			log := &lines{}
			c := config(a, s)
			c.API, c.Log = nil, slog.New(slog.NewTextHandler(log, nil))
			r := start(t, func(ctx context.Context) error { return elemental.Register(ctx, c, false) })
			select {
			case err := <-r.done: // nothing was tried
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Register() = %v, want %q", err, tt.want)
				}
				return
			case <-after(t, func() bool { return strings.Contains(log.String(), "is not registered") }):
			}
			if got := log.String(); !strings.Contains(got, tt.want) {
				t.Errorf("log = %s, want %q", got, tt.want)
			}
			if err := r.kill(); err == nil {
				t.Error("Register() succeeded")
			}
		})
	}
}

// after returns a channel that is closed when a condition holds.
func after(t *testing.T, done func() bool) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for !done() {
			select {
			case <-tick.C:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return c
}

// A redirect of the server is refused: it would carry the tokens elsewhere.
func TestRedirectIsRefused(t *testing.T) {
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(other.Close)
	l := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusMovedPermanently))
	t.Cleanup(l.Close)
	s := newServer(t)
	s.put(elemental.DefaultConfigFile, "registration:\n  uri: "+l.URL+"/r\nagent:\n  osPlugin: dummy\n  insecureSkipTlsVerify: true\n")
	log := &lines{}
	c := config(newAPI(t, ""), s)
	c.API, c.Log = nil, log.logger()
	r := start(t, func(ctx context.Context) error { return elemental.Register(ctx, c, false) })
	<-after(t, func() bool { return strings.Contains(log.String(), "301 Moved Permanently") })
	if err := r.kill(); err == nil {
		t.Error("Register() succeeded")
	}
}
