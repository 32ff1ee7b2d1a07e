// Package registration is the Elemental API, by which servers register as ElementalHosts, report
// what they do, and get the data that they bootstrap from. The paths, bodies, statuses and texts
// are those of the upstream API (v0.7.0), with its spelling; where upstream accepts what it
// should refuse, Compat chooses.
//
// Each request is of one host or one registration: the package keeps no state of its own, and
// no controller depends on it. Tokens reach neither logs nor errors.
//
// Two flows that a user tries first: a server registers by GET of the registration and POST of
// a host; then it reports by PATCH of the host, whose answer says what is expected of it.
package registration

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/gorilla/mux"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// Prefix is the beginning of the API's paths.
const Prefix = "/elemental/v1"

// Path returns the path of a registration.
func Path(namespace, name string) string {
	return Prefix + "/namespaces/" + namespace + "/registrations/" + name
}

// Compat makes the API accept what upstream's does.
type Compat struct {
	// Claims accepts tokens for another host or another registration, and hosts' tokens without
	// end: nothing but the signature and the times are checked.
	Claims bool
	// Labels sets the labels installed, bootstrapped and reset whatever the value of the
	// request's field is.
	Labels bool
}

// Config configures an API.
type Config struct {
	Client client.Client
	// Reader reads past the cache: Secrets, and hosts that the cache does not have yet.
	Reader client.Reader
	Wall   clock.PassiveClock // tokens and conditions are dated in real time
	Compat Compat
	// Enter, when set, is called before each request, and its result after it.
	Enter func() (leave func())
	Log   logr.Logger
}

// API answers the requests of agents. It is safe for concurrent use.
type API struct {
	Config
	hosts  *readafterwrite.Reader
	router *mux.Router
}

// New returns an API, or an error when a required field of c is nil.
func New(c Config) (*API, error) {
	if c.Client == nil || c.Reader == nil || c.Wall == nil {
		return nil, errors.New("registration: Config.Client, Config.Reader or Config.Wall is nil")
	}
	if c.Enter == nil {
		c.Enter = func() func() { return func() {} }
	}
	a := &API{Config: c, hosts: &readafterwrite.Reader{Cached: c.Client, Live: c.Reader, ReadMissesLive: true}}
	a.router = mux.NewRouter()
	// Upstream answers 404, not 405, to a method that a path does not have.
	a.router.MethodNotAllowedHandler = http.NotFoundHandler()
	for _, r := range routes {
		a.router.HandleFunc(Path("{namespace}", "{registration}")+r.path, func(w http.ResponseWriter, req *http.Request) {
			a.serve(w, req, r.serve)
		}).Methods(r.method)
	}
	return a, nil
}

// routes are the requests of the API. The router answers 404 to all others, and redirects a path
// that is not clean.
var routes = []struct {
	method, path string
	serve        func(*request) (answer, error)
}{
	{http.MethodGet, "", (*request).registration},
	{http.MethodPost, "/hosts", (*request).create},
	{http.MethodPatch, "/hosts/{host}", (*request).patch},
	{http.MethodDelete, "/hosts/{host}", (*request).remove},
	{http.MethodGet, "/hosts/{host}/bootstrap", (*request).bootstrap},
}

// Limits of a request. An agent's longest body has some kilobytes of labels.
const (
	maxBody      = 1 << 20
	bodyDeadline = 10 * time.Second
)

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// serve answers a request.
func (a *API) serve(w http.ResponseWriter, r *http.Request, do func(*request) (answer, error)) {
	defer a.Enter()()
	names := mux.Vars(r)
	req := &request{API: a, w: w, r: r, namespace: names["namespace"], name: names["registration"], host: names["host"]}
	out, err := do(req)
	if refused := new(refusal); errors.As(err, &refused) {
		out = answer{status: refused.status, text: refused.text}
	} else if err != nil {
		out = answer{status: http.StatusInternalServerError, text: http.StatusText(http.StatusInternalServerError)}
	}
	if err != nil {
		a.Log.V(1).Info("request refused", "method", r.Method, "namespace", req.namespace, "registration", req.name, "host", req.host, "status", out.status, "reason", err.Error())
	}
	out.write(w)
}

// context returns the context of the request.
func (r *request) context() context.Context { return r.r.Context() }
