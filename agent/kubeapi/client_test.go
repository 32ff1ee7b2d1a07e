package kubeapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// api answers 401 until a time, then an empty document.
type api struct {
	from  time.Time
	asked int
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked++
	code := http.StatusOK
	if time.Now().Before(a.from) {
		code = http.StatusUnauthorized
	}
	return &http.Response{StatusCode: code, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// An API server that has just started, or has not yet heard of a service account, refuses a
// valid token: that is no error, unless it lasts. A token that was accepted before is not
// tried again.
func TestNewTokenIsRefusedForAWhile(t *testing.T) {
	for name, tt := range map[string]struct {
		known  time.Duration // time until the server knows the token
		before bool          // the server has accepted the token before
		want   bool          // the request succeeds
		most   time.Duration // it lasts no longer
	}{
		"at once":        {0, false, true, 0},
		"after a moment": {2 * time.Second, false, true, 3 * time.Second},
		"never":          {time.Hour, false, false, newTokenWait + time.Second},
		"not any more":   {time.Hour, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &api{}
				c := Client{Server: "https://192.0.2.1", TokenFile: "/token", Files: memory{"/token": "t"}, Transport: server}
				call := func(ctx context.Context) error { return c.Call(ctx, http.MethodGet, "/x", "", nil, &struct{}{}) }
				if tt.before {
					if err := call(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				server.from = began.Add(tt.known)
				err := call(t.Context())
				if (err == nil) != tt.want || err != nil && !HasStatus(err, http.StatusUnauthorized) {
					t.Errorf("Call() = %v, want success %v", err, tt.want)
				}
				if took := time.Since(began); took > tt.most {
					t.Errorf("Call() took %v, want %v at most", took, tt.most)
				}
				if tt.want {
					return
				}
				asked := server.asked // a token that was refused for long is asked about once
				if err := call(t.Context()); !HasStatus(err, http.StatusUnauthorized) || server.asked != asked+1 {
					t.Errorf("Call() = %v after %d requests, want 401 after one", err, server.asked-asked)
				}
			})
		})
	}
}
