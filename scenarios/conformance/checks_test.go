package conformance_test

import (
	"cmp"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	labclock "github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/clientclock"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// bench is a lab of one host with what checks need beyond an address.
type bench struct {
	t    *testing.T
	lab  *racktest.Rack
	conf conformance.Config
}

// newBench starts a lab of a profile whose time jumps to the next deadline.
func newBench(t *testing.T, profile string, level conformance.Level) *bench {
	t.Helper()
	r := rackfile.Default(1)
	r.Hosts[0].Profile = cmp.Or(profile, "generic")
	return newBenchOf(t, r, nil, level)
}

// newBenchOf starts a lab of the first host of a rack file. The profiles are those of
// rack.Config.
func newBenchOf(t *testing.T, r rackfile.Lab, profiles fs.FS, level conformance.Level) *bench {
	t.Helper()
	c := labclock.NewJumping(time.Now().UTC().Truncate(time.Second))
	media := newMedia(t)
	l := racktest.Start(t, rack.Config{Rack: &r, Profiles: profiles, Clock: c, Events: racktest.NewBoots(t).Answer})
	b := &bench{t: t, lab: l, conf: target(l)}
	b.conf.Clock, b.conf.Level = clientclock.New(c), level
	if at, ok := l.First().IPMI(); ok {
		b.conf.IPMI = at.String()
	}
	b.conf.Media = media
	b.conf.Serial, b.conf.LoseData = l.First().Machine().Identity.Serial, true
	if level != conformance.ReadOnly {
		j, err := conformance.OpenJournal(filepath.Join(t.TempDir(), "restore.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		b.conf.Journal = j
	}
	return b
}

// run runs checks and returns their results by ID.
func (b *bench) run(names ...string) map[string]conformance.Result {
	b.t.Helper()
	all, _ := execute(b.t, b.conf, names...)
	return all
}

// media is a media server of a test.
type media struct {
	plain, secure *httptest.Server
	mu            sync.Mutex
	requests      map[string][]conformance.MediaRequest
	events        chan []byte
}

func newMedia(t *testing.T) *media {
	m := &media{requests: map[string][]conformance.MediaRequest{}, events: make(chan []byte, 100)}
	handler := http.HandlerFunc(m.serve)
	m.plain, m.secure = httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(m.plain.Close)
	t.Cleanup(m.secure.Close)
	return m
}

func (m *media) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body := make([]byte, 1<<16)
		n, _ := r.Body.Read(body)
		select {
		case m.events <- body[:n]:
		default:
		}
		return
	}
	m.mu.Lock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	m.requests[name] = append(m.requests[name], conformance.MediaRequest{Time: time.Now(), Method: r.Method, Range: r.Header.Get("Range"), UserAgent: r.UserAgent(), Bytes: 4096})
	m.mu.Unlock()
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("\x00", 64<<10)))
}

func (m *media) URL(scheme, name string) (string, error) {
	if scheme == "https" {
		return m.secure.URL + "/" + name, nil
	}
	return m.plain.URL + "/" + name, nil
}

func (m *media) Requests(name string) []conformance.MediaRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[name]
}

func (m *media) Events(context.Context) (string, <-chan []byte, error) {
	return m.plain.URL + "/events", m.events, nil
}

// The generic emulator passes every check that reads.
func TestGenericEmulatorPassesReadOnlyChecks(t *testing.T) {
	b := newBench(t, "generic", conformance.ReadOnly)
	skipped := map[string]bool{
		"NET-008": true, // no IPv6
		"STO-002": true, // no RAID
		"LIC-001": true, // no licences
	}
	for id, r := range b.run() {
		if r.Level != conformance.ReadOnly || len(r.Needs) > 0 && r.Needs[0] != conformance.NeedsIPMI {
			continue
		}
		if want := conformance.Pass; r.Verdict != want && (!skipped[id] || r.Verdict != conformance.Skip) {
			t.Errorf("%s: %s %q, want %s", id, r.Verdict, r.Reason, want)
		}
		if len(r.Quirks) > 0 {
			t.Errorf("%s: quirks %v, want none", id, r.Quirks)
		}
	}
}
