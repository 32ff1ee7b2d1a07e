package redfish

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

const sessions = "/redfish/v1/SessionService/Sessions"

// logIn creates a session and returns its token and URI.
func logIn(t testing.TB, s http.Handler, who as) (token, uri string) {
	t.Helper()
	for _, a := range accounts {
		if a.Name == string(who) {
			w := call(t, s, "", "POST", sessions, fmt.Sprintf(`{"UserName":%q,"Password":%q}`, a.Name, a.Password))
			if w.Code != 201 {
				t.Fatalf("%s", shape("POST", sessions, "", w))
			}
			return w.Header().Get("X-Auth-Token"), w.Header().Get("Location")
		}
	}
	t.Fatalf("no account %s", who)
	return "", ""
}

func TestSessionIsValidFromLoginToLogout(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for _, path := range []string{sessions, sessions + "/", sessions + "/Members"} {
		w := call(t, s, "", "POST", path, `{"UserName":"reader","Password":"read-secret-3"}`)
		token, uri := w.Header().Get("X-Auth-Token"), w.Header().Get("Location")
		if w.Code != 201 || len(token) < 20 || !strings.HasPrefix(uri, sessions+"/") || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("%s", shape("POST", path, "", w))
		}
		read := call(t, s, "", "GET", uri, "", "X-Auth-Token", token)
		if read.Code != 200 || read.Body.String() != w.Body.String() {
			t.Errorf("%s; want the response to the login:\n%s", shape("GET", uri, "", read), w.Body)
		}
		if strings.Contains(w.Body.String(), token) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("the session shows a secret: %s", w.Body)
		}
		if w := call(t, s, "", "DELETE", uri, "", "X-Auth-Token", token); w.Code != 204 {
			t.Errorf("%s", shape("DELETE", uri, "", w))
		}
		if w := call(t, s, "", "GET", sys, "", "X-Auth-Token", token); w.Code != 401 {
			t.Errorf("after logout %s", shape("GET", sys, "", w))
		}
	}
}

// A token is text: another notation of the same bytes is no token, nor is one of two in
// the header.
func TestSessionTokenInAnotherNotationReturns401(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	token, _ := logIn(t, s, "admin")
	raw, err := hex.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{
		strings.ToUpper(token), base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		token + "=", token + "\n", " " + token, token + "00", token[:len(token)-1], token + "," + token, "Bearer " + token,
	} {
		if w := call(t, s, "", "GET", sys, "", "X-Auth-Token", other); w.Code != 401 {
			t.Errorf("X-Auth-Token %q: %s", other, shape("GET", sys, "", w))
		}
	}
	if w := call(t, s, "", "GET", sys, "", "X-Auth-Token", token); w.Code != 200 {
		t.Errorf("%s", shape("GET", sys, "", w))
	}
}

func TestSessionExpiresAfterTimeout(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	if w := call(t, s, "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":60}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"SessionTimeout":60`) {
		t.Fatalf("%s", shape("PATCH", "SessionService", "", w))
	}
	token, _ := logIn(t, s, "operator")
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{59 * time.Second, 200}, {59 * time.Second, 200}, {60 * time.Second, 401}} {
		h.pass(step.pass)
		if w := call(t, s, "", "GET", sys, "", "X-Auth-Token", token); w.Code != step.want {
			t.Errorf("after %s: %d, want %d", step.pass, w.Code, step.want)
		}
	}
}

func TestSessionLimitReturns503(t *testing.T) {
	h := newHost(t)
	h.d.BMC.Sessions = 2
	h.bmc = bmc.New(&h.d.BMC, accounts, nil)
	s := newService(t, h)
	logIn(t, s, "admin")
	logIn(t, s, "admin")
	w := call(t, s, "", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`)
	if keys, _ := errorOf(t, w); w.Code != 503 || keys[0] != "SessionLimitExceeded" {
		t.Errorf("%s", shape("POST", sessions, "", w))
	}
}

func TestReadOnlyUserReadsOnlyItsSessionAndAccount(t *testing.T) {
	s := newService(t, newHost(t))
	mine, mineURI := logIn(t, s, "reader")
	_, othersURI := logIn(t, s, "operator")
	for _, tt := range []struct {
		method, uri string
		want        int
	}{
		{"GET", mineURI, 200}, {"GET", othersURI, 403}, {"DELETE", othersURI, 403},
		{"GET", "/redfish/v1/AccountService/Accounts/3", 200}, {"GET", "/redfish/v1/AccountService/Accounts/2", 403},
		{"DELETE", mineURI, 204},
	} {
		if w := call(t, s, "", tt.method, tt.uri, "", "X-Auth-Token", mine); w.Code != tt.want {
			t.Errorf("%s; want %d", shape(tt.method, tt.uri, "", w), tt.want)
		}
	}
	if w := call(t, s, "admin", "DELETE", othersURI, ""); w.Code != 204 {
		t.Errorf("%s", shape("DELETE", othersURI, "", w))
	}
}
