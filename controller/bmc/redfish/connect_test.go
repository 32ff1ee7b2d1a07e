package redfish_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
)

const sessionsPath = "/redfish/v1/SessionService/Sessions"

// open calls Open and closes the client at the end of the test.
func open(t *testing.T, c bmc.Config) (bmc.Client, error) {
	t.Helper()
	client, err := redfish.Open(t.Context(), c)
	if err == nil {
		t.Cleanup(client.Close)
	}
	return client, err
}

// wantRequests compares the requests since the last forget.
func (s *server) wantRequests(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.requests()); diff != "" {
		s.t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestOpenSendsFewRequests(t *testing.T) {
	s := newServer(t)
	c, err := open(t, s.config(systemPath))
	if err != nil {
		t.Fatalf("Open() error = %v", err)
	}
	s.wantRequests("GET /redfish/v1/", "GET "+systemPath)
	s.forget()
	for range 2 {
		if _, err := c.System(t.Context()); err != nil {
			t.Fatalf("System() error = %v", err)
		}
	}
	s.wantRequests("GET "+systemPath, "GET "+systemPath)
	s.forget()
	c.Close()
	s.wantRequests()
	if _, err := c.System(t.Context()); err == nil {
		t.Error("System() error = nil after Close")
	}

	c, err = open(t, s.config(""))
	if err != nil {
		t.Fatalf("Open() without a path: error = %v", err)
	}
	s.wantRequests("GET /redfish/v1/", "GET /redfish/v1/Systems", "GET "+systemPath)
	s.forget()
	if _, err := c.System(t.Context()); err != nil {
		t.Fatalf("System() error = %v", err)
	}
	s.wantRequests("GET " + systemPath)
}

func TestSystemReadsIdentity(t *testing.T) {
	s := newServer(t)
	c := s.open()
	want := bmc.System{
		ID: systemPath, UUID: "11111111-2222-3333-4444-555555555555", Manufacturer: "Contoso", Model: "3500",
		Serial: "ABC123", BIOSVersion: "1.2.3", Power: bmc.Off, Health: "OK", Boot: bmc.Boot{Mode: bmc.UEFI},
	}
	got, err := c.System(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("System() error = %v, (-want +got):\n%s", err, diff)
	}

	// Properties of a wrong type do not hide the others.
	s.system = map[string]any{
		"Manufacturer": "Dell Inc.", "Model": 3500, "Status": "fine", "PowerState": "Paused", "@odata.id": nil, "@odata.type": nil,
		"MemorySummary": []any{}, "Boot": map[string]any{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "BiosSetup"},
	}
	want = bmc.System{
		ID: systemPath, UUID: want.UUID, Manufacturer: "Dell Inc.", Serial: "TAG7", BIOSVersion: "1.2.3", Power: bmc.On,
		Boot: bmc.Boot{Device: "BiosSetup"},
	}
	got, err = c.System(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("System() error = %v, (-want +got):\n%s", err, diff)
	}
}

// A service without Basic gets one session, which Close deletes.
func TestSessionLoginRenewalAndLogout(t *testing.T) {
	s := newServer(t, func(s *server) { s.sessionsOf = true })
	c, err := open(t, s.config(systemPath))
	if err != nil {
		t.Fatalf("Open() error = %v", err)
	}
	s.wantRequests("GET /redfish/v1/", "GET "+systemPath, "GET /redfish/v1/", "POST "+sessionsPath, "GET "+systemPath)
	s.forget()

	// The service drops the session: the driver logs in once and repeats the
	// request, even an action, because it was not carried out.
	s.mu.Lock()
	clear(s.sessions)
	s.mu.Unlock()
	s.wrap("GET "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			next(w, r)
			clear(s.sessions) // before the action
		}
	})
	if err := c.SetPower(t.Context(), bmc.PowerOn); err != nil {
		t.Errorf("SetPower(on) error = %v after the session's end", err)
	}
	if got := s.count("POST " + systemPath + "/Actions/ComputerSystem.Reset"); got != 2 {
		t.Errorf("%d resets were sent, want one that was refused and one that was not", got)
	}
	c.Close()
	if got := s.requests(); !strings.HasPrefix(got[len(got)-1], "DELETE "+sessionsPath+"/") {
		t.Errorf("the last request is %s, want the end of the session", got[len(got)-1])
	}
}

// The driver sends a wrong password once, or the BMC would lock the account early.
func TestWrongPasswordIsTriedOnce(t *testing.T) {
	s := newServer(t)
	c := s.config(systemPath)
	c.Credentials.Password = "wrong"
	if _, err := open(t, c); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("Open() error = %v, want ErrUnauthorized", err)
	}
	s.wantRequests("GET /redfish/v1/", "GET "+systemPath)

	s = newServer(t, func(s *server) { s.sessionsOf = true })
	s.route("POST "+sessionsPath, nil) // neither Basic nor sessions
	if _, err := open(t, s.config(systemPath)); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("Open() error = %v, want ErrUnauthorized", err)
	}
}

// Some services require authentication for the service root.
func TestServiceRootThatRequiresAuthentication(t *testing.T) {
	s := newServer(t)
	s.wrap("GET /redfish/v1/", func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if _, _, ok := r.BasicAuth(); !ok {
				w.Header().Set("WWW-Authenticate", "Basic")
				fail(w, http.StatusUnauthorized, "NoValidSession", "no")
				return
			}
			next(w, r)
		}
	})
	if _, err := open(t, s.config(systemPath)); err != nil {
		t.Errorf("Open() error = %v", err)
	}
	c := s.config(systemPath)
	c.Credentials.Password = "wrong"
	if _, err := open(t, c); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("Open() with a wrong password: error = %v, want ErrUnauthorized", err)
	}
}

func TestOpenChoosesTheSystem(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		name    string
		members []string
		err     error
	}{
		{"one", []string{"1"}, nil},
		{"none, as an iDRAC has it after a restart", nil, bmc.ErrBusy},
		{"two", []string{"1", "2"}, bmc.ErrNoSystem},
	} {
		s.route("GET /redfish/v1/Systems", s.show(collection("/redfish/v1/Systems", tt.members...)))
		if _, err := open(t, s.config("")); !errors.Is(err, tt.err) {
			t.Errorf("Open() error = %v with %s, want %v", err, tt.name, tt.err)
		}
	}
	if _, err := open(t, s.config("/redfish/v1/Managers/1")); !errors.Is(err, bmc.ErrNoSystem) {
		t.Errorf("Open() of a manager: error = %v, want ErrNoSystem", err)
	}
	s.route("GET /redfish/v1/Systems", nil)
	if _, err := open(t, s.config("")); !errors.Is(err, bmc.ErrNoSystem) {
		t.Errorf("Open() without a collection: error = %v, want ErrNoSystem", err)
	}
}

// The only system may have another name after a firmware update.
func TestRenamedSystemIsFoundAgain(t *testing.T) {
	s := newServer(t)
	c, err := open(t, s.config(""))
	if err != nil {
		t.Fatalf("Open() error = %v", err)
	}
	s.route("GET "+systemPath, nil)
	s.route("PATCH "+systemPath, nil)
	s.route("GET /redfish/v1/Systems", s.show(collection("/redfish/v1/Systems", "new")))
	s.route("GET /redfish/v1/Systems/new", s.show(s.computerSystem))
	if _, err := c.System(t.Context()); err != nil {
		t.Errorf("System() error = %v", err)
	}
}

// A GET is repeated when that can help; an action is not.
func TestGETIsRetriedAndPOSTIsNot(t *testing.T) {
	s := newServer(t)
	c := s.open()
	abort := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		fail(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable.", "3")
	}
	for _, tt := range []struct {
		name    string
		failure http.HandlerFunc
		times   int // number of failures
		err     error
		waited  time.Duration
	}{
		{"503 twice", busy, 2, nil, 6 * time.Second},
		{"503 thrice", busy, 3, bmc.ErrUnreachable, 6 * time.Second},
		// net/http repeats the first itself, because the connection is reused.
		{"connection cut thrice", abort, 3, nil, 1500 * time.Millisecond},
		{"503 for an hour", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", time.Time{}.Add(24*time.Hour).Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 1, nil, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			good := s.show(s.computerSystem)
			left := tt.times
			s.route("GET "+systemPath, func(w http.ResponseWriter, r *http.Request) {
				if left--; left >= 0 {
					tt.failure(w, r)
					return
				}
				good(w, r)
			})
			began := s.clock.Now()
			if _, err := c.System(t.Context()); !errors.Is(err, tt.err) {
				t.Errorf("System() error = %v, want %v", err, tt.err)
			}
			if got := s.clock.Since(began); got != tt.waited {
				t.Errorf("System() waited %s, want %s", got, tt.waited)
			}
		})
	}

	s.route("GET "+systemPath, s.show(s.computerSystem))
	for _, failure := range []http.HandlerFunc{busy, abort} {
		s.forget()
		s.route("POST "+systemPath+"/Actions/ComputerSystem.Reset", failure)
		if err := c.SetPower(t.Context(), bmc.PowerOn); !errors.Is(err, bmc.ErrUnreachable) {
			t.Errorf("SetPower(on) error = %v, want ErrUnreachable", err)
		}
		s.wantRequests("GET "+systemPath, "POST "+systemPath+"/Actions/ComputerSystem.Reset")
	}
}

// Each request has its own timeout, and a request that timed out is not repeated.
func TestRequestTimeout(t *testing.T) {
	s := newServer(t)
	config := s.config(systemPath)
	config.Timeout = 500 * time.Millisecond // a handshake on a busy machine takes 50 ms
	_, resume := s.stalled()
	defer resume()
	if _, err := open(t, config); !errors.Is(err, bmc.ErrUnreachable) {
		t.Errorf("Open() error = %v, want ErrUnreachable", err)
	}
	s.wantRequests("GET /redfish/v1/")
}

// No link and no redirect sends the credentials to another host.
func TestCredentialsStayWithTheHost(t *testing.T) {
	taken := make(chan string, 8)
	thief := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		taken <- r.Header.Get("Authorization") + r.Header.Get("X-Auth-Token")
	}))
	defer thief.Close()
	s := newServer(t, func(s *server) { s.sessionsOf = true })
	c := s.open()
	for name, target := range map[string]any{
		"absolute":     thief.URL + "/reset",
		"no slash":     "@" + strings.TrimPrefix(thief.URL, "https://") + "/reset",
		"double slash": strings.TrimPrefix(thief.URL, "https:") + "/reset",
	} {
		s.system["Actions"] = map[string]any{"#ComputerSystem.Reset": map[string]any{"target": target}}
		if err := c.SetPower(t.Context(), bmc.PowerOn); err == nil {
			t.Errorf("SetPower(on) with a target that is %s: error = nil", name)
		}
	}
	s.route("GET "+systemPath, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.System(t.Context()); err == nil || !strings.Contains(err.Error(), "redirected to "+thief.URL) {
		t.Errorf("System() error = %v, want a redirect that is not followed", err)
	}
	select {
	case account := <-taken:
		t.Errorf("another host was asked, with account %q", account)
	default:
	}
}

// Links may be absolute, and paths may lack the slash that the service requires.
func TestAbsoluteLinksAndTrailingSlash(t *testing.T) {
	s := newServer(t)
	s.route("GET /redfish/v1/Systems", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"Members": []any{linkTo(s.URL + systemPath + "#")}})
	})
	if _, err := open(t, s.config("")); err != nil {
		t.Errorf("Open() error = %v", err)
	}
	s.route("GET "+systemPath+"/", s.show(s.computerSystem))
	s.route("GET "+systemPath, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, systemPath+"/", http.StatusPermanentRedirect)
	})
	if _, err := open(t, s.config(systemPath)); err != nil {
		t.Errorf("Open() error = %v with a redirect to the slash", err)
	}
}

func TestOpenOfSomethingElseThanRedfish(t *testing.T) {
	s := newServer(t)
	s.route("GET /redfish/v1/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>Welcome</html>")
	})
	if _, err := open(t, s.config("")); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Open() of a web page: error = %v, want ErrUnsupported", err)
	}
	s.route("GET /redfish/v1/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 9<<20))
	})
	if _, err := open(t, s.config("")); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Open() of something endless: error = %v, want that it is too large", err)
	}
	config := s.config("")
	config.Address.Driver = "ipmi"
	if _, err := open(t, config); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Open(ipmi) error = %v, want ErrUnsupported", err)
	}
}
