package conformance_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// spoiler changes JSON documents at random places.
type spoiler struct {
	*rand.Rand
	rate float64 // share of the values that change
}

// spoil returns a document in which values have another type, are of another resource, or are
// missing.
func (s spoiler) spoil(v any) any {
	if s.Float64() < s.rate {
		return s.other(v)
	}
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) { // the same for a seed
			if s.Float64() < s.rate {
				delete(x, k)
			} else {
				x[k] = s.spoil(x[k])
			}
		}
	case []any:
		for i := range x {
			x[i] = s.spoil(x[i])
		}
	}
	return v
}

func (s spoiler) other(v any) any {
	all := []any{
		nil, true, -1, 1e300, "", "\x00", "%zz", "/redfish/v1/", "://", []any{}, map[string]any{}, []any{v, v}, []any{nil},
		map[string]any{"@odata.id": "/redfish/v1/Systems"}, map[string]any{"@odata.id": 7}, strings.Repeat("9", 400), "0000-00-00T00:00:00Z",
	}
	return all[s.IntN(len(all))]
}

// FuzzAnswers spoils the answers of an emulated BMC. Each check ends in a verdict, and none in a
// panic.
func FuzzAnswers(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed, uint8(10*seed))
	}
	r := rackfile.Default(1)
	r.Hosts[0].Profile = "dell-r640"
	l := racktest.Start(f, rack.Config{Rack: &r})
	conf := target(l)
	to, err := url.Parse(conf.URL)
	if err != nil {
		f.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.CAs()}, MaxIdleConnsPerHost: 8, DisableCompression: true}
	f.Cleanup(transport.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, seed uint64, percent uint8) {
		var requests atomic.Uint64
		forward := httputil.NewSingleHostReverseProxy(to)
		forward.Transport = transport
		forward.ModifyResponse = func(resp *http.Response) error {
			if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
				return nil // such as the event stream, which has no end
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			var v any
			n := requests.Add(1)
			if json.Unmarshal(body, &v) == nil {
				v = spoiler{rand.New(rand.NewPCG(seed, n)), float64(percent%50) / 1000}.spoil(v)
				if body, err = json.Marshal(v); err != nil {
					return err
				}
			}
			resp.Header.Del("Content-Length")
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return nil
		}
		forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		srv := httptest.NewServer(forward)
		defer srv.Close()
		c := conf
		c.URL, c.Patience, c.Timeout = srv.URL, 2*time.Second, 20*time.Second
		b, err := conformance.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		all := conformance.Checks()
		for i := range all {
			all[i].After = nil // each check meets the answers
		}
		results := b.Execute(t.Context(), all)
		if len(results) != len(all) {
			t.Fatalf("%d results of %d checks", len(results), len(all))
		}
		for _, res := range results {
			if res.Verdict == "" || strings.Contains(res.Reason, "panicked") {
				t.Errorf("%s: verdict %q, %s", res.ID, res.Verdict, res.Reason)
			}
		}
	})
}
