package elemental_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/elemental"
)

func register(a *api, s *server, install bool) func(context.Context) error {
	return func(ctx context.Context) error { return elemental.Register(ctx, config(a, s), install) }
}

// The order of requests, their headers and their bodies are those of the provider's agent.
// E-13: install.yaml and cloud-init.yaml are written, and InstallationReady becomes True.
func TestRegisterAndInstallOnTheWire(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith(`,"install":{"device":"/dev/sda","debug":true}`)), newServer(t)
		s.seed("")
		if err := elemental.Register(bounded(t), config(a, s), true); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{
			"GET registration", "PATCH", "POST", "PATCH phase=Registering", "PATCH phase=Finalizing Registration",
			"PATCH RegistrationReady=True", "PATCH InstallationReady=False/WaitingForInstallation", "PATCH phase=Installing",
			"GET registration", "PATCH installed=true InstallationReady=True",
		}, a.seen()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		name, h := a.only()
		for i, want := range map[int]string{
			1: `{"Auth":"","Namespace":"","RegistrationName":"","HostName":""}`,
			3: `{"Auth":"","Namespace":"","RegistrationName":"","HostName":"","phase":"Registering"}`,
			5: `{"Auth":"","Namespace":"","RegistrationName":"","HostName":"","condition":{"type":"RegistrationReady","status":"True","severity":"Info","lastTransitionTime":null}}`,
			9: `{"Auth":"","Namespace":"","RegistrationName":"","HostName":"","installed":true,"condition":{"type":"InstallationReady","status":"True","severity":"Info","lastTransitionTime":null}}`,
		} {
			if a.bodies[i] != want {
				t.Errorf("body of request %d = %s, want %s", i, a.bodies[i], want)
			}
		}
		head := `{"Auth":"","RegAuth":"","Namespace":"","RegistrationName":"","name":"` + name + `","annotations":{"note":"x"},"labels":{"rack":"a"},"pubKey":"-----BEGIN PUBLIC KEY-----\n`
		if !strings.HasPrefix(a.bodies[2], head) || !strings.HasSuffix(a.bodies[2], `\n-----END PUBLIC KEY-----\n"}`) {
			t.Errorf("body of the POST = %s, want %s…", a.bodies[2], head)
		}
		for i, h := range a.headers {
			get := strings.HasPrefix(a.requests[i], "GET")
			if got := h.Get("User-Agent"); got != "elemental-agent/v1.2.3" {
				t.Errorf("User-Agent of %s = %q", a.requests[i], got)
			}
			if _, typed := h["Content-Type"]; typed == get {
				t.Errorf("Content-Type of %s = %q", a.requests[i], h["Content-Type"])
			}
		}
		if got := a.headers[2]; !strings.HasPrefix(got.Get("Authorization"), "Bearer ey") || got.Get("Registration-Authorization") != "Bearer seed" {
			t.Errorf("headers of the POST = %v, want both tokens", got)
		}
		if got := a.headers[0]; got.Get("Authorization") != "" {
			t.Errorf("headers of the GET = %v, want the token of the registration alone", got)
		}
		// The new token is on the disk; the client that runs keeps its own.
		if got := a.headers[8].Get("Registration-Authorization"); got != "Bearer seed" {
			t.Errorf("token of the second GET = %q, want the one of the seed", got)
		}
		for name, want := range map[string]string{
			"/etc/hostname":              name + "\n",
			workDir + "/install.yaml":    "debug: true\ndevice: /dev/sda\n",
			workDir + "/cloud-init.yaml": "#cloud-config\nusers:\n- name: ann\n",
		} {
			if got := s.read(name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
		if h.labels["installed"] != "true" || h.conditions["InstallationReady"].Status != "True" {
			t.Errorf("host = %+v, want it installed", h)
		}
		for _, text := range []string{"token: new", "uri: " + uri} {
			for _, name := range []string{elemental.DefaultConfigFile, workDir + "/config.yaml"} {
				if got := s.read(name); !strings.Contains(got, text) {
					t.Errorf("%s = %q, want %q in it", name, got, text)
				}
			}
		}
	})
}

// E-34: the private key is the superuser's alone, and the configuration its group's.
func TestModesOfKeyAndConfiguration(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		for name, want := range map[string]string{"private.key": "0600", "config.yaml": "0640"} {
			if got := s.mode(workDir + "/" + name); got != want {
				t.Errorf("mode of %s = %s, want %s", name, got, want)
			}
		}
		if got := s.mode(elemental.DefaultConfigFile); got != "0640" {
			t.Errorf("mode of %s = %s, want 0640", elemental.DefaultConfigFile, got)
		}
	})
}

// E-09: a server that registers again under its name finds its host, and creates none.
func TestSecondRegistrationFindsTheHost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(`,"agent":{"hostname":{"useExisting":true,"prefix":"m-"}}`))
		s := registered(t, a)
		name, _ := a.only()
		if name != "m-box" {
			t.Errorf("name = %q, want m-box: the prefix and the name of the system", name)
		}
		key := s.read(workDir + "/private.key")
		if err := elemental.Register(bounded(t), config(a, s), false); err != nil {
			t.Fatal(err)
		}
		if got := a.seen()[:3]; !slices.Equal(got, []string{"GET registration", "PATCH", "PATCH phase=Registering"}) {
			t.Errorf("requests = %q, want no POST", got)
		}
		if again, _ := a.only(); again != name || s.read(workDir+"/private.key") != key {
			t.Errorf("the second registration is %s, with the old key: %v", again, s.read(workDir+"/private.key") == key)
		}
	})
}

// The host tells the UUID of its server, by which it has the Node of its kubelet in an API that others share.
func TestHostTellsTheUUIDOfItsServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		s.put("/sys/class/dmi/id/product_uuid", "30C5E6A2-2B1E-5D3A-9D0A-7C1F6D2F0B11\n")
		if err := elemental.Register(bounded(t), config(a, s), false); err != nil {
			t.Fatal(err)
		}
		const want = `"annotations":{"metalab.dev/system-uuid":"30c5e6a2-2b1e-5d3a-9d0a-7c1f6d2f0b11","note":"x"}`
		if i := slices.Index(a.requests, "POST"); i < 0 || !strings.Contains(a.bodies[i], want) {
			t.Errorf("requests %q with bodies %q, want a POST with %s", a.requests, a.bodies, want)
		}
	})
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		s.put("/sys/class/dmi/id/product_uuid/file", "") // what cannot be read keeps no server from registering
		if err := elemental.Register(bounded(t), config(a, s), false); err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(a.requests, "POST"); i < 0 || strings.Contains(a.bodies[i], "system-uuid") {
			t.Errorf("requests %q with bodies %q, want a POST without the UUID", a.requests, a.bodies)
		}
	})
}

// E-10: a server that is down is tried once per reconciliation.
func TestRegistrationWaitsForTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("  reconciliation: 10s\n")
		a.fail = func(string, string, map[string]any) int { return 1 }
		r := start(t, register(a, s, false))
		pass(4*period + time.Second)
		if got := len(a.seen()); got != 5 {
			t.Errorf("%d requests in %v, want one per %v", got, 4*period, period)
		}
		if _, ended := r.ended(); ended {
			t.Fatal("the command has ended")
		}
		a.change(func() { a.fail = nil })
		pass(period)
		if err, ended := r.ended(); !ended || err != nil {
			t.Errorf("after the server is back: ended %v, error %v", ended, err)
		}
	})
}

// E-11: a name that another server has is drawn anew; other errors keep it.
func TestNameIsDrawnAgainOnConflict(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith(`,"agent":{"hostname":{"prefix":"m-"}}`)), newServer(t)
		s.seed("")
		var names []string
		statuses := []int{http.StatusInternalServerError, http.StatusConflict, 0}
		a.fail = func(method, _ string, body map[string]any) int {
			if method != http.MethodPost {
				return 0
			}
			names = append(names, body["name"].(string))
			return statuses[len(names)-1]
		}
		start(t, register(a, s, false))
		pass(2 * period)
		if len(names) != 3 || names[0] != names[1] || names[1] == names[2] {
			t.Fatalf("names = %q, want the third to differ alone", names)
		}
		for _, n := range names {
			if len(n) != len("m-")+36 || !strings.HasPrefix(n, "m-") {
				t.Errorf("name %q, want m- and a UUID", n)
			}
		}
	})
}

// A POST whose answer is lost, and an agent that is killed after its POST, double no host.
func TestKilledRegistrationDoublesNoHost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		a.fail = func(_, _ string, body map[string]any) int {
			if body["phase"] == "Registering" {
				return 1
			}
			return 0
		}
		// The agent is killed at its first request after the POST.
		ctx, cancel := context.WithCancel(t.Context())
		wrapped := config(a, s)
		wrapped.API = roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := a.RoundTrip(r)
			if r.Method == http.MethodPost {
				cancel()
				return nil, context.Canceled
			}
			return answer, err
		})
		if err := elemental.Register(ctx, wrapped, false); !errors.Is(err, context.Canceled) {
			t.Fatalf("Register() = %v, want that it was killed", err)
		}
		a.change(func() { a.fail = nil })
		if err := elemental.Register(bounded(t), config(a, s), false); err != nil {
			t.Fatal(err)
		}
		a.only()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// failing is a dummy some of whose methods fail.
type failing struct {
	*elemental.Dummy
	hostname, reset error
	osVersion       func(input string) (bool, error)
}

func (f *failing) InstallHostname(ctx context.Context, name string) error {
	if f.hostname != nil {
		return f.hostname
	}
	return f.Dummy.InstallHostname(ctx, name)
}

func (f *failing) TriggerReset(ctx context.Context) error {
	return errors.Join(f.reset, f.Dummy.TriggerReset(ctx))
}

func (f *failing) ReconcileOSVersion(ctx context.Context, input []byte) (bool, error) {
	reboot, err := f.Dummy.ReconcileOSVersion(ctx, input)
	if f.osVersion != nil {
		return f.osVersion(string(input))
	}
	return reboot, err
}

// E-12: a finalization that fails is reported and ends the command; the next one goes on with the
// same host.
func TestFinalizationThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		c := config(a, s)
		c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin {
			return &failing{Dummy: d, hostname: errors.New("hostnamectl: it ended with code 1: no bus")}
		})
		err := elemental.Register(bounded(t), c, true)
		if err == nil || !strings.Contains(err.Error(), "no bus") {
			t.Fatalf("Register() = %v, want the error of hostnamectl", err)
		}
		name, _ := a.only()
		want := condition{"False", "Error", "RegistrationFailed", "host name " + name + ": hostnamectl: it ended with code 1: no bus"}
		if got := a.condition("RegistrationReady"); got != want {
			t.Errorf("RegistrationReady = %+v, want %+v", got, want)
		}
		if err := elemental.Register(bounded(t), config(a, s), true); err != nil {
			t.Fatal(err)
		}
		if again, h := a.only(); again != name || h.labels["installed"] != "true" {
			t.Errorf("after the second run: host %s %+v, want %s installed", again, h, name)
		}
	})
}

// The name comes from the registration, which could hold anything: no shell and no path sees it.
func TestUnsafeHostNamesAreRefused(t *testing.T) {
	s := newServer(t)
	d := &elemental.Dummy{System: s.system.Host()}
	for _, name := range []string{"", "a; reboot", "$(id)", "../x", "-h", "a b", "a/b", "a\n"} {
		if err := d.InstallHostname(t.Context(), name); err == nil {
			t.Errorf("InstallHostname(%q) succeeded", name)
		}
	}
	if got := s.read("/etc/hostname"); got != "box\n" {
		t.Errorf("host name = %q, want the old one", got)
	}
}

// E-14: a cloud-config that is none is reported, and the corrected one is installed without a
// restart.
func TestInvalidCloudConfigIsCorrected(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		wrong := strings.Replace(registrationWith(`,"agent":{"reconciliation":5000000000}`), `{"users":[{"name":"ann"}]}`, `["users"]`, 1)
		a, s := newAPI(t, wrong), newServer(t)
		s.seed("")
		r := start(t, register(a, s, true))
		pass(time.Second)
		got := a.condition("InstallationReady")
		if got.Status != "False" || got.Severity != "Error" || got.Reason != "CloudConfigInstallationFailed" || !strings.HasPrefix(got.Message, "installing cloud config: cloud-init.yaml: json:") {
			t.Errorf("InstallationReady = %+v, want CloudConfigInstallationFailed", got)
		}
		if s.read(workDir+"/install.yaml") != "" {
			t.Error("install.yaml was written")
		}
		a.change(func() { a.registration = registrationWith("") })
		pass(5 * time.Second)
		if err, ended := r.ended(); !ended || err != nil || a.condition("InstallationReady").Status != "True" {
			t.Errorf("after the correction: ended %v, error %v, condition %+v", ended, err, a.condition("InstallationReady"))
		}
	})
}

// Instructions that are null are written as null.
func TestNullInstructions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, strings.Replace(registrationWith(`,"install":null`), `"cloudConfig":{"users":[{"name":"ann"}]},`, "", 1))
		s := registered(t, a)
		for name, want := range map[string]string{"install.yaml": "null\n", "cloud-init.yaml": "#cloud-config\nnull\n"} {
			if got := s.read(workDir + "/" + name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
	})
}

// E-15: what follows the installation happens once, and powerOff wins.
func TestPostInstall(t *testing.T) {
	for _, tt := range []struct {
		post                string
		reboots, powersOffs int
	}{
		{`{}`, 0, 0}, {`{"reboot":true}`, 1, 0}, {`{"powerOff":true}`, 0, 1}, {`{"powerOff":true,"reboot":true}`, 0, 1},
	} {
		inBubble(t, func(t *testing.T) {
			s := registered(t, newAPI(t, registrationWith(`,"agent":{"postInstall":`+tt.post+`}`)))
			if reboots, offs := s.counts(); reboots != tt.reboots || offs != tt.powersOffs {
				t.Errorf("postInstall %s: %d reboots, %d power-offs; want %d and %d", tt.post, reboots, offs, tt.reboots, tt.powersOffs)
			}
		})
	}
}

// A full disk is reported, and the installation goes on when there is room again.
func TestFullDiskIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		if err := elemental.Register(bounded(t), config(a, s), false); err != nil {
			t.Fatal(err)
		}
		s.store.full = true
		r := start(t, func(ctx context.Context) error { return elemental.Install(ctx, config(a, s)) })
		pass(period)
		if got := a.condition("InstallationReady"); got.Reason != "CloudConfigInstallationFailed" || !strings.Contains(got.Message, "no space left on device") {
			t.Errorf("InstallationReady = %+v, want the full disk", got)
		}
		s.store.mu.Lock()
		s.store.full = false
		s.store.mu.Unlock()
		pass(period)
		if err, ended := r.ended(); !ended || err != nil {
			t.Errorf("with room again: ended %v, error %v", ended, err)
		}
	})
}

// A clock that is off by minutes is refused by the server, and the agent's error says so.
func TestClockThatIsOffIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		c := config(a, s)
		c.Now = func() time.Time { return time.Now().Add(-5 * time.Minute) }
		c.API = roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := a.RoundTrip(r)
			if err == nil {
				answer.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
			}
			return answer, err
		})
		log := &lines{}
		c.Log = log.logger()
		start(t, func(ctx context.Context) error { return elemental.Register(ctx, c, false) })
		pass(period)
		if got := log.String(); !strings.Contains(got, "the clock of the server differs from that of this host by 5m0s") {
			t.Errorf("log = %s, want the difference of the clocks", got)
		}
		if got := log.String(); strings.Contains(got, "eyJ") || strings.Contains(got, "seed") {
			t.Errorf("log = %s, want no token in it", got)
		}
	})
}

// A name that is stored in the server's files survives a reset only until the reset is done.
func TestConfigurationRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              `registration.uri ""`,
		"registration: {uri: ftp://x/}": `registration.uri "ftp://x/": give the https URL`,
		"registration: {uri: 'https://x/'}\nagent: {workDir: a}":           `agent.workDir "a"`,
		"registration: {uri: 'https://x/'}\nagent: {reconciliation: soon}": `duration "soon"`,
		"registration: {url: 'https://x/'}":                                "field url not found",
	} {
		if _, err := elemental.ParseFile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseFile(%q) = %v, want %s", text, err, want)
		}
	}
	f, err := elemental.ParseFile([]byte("registration: {uri: 'https://x/', tokenDuration: -1}\nagent: {reconciliation: 2s}\n"))
	if err != nil || f.Agent.Reconciliation != elemental.Duration(2*time.Second) || f.Registration.TokenDuration != -1 || f.Agent.WorkDir != workDir {
		t.Errorf("ParseFile() = %+v, %v", f, err)
	}
	b, err := f.Marshal()
	if again, aerr := elemental.ParseFile(b); err != nil || aerr != nil || again != f {
		t.Errorf("ParseFile(Marshal()) = %+v, %v, %v, want %+v", again, err, aerr, f)
	}
	var api elemental.File
	if err := json.Unmarshal([]byte(`{"agent":{"reconciliation":10000000000},"registration":{"tokenDuration":-1}}`), &api); err != nil || api.Agent.Reconciliation != elemental.Duration(period) {
		t.Errorf("the API's form = %+v, %v", api, err)
	}
}

func TestUnknownPluginIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.put(elemental.DefaultConfigFile, "registration: {uri: '"+uri+"'}\nagent: {osPlugin: /opt/other.so}\n")
		err := elemental.Register(bounded(t), config(a, s), false)
		if err == nil || !strings.Contains(err.Error(), `agent.osPlugin "/opt/other.so" is not built in: use one of dummy`) {
			t.Errorf("Register() = %v, want the plugin refused", err)
		}
		if len(a.seen()) > 0 {
			t.Errorf("requests = %q, want none", a.seen())
		}
	})
}
