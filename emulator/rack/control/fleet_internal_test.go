package control

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A lab in several processes has every path of the API: a new one must be gathered from all
// shards, or be of a host.
func TestFleetHasEveryPathOfTheAPI(t *testing.T) {
	paths := []string{"GET /v1/journal/follow", "POST /v1/power", "POST /v1/snapshot", "GET /metrics", "PUT /v1/hosts/{host}/files"}
	for _, r := range routes {
		paths = append(paths, r.pattern)
	}
	mux := FleetHandler(FleetConfig{Shards: func() []Shard { return nil }}).(*http.ServeMux)
	for _, p := range paths {
		method, path, _ := strings.Cut(p, " ")
		if _, pattern := mux.Handler(httptest.NewRequest(method, strings.NewReplacer("{", "", "}", "").Replace(path), nil)); pattern == "" {
			t.Errorf("%s is not answered", p)
		}
	}
}
