package elemental_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

const (
	uri    = "https://lab.example/elemental/v1/namespaces/default/registrations/reg"
	period = 10 * time.Second
)

// hostObject is an ElementalHost of the fake API.
type hostObject struct {
	create     map[string]any
	pub        ed25519.PublicKey
	labels     map[string]string
	phase      string
	conditions map[string]condition
	deleting   bool
	// A controller would set these.
	bootstrapReady bool
	osVersion      string // JSON
}

type condition struct{ Status, Severity, Reason, Message string }

// api is the registration API: strict with tokens, and a record of all requests.
type api struct {
	t testing.TB

	mu           sync.Mutex
	registration string            // JSON
	bootstrap    map[string]string // format and config
	hosts        map[string]*hostObject
	requests     []string // "PATCH phase Running"
	bodies       []string
	headers      []http.Header
	now          func() time.Time
	// fail, if set, answers a request in place of the API when it returns a status. 1 is a
	// connection that breaks.
	fail func(method, path string, body map[string]any) int
}

func newAPI(t testing.TB, registration string) *api {
	return &api{t: t, registration: registration, hosts: map[string]*hostObject{}, now: time.Now, bootstrap: map[string]string{"format": "cloud-config", "config": "#cloud-config\n{}\n"}}
}

// registrationWith returns a registration whose elemental section has these keys, in JSON.
func registrationWith(elemental string) string {
	if !strings.Contains(elemental, `"agent":`) {
		elemental += `,"agent":{}`
	}
	elemental = strings.Replace(elemental, `"agent":{`, `"agent":{"osPlugin":"dummy",`, 1)
	elemental = strings.Replace(elemental, `,}`, `}`, 1)
	return fmt.Sprintf(`{"hostLabels":{"rack":"a"},"hostAnnotations":{"note":"x"},"config":{"cloudConfig":{"users":[{"name":"ann"}]},"elemental":{"registration":{"uri":%q,"token":"new"}%s}}}`, uri, elemental)
}

// RoundTrip implements http.RoundTripper without a network.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if broken := a.serve(w, r); broken {
		return nil, errors.New("connection refused")
	}
	return w.Result(), nil
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) (broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var raw []byte
	if r.Body != nil {
		raw, _ = io.ReadAll(r.Body)
	}
	var body map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &body); err != nil {
			a.t.Errorf("%s %s: body %s: %v", r.Method, r.URL, raw, err)
		}
	}
	path := strings.TrimPrefix(r.URL.String(), uri)
	a.requests = append(a.requests, summary(r.Method, path, body))
	a.bodies, a.headers = append(a.bodies, string(raw)), append(a.headers, r.Header.Clone())
	if a.fail != nil {
		switch status := a.fail(r.Method, path, body); status {
		case 0:
		case 1:
			return true
		default:
			http.Error(w, "refused by the test", status)
			return false
		}
	}
	status, out := a.answer(r, path, body)
	if status >= 400 {
		http.Error(w, fmt.Sprint(out), status)
		return false
	}
	w.WriteHeader(status)
	if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	}
	return false
}

// summary names a request as a person would.
func summary(method, path string, body map[string]any) string {
	out := method
	if _, last, ok := strings.Cut(path, "/hosts/"); ok && strings.Contains(last, "/") {
		out += " bootstrap"
	} else if path == "" {
		out += " registration"
	}
	for _, k := range []string{"phase", "installed", "bootstrapped", "reset", "inPlaceUpdate"} {
		if v, ok := body[k]; ok {
			out += fmt.Sprintf(" %s=%v", k, v)
		}
	}
	if c, ok := body["condition"].(map[string]any); ok {
		out += fmt.Sprintf(" %v=%v", c["type"], c["status"])
		if c["reason"] != nil {
			out += fmt.Sprintf("/%v", c["reason"])
		}
	}
	return out
}

func (a *api) answer(r *http.Request, path string, body map[string]any) (int, any) {
	if path == "" || path == "/hosts" {
		if r.Header.Get("Registration-Authorization") != "Bearer seed" && r.Header.Get("Registration-Authorization") != "Bearer new" {
			return http.StatusUnauthorized, "no registration token"
		}
	}
	switch {
	case r.Method == http.MethodGet && path == "":
		return http.StatusOK, json.RawMessage(a.registration)
	case r.Method == http.MethodPost && path == "/hosts":
		name, _ := body["name"].(string)
		block, _ := pem.Decode([]byte(fmt.Sprint(body["pubKey"])))
		if block == nil {
			return http.StatusBadRequest, "no pubKey"
		}
		pub, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return http.StatusBadRequest, err
		}
		if err := a.check(r, name, pub); err != nil {
			return http.StatusForbidden, err
		}
		if a.hosts[name] != nil {
			return http.StatusConflict, "Host '" + name + "' already exists"
		}
		a.hosts[name] = &hostObject{create: body, pub: pub.(ed25519.PublicKey), labels: map[string]string{}, conditions: map[string]condition{}}
		return http.StatusCreated, nil
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "/hosts/"), "/")
	h := a.hosts[name]
	if h == nil {
		return http.StatusNotFound, "Host not found"
	}
	if err := a.check(r, name, h.pub); err != nil {
		return http.StatusForbidden, err
	}
	switch {
	case r.Method == http.MethodGet && rest == "bootstrap":
		return http.StatusOK, a.bootstrap
	case r.Method == http.MethodDelete:
		h.deleting, h.labels["needs-reset"] = true, "true"
		return http.StatusAccepted, nil
	case r.Method != http.MethodPatch:
		return http.StatusNotFound, "404 page not found"
	}
	for k, label := range map[string]string{"installed": "installed", "bootstrapped": "bootstrapped", "reset": "reset"} {
		if body[k] == true {
			h.labels[label] = "true"
		}
	}
	if v, ok := body["inPlaceUpdate"].(string); ok {
		h.labels["in-place-update"] = v
	}
	if v, ok := body["phase"].(string); ok {
		h.phase = v
	}
	if c, ok := body["condition"].(map[string]any); ok {
		text := func(k string) string { s, _ := c[k].(string); return s }
		h.conditions[text("type")] = condition{text("status"), text("severity"), text("reason"), text("message")}
	}
	if h.deleting && h.labels["reset"] == "true" {
		delete(a.hosts, name)
	}
	out := map[string]any{"name": name, "bootstrapReady": h.bootstrapReady, "extra": "ignored"}
	for k, label := range map[string]string{"installed": "installed", "bootstrapped": "bootstrapped", "needsReset": "needs-reset"} {
		out[k] = h.labels[label] == "true"
	}
	out["inPlaceUpgrade"] = h.labels["in-place-update"]
	if h.osVersion != "" {
		out["osVersionManagement"] = json.RawMessage(h.osVersion)
	}
	return http.StatusOK, out
}

// check checks a token as the strict server does.
func (a *api) check(r *http.Request, name string, pub any) error {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return errors.New("no token")
	}
	_, err := jwt.Parse(text, func(*jwt.Token) (any, error) { return pub, nil },
		jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithSubject(name), jwt.WithAudience(uri), jwt.WithExpirationRequired(), jwt.WithTimeFunc(a.now))
	return err
}

// change changes the fake API.
func (a *api) change(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// only returns the one host that there is.
func (a *api) only() (string, *hostObject) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hosts) != 1 {
		a.t.Fatalf("the API has %d hosts, want one", len(a.hosts))
	}
	for name, h := range a.hosts {
		return name, h
	}
	return "", nil
}

func (a *api) condition(kind string) condition {
	_, h := a.only()
	a.mu.Lock()
	defer a.mu.Unlock()
	return h.conditions[kind]
}

func (a *api) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// forget drops the record of requests.
func (a *api) forget() {
	a.change(func() { a.requests, a.bodies, a.headers = nil, nil, nil })
}

// memory is the store of a server's files.
type memory struct {
	mu   sync.Mutex
	b    []byte
	full bool
}

// Load implements sandbox.Store.
func (m *memory) Load() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b, nil
}

// Save implements sandbox.Store.
func (m *memory) Save(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("no space left on device")
	}
	m.b = b
	return nil
}

// server is a server with a disk, whose systems boot one after the other.
type server struct {
	t     testing.TB
	store memory

	mu                sync.Mutex
	boots             int
	reboots, powerOff int
	system            *sandbox.System
}

func newServer(t testing.TB) *server {
	s := &server{t: t}
	s.boot()
	s.put("/etc/hostname", "box\n")
	return s
}

// boot starts the next system.
func (s *server) boot() {
	s.boots++
	s.system = sandbox.New(sandbox.Config{
		Base: sandbox.Tree{}, Store: &s.store, Now: time.Now, Boot: sys.Boot{ID: fmt.Sprint("boot-", s.boots)},
		Reboot:   func() { s.mu.Lock(); s.reboots++; s.mu.Unlock() },
		PowerOff: func() { s.mu.Lock(); s.powerOff++; s.mu.Unlock() },
	})
}

// counts returns the reboots and the power-offs that were asked for.
func (s *server) counts() (reboots, powerOffs int) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reboots, s.powerOff
}

func (s *server) put(name, text string) {
	s.t.Helper()
	if err := s.system.Host().Put(sys.File{Name: name, Mode: 0o644, Content: []byte(text)}); err != nil {
		s.t.Fatal(err)
	}
}

// read returns a file; "" if there is none.
func (s *server) read(name string) string {
	b, err := s.system.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func (s *server) mode(name string) string {
	n, err := s.system.Stat(name)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%04o", n.Mode.Perm())
}

const workDir = elemental.DefaultWorkDir

// seed writes the configuration file of a server that has booted the seed.
func (s *server) seed(agent string) {
	s.put(elemental.DefaultConfigFile, "registration:\n  uri: "+uri+"\n  token: seed\nagent:\n  osPlugin: /usr/lib/elemental/plugins/dummy.so\n"+agent)
}

// dummy are the plugins of a test: the dummy, wrapped.
func dummy(wrap func(*elemental.Dummy) elemental.Plugin) elemental.Makers {
	return elemental.Makers{elemental.DummyPlugin: func(s elemental.System) elemental.Plugin {
		d := &elemental.Dummy{System: s}
		if wrap == nil {
			return d
		}
		return wrap(d)
	}}
}

// config returns the configuration of a command on the server.
func config(a *api, s *server) elemental.Config {
	var log bytes.Buffer
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the agent's log:\n%s", log.String())
		}
	})
	return elemental.Config{System: s.system.Host(), Plugins: dummy(nil), Version: "v1.2.3", API: a, Log: slog.New(slog.NewTextHandler(&log, nil))}
}

// started is a command that runs.
type started struct {
	cancel context.CancelFunc
	done   chan error
}

// start starts a command. It is stopped when the test ends.
func start(t testing.TB, do func(ctx context.Context) error) *started {
	ctx, cancel := context.WithCancel(context.Background())
	r := &started{cancel, make(chan error, 1)}
	go func() { r.done <- do(ctx) }()
	t.Cleanup(cancel)
	return r
}

// kill ends a command as a signal does.
func (r *started) kill() error {
	r.cancel()
	return <-r.done
}

// ended returns the result of a command that has ended; ok is false while it runs.
func (r *started) ended() (err error, ok bool) { //nolint:revive // the error is the result
	synctest.Wait()
	select {
	case err := <-r.done:
		r.done <- err
		return err, true
	default:
		return nil, false
	}
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of the bubble
	synctest.Wait()
}

// inBubble runs a test in fake time.
func inBubble(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, do)
}

// registered returns a server that has registered and is installed, with an empty record.
func registered(t *testing.T, a *api) *server {
	t.Helper()
	s := newServer(t)
	s.seed("")
	if err := elemental.Register(bounded(t), config(a, s), true); err != nil {
		t.Fatal(err)
	}
	a.forget()
	return s
}

// bounded returns a context of an hour of the bubble's time: a command that should have ended
// fails its test then.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}
