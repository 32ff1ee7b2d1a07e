package conformance_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// crowd forwards requests to a BMC. Of those for resources below the system it counts how many
// it has at once.
type crowd struct {
	next  http.Handler
	meet  bool // the first waits for another
	busy  bool // answers 503 when it has one
	mu    sync.Mutex
	now   int
	most  int
	other chan struct{} // closed when it has two
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Count(r.URL.Path, "/") < 5 {
		c.next.ServeHTTP(w, r)
		return
	}
	c.mu.Lock()
	c.now++
	if c.now > 1 && c.most < 2 {
		close(c.other)
	}
	c.most = max(c.most, c.now)
	refused := c.busy && c.now > 1
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.now--; c.mu.Unlock() }()
	if refused {
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	}
	if c.meet {
		select {
		case <-c.other:
		case <-r.Context().Done():
			return
		}
	}
	c.next.ServeHTTP(w, r)
}

// A walk reads in parallel when NET-005 has shown that the BMC takes that, and goes on serially
// when the BMC is too busy all the same: that is no broken link.
func TestWalkIsParallelWhereTheBMCTakesIt(t *testing.T) {
	for _, tt := range []struct {
		name       string
		checks     []string
		meet, busy bool
	}{
		{"shown", []string{"NET-005", "SYS-001", "ROOT-008"}, true, false},
		{"not shown", []string{"SYS-001", "ROOT-008"}, false, false},
		{"shown, but too busy", []string{"NET-005", "SYS-001", "ROOT-008"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := racktest.Start(t, rack.Config{})
			conf := target(l)
			to, err := url.Parse(conf.URL)
			if err != nil {
				t.Fatal(err)
			}
			forward := httputil.NewSingleHostReverseProxy(to)
			forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.CAs()}}
			c := &crowd{next: forward, meet: tt.meet, busy: tt.busy, other: make(chan struct{})}
			srv := httptest.NewServer(c)
			defer srv.Close()
			conf.URL = srv.URL
			results, b := execute(t, conf, tt.checks...)
			for id, res := range results {
				if res.Verdict != conformance.Pass {
					t.Errorf("%s: %s %q, want pass", id, res.Verdict, res.Reason)
				}
			}
			if parallel := c.most > 1; parallel != tt.meet {
				t.Errorf("at most %d requests at once, want more than one: %v", c.most, tt.meet)
			}
			refused := 0
			for _, x := range b.Exchanges() {
				if x.Status == http.StatusServiceUnavailable {
					refused++
				}
			}
			if tt.busy != (refused > 0) || refused > 8 {
				t.Errorf("%d requests were refused, want some: %v, and at most one of each reader", refused, tt.busy)
			}
		})
	}
}
