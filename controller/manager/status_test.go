package manager

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

func TestStatusIsProtectedOffLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"":               false, // it is not served
		"127.0.0.1:8085": false, "127.9.9.9:1": false, "[::1]:8085": false, "localhost:8085": false, "[::ffff:127.0.0.1]:1": false,
		":8085": true, "0.0.0.0:8085": true, "[::]:8085": true, "192.0.2.1:8085": true, "node-1:8085": true, "localhost.example:1": true, "8085": true,
	} {
		if got := (&Config{}).protects(address); got != want {
			t.Errorf("protects(%q) = %t, want %t", address, got, want)
		}
		if got := (&Config{ProtectLoopback: true}).protects(address); got != (address != "") {
			t.Errorf("protects(%q) = %t with ProtectLoopback", address, got)
		}
		c := Config{Metrics: address}
		o := c.metricsOptions()
		if (o.FilterProvider != nil) != want || o.SecureServing != want || len(o.TLSOpts) > 0 != want {
			t.Errorf("metrics at %q: filter %t, HTTPS %t, want %t", address, o.FilterProvider != nil, o.SecureServing, want)
		}
	}
}

// reviews is an API that reviews the tokens of two accounts, of which one may get /metrics.
type reviews struct {
	t    *testing.T
	fail string // path of the requests that fail
}

func (a *reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			a.t.Error(err)
		}
	}
	switch {
	case a.fail != "" && strings.Contains(r.URL.Path, a.fail):
		http.Error(w, "no", http.StatusInternalServerError)
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var x authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
			a.t.Error(err)
		}
		if x.Spec.Token == "reader" || x.Spec.Token == "other" {
			x.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: x.Spec.Token, UID: "7", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
			}}
		}
		answer(x)
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var x authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
			a.t.Error(err)
		}
		s := x.Spec
		if s.NonResourceAttributes == nil || s.UID != "7" || len(s.Groups) != 1 || s.Extra["k"][0] != "v" {
			a.t.Errorf("SubjectAccessReview of %+v", s)
			return
		}
		x.Status.Allowed = s.User == "reader" && *s.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		answer(x)
	default:
		a.t.Errorf("%s %s", r.Method, r.URL)
	}
}

func TestGateAsksTheAPIWhoReadsTheMetrics(t *testing.T) {
	api := &reviews{t: t}
	srv := httptest.NewServer(api)
	defer srv.Close()
	filter, err := newGate(&rest.Config{Host: srv.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	const secret = "the metrics"
	h, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(secret)) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method, path, header, fail string
		want                             int
	}{
		{"no token", "GET", "/metrics", "", "", 401},
		{"an empty token", "GET", "/metrics", "Bearer ", "", 401},
		{"a password", "GET", "/metrics", "Basic reader", "", 401},
		{"an unknown token", "GET", "/metrics", "Bearer guessed", "", 401},
		{"a token without rights", "GET", "/metrics", "Bearer other", "", 403},
		{"another path", "GET", "/metrics/x", "Bearer reader", "", 403},
		{"another method", "POST", "/metrics", "Bearer reader", "", 403},
		{"a token with rights", "GET", "/metrics", "Bearer reader", "", 200},
		{"another spelling of the scheme", "GET", "/metrics", "bearer reader", "", 200},
		{"an API that reviews no tokens", "GET", "/metrics", "Bearer reader", "tokenreviews", 500},
		{"an API that reviews no access", "GET", "/metrics", "Bearer reader", "subjectaccessreviews", 500},
	} {
		api.fail = tt.fail
		r := httptest.NewRequest(tt.method, tt.path, nil)
		if tt.header != "" {
			r.Header.Set("Authorization", tt.header)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want || (w.Body.String() == secret) != (tt.want == 200) || (w.Header().Get("WWW-Authenticate") != "") != (tt.want == 401) {
			t.Errorf("%s: %d %q, want %d", tt.name, w.Code, w.Body, tt.want)
		}
	}
	srv.Close()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Authorization", "Bearer reader")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 500 {
		t.Errorf("without the API: %d, want 500", w.Code)
	}
}
