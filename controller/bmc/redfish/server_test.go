package redfish_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
)

// server is a small Redfish service that follows DSP0266: accounts, ETags,
// preconditions, methods, messages. Tests replace its routes to deviate like real
// services.
type server struct {
	t *testing.T
	*httptest.Server
	clock *bmctest.Clock

	mu         sync.Mutex
	password   string
	power      string
	enabled    string // BootSourceOverride…
	target     string
	mode       string
	httpURI    string
	secureBoot bool
	image      string
	lit        bool
	entries    []map[string]any
	listeners  []map[string]any // event destinations
	listened   int              // number of listeners so far
	logged     int
	sessions   map[string]bool
	routes     map[string]http.HandlerFunc // by method and path
	seen       []string                    // method and path of each request
	bodies     []string                    // body of each request that had one
	stall      chan struct{}
	arrived    chan struct{}

	// Options of the service; set before the first request.
	slow       bool   // power changes at settle
	sessionsOf bool   // takes sessions but not Basic
	weak       bool   // ETags are weak
	noTags     bool   // there are no ETags
	mediaAt    string // parent of virtual media: Systems/1 or Managers/1
	noActions  bool   // virtual media is changed with PATCH
	async      bool   // virtual media answers 202
	pending    int    // polls until a task ends
	led        bool   // the light is an IndicatorLED
	logAt      string // parent of the logs: Systems/1 or Managers/1
	oldSensors bool   // sensors are in Thermal and Power
	bare       bool   // has no light, logs, sensors and subscriptions
	paged      bool   // collections come in pages: an empty one, then one per member
	system     map[string]any
	resets     []string
}

const systemPath = "/redfish/v1/Systems/1"

func newServer(t *testing.T, build ...func(*server)) *server {
	s := &server{
		t:        t,
		clock:    &bmctest.Clock{},
		password: "s3cret-Pa55",
		power:    "Off",
		enabled:  "Disabled",
		target:   "None",
		mode:     "UEFI",
		sessions: map[string]bool{},
		mediaAt:  "Systems/1",
		logAt:    "Systems/1",
		resets:   []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart"},
		system:   map[string]any{},
	}
	for _, b := range build {
		b(s)
	}
	s.routes = s.standard()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // drops the errors of handshakes that tests break
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// config returns the Config for the address scheme://host:port/path.
func (s *server) config(path string) bmc.Config {
	s.t.Helper()
	address, err := bmc.ParseAddress(strings.Replace(s.URL, "https:", "redfish:", 1) + path)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return bmc.Config{
		Address:     address,
		Credentials: bmc.Credentials{Username: "admin", Password: s.password},
		RootCAs:     roots,
		Clock:       s.clock,
	}
}

// open connects and forgets the requests of that.
func (s *server) open() bmc.Client {
	s.t.Helper()
	c, err := redfish.Open(s.t.Context(), s.config(systemPath))
	if err != nil {
		s.t.Fatalf("Open() error = %v", err)
	}
	s.t.Cleanup(c.Close)
	s.forget()
	return c
}

func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.bodies = nil, nil
}

// requests returns the requests since the last forget.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *server) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// count returns the number of requests with this method and path since the last
// forget.
func (s *server) count(request string) int {
	n := 0
	for _, r := range s.requests() {
		if r == request {
			n++
		}
	}
	return n
}

// route replaces the handler of a method and path; nil removes it. The handler
// runs with mu held.
func (s *server) route(request string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[request] = h
	if h == nil {
		delete(s.routes, request)
	}
}

// wrap puts a handler in front of that of a method and path.
func (s *server) wrap(request string, h func(next http.HandlerFunc) http.HandlerFunc) {
	s.mu.Lock()
	next := s.routes[request]
	s.mu.Unlock()
	s.route(request, h(next))
}

func (s *server) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.power {
	case "PoweringOn":
		s.power = "On"
	case "PoweringOff":
		s.power = "Off"
	}
}

func (s *server) stalled() (<-chan struct{}, func()) {
	stall, arrived := make(chan struct{}), make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall, s.arrived = stall, arrived
	return arrived, sync.OnceFunc(func() {
		s.mu.Lock()
		s.stall = nil
		s.mu.Unlock()
		close(stall)
	})
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	if len(body) > 0 {
		s.bodies = append(s.bodies, string(body))
	}
	if stall, arrived := s.stall, s.arrived; stall != nil {
		s.mu.Unlock()
		select {
		case arrived <- struct{}{}:
		default:
		}
		select {
		case <-stall:
		case <-r.Context().Done():
			s.mu.Lock() // for the deferred unlock
			panic(http.ErrAbortHandler)
		}
		s.mu.Lock()
	}
	w.Header().Set("OData-Version", "4.0")
	w.Header().Set("Cache-Control", "no-cache")
	if !s.allowed(w, r) {
		return
	}
	if h := s.routes[r.Method+" "+r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	var allow []string
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST"} {
		if s.routes[method+" "+r.URL.Path] != nil {
			allow = append(allow, method)
		}
	}
	if allow != nil {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		fail(w, http.StatusMethodNotAllowed, "OperationNotAllowed", "The HTTP method is not allowed on this resource.")
		return
	}
	fail(w, http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+r.URL.Path+" was not found.", r.URL.Path)
}

// allowed authenticates a request (DSP0266 §13.3).
func (s *server) allowed(w http.ResponseWriter, r *http.Request) bool {
	open := r.URL.Path == "/redfish/v1/" || r.URL.Path == "/redfish/v1" ||
		r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/Sessions")
	user, password, basic := r.BasicAuth()
	switch {
	case open && r.Header.Get("Authorization") == "" && r.Header.Get("X-Auth-Token") == "":
		return true
	case s.sessions[r.Header.Get("X-Auth-Token")]:
		return true
	case basic && !s.sessionsOf && user == "admin" && password == s.password:
		return true
	}
	if !s.sessionsOf {
		w.Header().Set("WWW-Authenticate", `Basic realm="Redfish"`)
	}
	fail(w, http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
	return false
}

// fail writes an error (DSP0266 §8.6).
func fail(w http.ResponseWriter, status int, id, text string, args ...string) {
	reply(w, status, map[string]any{"error": map[string]any{
		"code":    "Base.1.18.GeneralError",
		"message": "A general error has occurred. See ExtendedInfo for more information.",
		"@Message.ExtendedInfo": []any{map[string]any{
			"@odata.type": "#Message.v1_2_0.Message", "MessageId": "Base.1.18." + id, "Message": text,
			"MessageArgs": args, "MessageSeverity": "Critical",
		}},
	}})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // to a client that may have gone
}

// tag returns the current ETag of a resource.
func (s *server) tag(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:4]) + `"`
	if s.weak {
		return "W/" + tag
	}
	return tag
}

// show returns a handler for GET of a resource.
func (s *server) show(v func() map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.noTags {
			w.Header().Set("ETag", s.tag(v()))
		}
		body := v()
		if s.paged {
			s.page(body, r)
		}
		reply(w, http.StatusOK, body)
	}
}

// page leaves one member in a collection, and none on its first page. Members that
// a client needs are on later pages, whichever they are.
func (s *server) page(body map[string]any, r *http.Request) {
	raw, err := json.Marshal(body["Members"])
	if err != nil {
		s.t.Error(err)
	}
	var members []any
	if json.Unmarshal(raw, &members) != nil || len(members) == 0 {
		return
	}
	at := 0
	if skip := r.URL.Query().Get("$skip"); skip == "" {
		body["Members"] = []any{}
	} else if at, err = strconv.Atoi(skip); err != nil || at >= len(members) {
		s.t.Errorf("GET %s: no nextLink leads there", r.URL)
		return
	} else {
		body["Members"] = members[at : at+1]
		at++
	}
	if at < len(members) {
		body["Members@odata.nextLink"] = fmt.Sprintf("%s?$skip=%d", r.URL.Path, at)
	}
}

// change returns a handler for PATCH of a resource. write returns a message and
// its arguments if it refuses the body, else nil.
func (s *server) change(v func() map[string]any, write func(body map[string]any) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if match := r.Header.Get("If-Match"); match != "" && match != "*" && match != s.tag(v()) {
			fail(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
			return
		}
		body, ok := object(w, r)
		if !ok {
			return
		}
		if refused := write(body); refused != nil {
			fail(w, http.StatusBadRequest, refused[0], refused[0]+" "+strings.Join(refused[1:], " "), refused[1:]...)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// object decodes the body, which must be a JSON object.
func object(w http.ResponseWriter, r *http.Request) (map[string]any, bool) {
	var body map[string]any
	if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&body) != nil || body == nil {
		fail(w, http.StatusBadRequest, "MalformedJSON", "The request body submitted was malformed JSON.")
		return nil, false
	}
	return body, true
}

func linkTo(path string) map[string]any { return map[string]any{"@odata.id": path} }

func collection(path string, members ...string) func() map[string]any {
	return func() map[string]any {
		links := []any{}
		for _, m := range members {
			links = append(links, linkTo(path+"/"+m))
		}
		return map[string]any{"@odata.id": path, "Members": links, "Members@odata.count": len(links)}
	}
}

func (s *server) standard() map[string]http.HandlerFunc {
	media := "/redfish/v1/" + s.mediaAt + "/VirtualMedia"
	routes := map[string]http.HandlerFunc{
		"GET /redfish/v1": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/redfish/v1/", http.StatusPermanentRedirect)
		},
		"GET /redfish/v1/": s.show(func() map[string]any {
			return map[string]any{
				"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot",
				"Systems": linkTo("/redfish/v1/Systems"), "Managers": linkTo("/redfish/v1/Managers"),
				"Links":        map[string]any{"Sessions": linkTo("/redfish/v1/SessionService/Sessions")},
				"EventService": linkTo("/redfish/v1/EventService"),
			}
		}),
		"POST /redfish/v1/SessionService/Sessions": s.login,
		"GET /redfish/v1/Systems":                  s.show(collection("/redfish/v1/Systems", "1")),
		"GET /redfish/v1/Managers":                 s.show(collection("/redfish/v1/Managers", "1")),
		"GET /redfish/v1/Managers/1": s.show(func() map[string]any {
			m := map[string]any{"@odata.id": "/redfish/v1/Managers/1", "@odata.type": "#Manager.v1_19_0.Manager"}
			if s.mediaAt == "Managers/1" {
				m["VirtualMedia"] = linkTo("/redfish/v1/Managers/1/VirtualMedia")
			}
			if s.logAt == "Managers/1" && !s.bare {
				m["LogServices"] = linkTo("/redfish/v1/Managers/1/LogServices")
			}
			return m
		}),
		"GET " + systemPath:   s.show(s.computerSystem),
		"PATCH " + systemPath: s.change(s.computerSystem, s.setSystem),
		"POST " + systemPath + "/Actions/ComputerSystem.Reset": s.reset,
		"GET " + systemPath + "/SecureBoot":                    s.show(s.secureBootResource),
		"PATCH " + systemPath + "/SecureBoot": s.change(s.secureBootResource, func(body map[string]any) []string {
			s.secureBoot = body["SecureBootEnable"].(bool)
			return nil
		}),
	}
	s.mediaRoutes(routes, media)
	s.watchRoutes(routes)
	s.eventRoutes(routes)
	return routes
}

func (s *server) login(w http.ResponseWriter, r *http.Request) {
	body, ok := object(w, r)
	if !ok {
		return
	}
	if body["UserName"] != "admin" || body["Password"] != s.password {
		fail(w, http.StatusUnauthorized, "ResourceAtUriUnauthorized", "While accessing the resource the service received an authorization error.")
		return
	}
	token := fmt.Sprintf("token-%d", len(s.sessions)+1)
	path := "/redfish/v1/SessionService/Sessions/" + token
	s.sessions[token] = true
	s.routes["DELETE "+path] = func(w http.ResponseWriter, _ *http.Request) {
		s.sessions[token] = false
		w.WriteHeader(http.StatusNoContent)
	}
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", s.URL+path) // absolute, as some send it
	reply(w, http.StatusCreated, linkTo(path))
}

func (s *server) computerSystem() map[string]any {
	m := map[string]any{
		"@odata.id": systemPath, "@odata.type": "#ComputerSystem.v1_22_0.ComputerSystem", "Id": "1",
		"UUID": "11111111-2222-3333-4444-555555555555", "Manufacturer": "Contoso", "Model": "3500", "SerialNumber": "ABC123",
		"SKU": "TAG7", "BiosVersion": "1.2.3", "PowerState": s.power,
		"Status":     map[string]any{"State": "Enabled", "Health": "OK"},
		"SecureBoot": linkTo(systemPath + "/SecureBoot"),
		"Links":      map[string]any{"ManagedBy": []any{linkTo("/redfish/v1/Managers/1")}},
		"Boot":       s.bootProperty(),
		"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{
			"target":                            systemPath + "/Actions/ComputerSystem.Reset",
			"ResetType@Redfish.AllowableValues": s.resets,
		}},
	}
	if s.mediaAt == "Systems/1" {
		m["VirtualMedia"] = linkTo(systemPath + "/VirtualMedia")
	}
	s.watched(m)
	for k, v := range s.system {
		m[k] = v
		if v == nil {
			delete(m, k)
		}
	}
	return m
}

func (s *server) secureBootResource() map[string]any {
	return map[string]any{"@odata.id": systemPath + "/SecureBoot", "SecureBootEnable": s.secureBoot}
}

func (s *server) override() bmc.Boot {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := bmc.Boot{Persistent: s.enabled == "Continuous"}
	if s.enabled != "Disabled" {
		b.Device = map[string]bmc.Device{"Cd": bmc.BootCD, "Pxe": bmc.BootPXE, "Hdd": bmc.BootDisk, "UefiHttp": bmc.BootHTTP}[s.target]
	}
	return b
}
