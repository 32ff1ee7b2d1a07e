package manager

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// apiWrites counts the writes to the Kubernetes API by object. client-go's own metrics have
// no object.
type apiWrites struct{ count *prometheus.CounterVec }

func newAPIWrites() *apiWrites {
	return &apiWrites{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "metalab_controller_api_writes_total", Help: "Writes to the Kubernetes API; code 0 is no answer.",
	}, []string{"verb", "resource", "subresource", "code"})}
}

// wrap has the signature of rest.Config.Wrap's argument.
func (a *apiWrites) wrap(next http.RoundTripper) http.RoundTripper {
	return writeCounter{next: next, count: a.count}
}

type writeCounter struct {
	next  http.RoundTripper
	count *prometheus.CounterVec
}

// RoundTrip implements http.RoundTripper.
func (t writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return resp, err
	}
	code := "0"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	resource, sub := resourceOf(r.URL.Path)
	t.count.WithLabelValues(r.Method, resource, sub, code).Inc()
	return resp, err
}

// resourceOf returns the resource that a path of the API is of, as in RBAC, and the
// subresource: /apis/GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]].
func resourceOf(path string) (resource, sub string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return "other", ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		sub = parts[2]
	}
	return parts[0] + group, sub
}
