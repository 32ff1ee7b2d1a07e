package redfish_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
)

// refuse makes the server answer a request with a status and a message while holds
// returns true.
func refuse(s *server, request string, status int, id string, holds func(body string) bool) {
	s.wrap(request, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if holds(string(body)) {
				fail(w, status, id, "no")
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next(w, r)
		}
	})
}

// A request to a busy BMC is repeated for a while. Then the caller gets ErrBusy,
// which is also an ErrUnreachable.
func TestBusyBMCIsRetriedFor30Seconds(t *testing.T) {
	s := newServer(t)
	c := s.open()
	until := s.clock.Now().Add(20 * time.Second)
	busy := func(string) bool { return s.clock.Now().Before(until) }
	refuse(s, "PATCH "+systemPath, 400, "UnableToModifyDuringSystemPOST", busy)
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err != nil {
		t.Errorf("SetBoot() error = %v after 20 s of POST", err)
	}
	until = s.clock.Now().Add(10 * time.Minute)
	began := s.clock.Now()
	err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootDisk})
	if !errors.Is(err, bmc.ErrBusy) || !errors.Is(err, bmc.ErrUnreachable) || s.clock.Since(began) > time.Minute {
		t.Errorf("SetBoot() error = %v after %s, want ErrBusy within a minute", err, s.clock.Since(began))
	}
}

// iDRAC 10 answers 409 until power has settled.
func TestPowerIsRetriedWhileItSettles(t *testing.T) {
	s := newServer(t)
	c := s.open()
	until := s.clock.Now().Add(12 * time.Second)
	refuse(s, "POST "+resetPath, 409, "ActionParameterValueConflict", func(string) bool { return s.clock.Now().Before(until) })
	if err := c.SetPower(t.Context(), bmc.PowerOn); err != nil {
		t.Errorf("SetPower(on) error = %v", err)
	}
	if s.power != "On" {
		t.Errorf("power is %s", s.power)
	}
}

// On a BMC without persistent overrides the driver renews the override before each
// start, and shows it as persistent.
func TestBootOverrideIsRenewedBeforeEachStart(t *testing.T) {
	for name, build := range map[string]func(*server){
		"told": func(s *server) {
			b := s.bootProperty()
			b["BootSourceOverrideEnabled@Redfish.AllowableValues"] = []string{"Once", "Disabled"}
			s.system["Boot"] = b
		},
		"refused": func(*server) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, build)
			delete(s.system, "Boot")
			c := s.open()
			s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if strings.Contains(string(body), "Continuous") {
						fail(w, 400, "PropertyValueNotInList", "no", "Continuous", "BootSourceOverrideEnabled")
						return
					}
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					next(w, r)
				}
			})
			want := bmc.Boot{Device: bmc.BootDisk, Persistent: true}
			if err := c.SetBoot(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s.mu.Lock()
				s.enabled, s.target, s.power = "Disabled", "None", "Off" // it has booted
				s.mu.Unlock()
				s.forget()
				got, err := c.System(t.Context())
				if err != nil || got.Boot.Device != want.Device || !got.Boot.Persistent {
					t.Errorf("System().Boot = %+v, %v, want %+v", got.Boot, err, want)
				}
				if err := c.SetPower(t.Context(), bmc.PowerOn); err != nil {
					t.Fatal(err)
				}
				if got := s.sent(); len(got) != 2 || !strings.Contains(got[0], `"Once","BootSourceOverrideTarget":"Hdd"`) {
					t.Errorf("the start sends %s, want the override before", got)
				}
			}
			if err := c.SetBoot(t.Context(), bmc.Boot{}); err != nil {
				t.Fatal(err)
			}
			s.forget()
			if err := c.SetPower(t.Context(), bmc.PowerReset); err != nil || len(s.sent()) != 1 {
				t.Errorf("after it was taken back a start sends %s, %v", s.sent(), err)
			}
		})
	}
}

// A BMC that accepts an override and ignores it may take another variant.
func TestIgnoredBootOverrideIsSentAsAnotherVariant(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(body), "OverrideMode") {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next(w, r)
		}
	})
	for range 2 {
		if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err != nil || s.target != "Pxe" {
			t.Errorf("SetBoot() error = %v, target %s", err, s.target)
		}
		s.forget()
		s.mu.Lock()
		s.enabled, s.target = "Disabled", "None"
		s.mu.Unlock()
	}
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err != nil || s.count("PATCH "+systemPath) != 1 {
		t.Errorf("SetBoot() error = %v after %d tries, want the form that was learned", err, s.count("PATCH "+systemPath))
	}
}

// iDRAC: detached virtual media come back with a restart of the BMC, which the
// driver requests only once.
func TestDetachedMediaRestartTheBMCOnce(t *testing.T) {
	s := newServer(t)
	s.route("GET /redfish/v1/Managers/1", s.show(func() map[string]any {
		return map[string]any{"Actions": map[string]any{"#Manager.Reset": map[string]any{
			"target": "/redfish/v1/Managers/1/Actions/Manager.Reset", "ResetType@Redfish.AllowableValues": []string{"GracefulRestart"},
		}}}
	}))
	restarts := 0
	s.route("POST /redfish/v1/Managers/1/Actions/Manager.Reset", func(w http.ResponseWriter, _ *http.Request) {
		restarts++
		w.WriteHeader(http.StatusNoContent)
	})
	c := s.open()
	mended := 1
	refuse(s, "POST "+insertPath, 500, "VRM0021", func(string) bool { return restarts < mended })
	if err := c.InsertMedia(t.Context(), imageA); !errors.Is(err, bmc.ErrBusy) || restarts != 1 {
		t.Errorf("InsertMedia() error = %v after %d restarts, want ErrBusy after one", err, restarts)
	}
	s.insertMedia(c, imageA)
	mended = 9
	if err := c.InsertMedia(t.Context(), imageB); err == nil || errors.Is(err, bmc.ErrBusy) || restarts != 1 {
		t.Errorf("InsertMedia() error = %v after %d restarts, want what the BMC says after one", err, restarts)
	}
}

// A new client uses the workarounds of the previous one, and operators can see
// them.
func TestWorkaroundsOutliveAClient(t *testing.T) {
	s := newServer(t, func(s *server) { s.noActions = true })
	refuse(s, "PATCH "+systemPath, 400, "PropertyMissing", func(body string) bool { return !strings.Contains(body, "OverrideMode") })
	p := &bmc.Pool{Drivers: map[string]bmc.Open{"redfish": redfish.Open}}
	defer p.Close()
	config := s.config(systemPath)
	for i, password := range []string{s.password, "another-Pa55"} {
		s.mu.Lock()
		s.password = password
		s.mu.Unlock()
		config.Credentials.Password = password
		c, err := p.Get(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		s.forget()
		if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE, Persistent: i == 1}); err != nil {
			t.Fatal(err)
		}
		if got := s.count("PATCH " + systemPath); got != 2-i {
			t.Errorf("client %d takes %d tries, want %d", i, got, 2-i)
		}
		if err := c.InsertMedia(t.Context(), imageA); err != nil {
			t.Fatal(err)
		}
		want := []bmc.Workaround{
			{Topic: "boot override", Variant: "target, enabled and mode together", Nonstandard: true},
			{Topic: "virtual media", Variant: "PATCH of the slot with Image and Inserted", Nonstandard: true},
		}
		if d := cmp.Diff(want, c.(bmc.WorkaroundReporter).Workarounds()); d != "" {
			t.Errorf("Workarounds() (-want +got):\n%s", d)
		}
	}
}

// A PATCH is repeated when its connection breaks: it is idempotent.
func TestPATCHIsRetriedOverANewConnection(t *testing.T) {
	s := newServer(t)
	c := s.open()
	broken := 0
	s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if broken++; broken == 1 {
				panic(http.ErrAbortHandler)
			}
			next(w, r)
		}
	})
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err != nil || s.target != "Pxe" {
		t.Errorf("SetBoot() error = %v, target %s", err, s.target)
	}
}

// iDRAC 8 leaves settings that came without an apply time pending until a job is
// created for them.
func TestSetBIOSCreatesAJob(t *testing.T) {
	const bios, queue = systemPath + "/Bios", "/redfish/v1/Managers/1/Jobs"
	s := newServer(t)
	s.system["Bios"] = linkTo(bios)
	s.route("GET "+bios, s.show(func() map[string]any {
		return map[string]any{"Attributes": map[string]any{"Cores": 8}, "@Redfish.Settings": map[string]any{
			"SettingsObject": linkTo(bios + "/Settings"), "Messages": []any{map[string]any{
				"MessageId": "Base.1.8.PropertyUnknown", "Message": "No.", "RelatedProperties": []string{"#/Attributes/Cores"},
			}},
		}}
	}))
	s.route("GET "+bios+"/Settings", s.show(func() map[string]any { return map[string]any{} }))
	s.route("PATCH "+bios+"/Settings", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.route("GET /redfish/v1/Managers/1", s.show(func() map[string]any {
		return map[string]any{"Links": map[string]any{"Oem": map[string]any{"Acme": map[string]any{"Jobs": linkTo(queue)}}}}
	}))
	s.route("POST "+queue, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	c := s.open().(bmc.Setup)
	if err := c.SetBIOS(t.Context(), bmc.Settings{"Cores": int64(4)}); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"Attributes":{"Cores":4}}`, `{"TargetSettingsURI":"` + bios + `/Settings"}`}
	if d := cmp.Diff(want, s.sent()); d != "" {
		t.Errorf("it sends (-want +got):\n%s", d)
	}
	if b, err := c.BIOS(t.Context()); err != nil || b.Failed["Cores"] != "No." {
		t.Errorf("BIOS() = %+v, %v, want what came of the last reset", b, err)
	}
	s.route("POST "+queue, func(w http.ResponseWriter, _ *http.Request) { fail(w, 400, "LC068", "There is a job.") })
	if err := c.SetBIOS(t.Context(), bmc.Settings{"Cores": int64(2)}); err != nil {
		t.Errorf("SetBIOS() error = %v while a job waits", err)
	}
	s.route("PATCH "+bios+"/Settings", func(w http.ResponseWriter, _ *http.Request) { fail(w, 400, "SYS011", "There is a job.") })
	if err := c.SetBIOS(t.Context(), bmc.Settings{"Cores": int64(1)}); !errors.Is(err, bmc.ErrPending) {
		t.Errorf("SetBIOS() error = %v, want ErrPending", err)
	}
}
