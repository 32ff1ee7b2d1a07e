package lcm

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

const (
	machinePath = "/apis/lcm.mirantis.com/v1alpha1/namespaces/default/lcmmachines/worker-0"
	secretsPath = "/api/v1/namespaces/default/secrets/"
)

// fakeAPI is a Kubernetes API with one LCMMachine and Secrets.
type fakeAPI struct {
	mu       sync.Mutex
	token    string // that it takes
	next     string // that it takes, too; "" is none
	object   map[string]any
	secrets  map[string]map[string][]byte
	version  int // resourceVersion of the Secrets and the object
	watchers map[chan struct{}]bool
	requests []string // METHOD PATH
	bodies   []string // bodies of patches
	// refuse, if set, answers a request with a status.
	refuse func(r *http.Request) int
}

func newAPI() *fakeAPI {
	return &fakeAPI{token: "t", secrets: map[string]map[string][]byte{}, watchers: map[chan struct{}]bool{}, version: 10}
}

// change changes the object as a controller does; nil fields are deleted.
func (f *fakeAPI) change(do func(m *lcmv1.LCMMachine)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.parse()
	do(m)
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	f.object = nil
	if err := json.Unmarshal(b, &f.object); err != nil {
		panic(err)
	}
	f.changed()
}

func (f *fakeAPI) parse() *lcmv1.LCMMachine {
	m := &lcmv1.LCMMachine{}
	b, err := json.Marshal(f.object)
	if err == nil {
		err = json.Unmarshal(b, m)
	}
	if err != nil {
		panic(err)
	}
	return m
}

func (f *fakeAPI) machine() *lcmv1.LCMMachine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parse()
}

func (f *fakeAPI) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.object = nil
	f.changed()
}

func (f *fakeAPI) changed() {
	f.version++
	if f.object != nil {
		meta, _ := f.object["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			f.object["metadata"] = meta
		}
		meta["resourceVersion"] = fmt.Sprint(f.version)
	}
	for w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// count returns how many requests begin with a text.
func (f *fakeAPI) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func (f *fakeAPI) status(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "code": code, "message": "the fake refuses"})
}

// ServeHTTP implements http.Handler.
func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	if r.Method == http.MethodPatch {
		f.bodies = append(f.bodies, string(body))
	}
	code := 0
	if f.refuse != nil {
		code = f.refuse(r)
	}
	if token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); token == "" || token != f.token && token != f.next {
		code = http.StatusUnauthorized
	}
	if code != 0 {
		f.mu.Unlock()
		f.status(w, code)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		f.mu.Unlock()
		f.watch(w, r)
		return
	}
	defer f.mu.Unlock()
	name, isSecret := strings.CutPrefix(r.URL.Path, secretsPath)
	switch {
	case isSecret && f.secrets[name] != nil:
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": fmt.Sprint(f.version)}, "data": f.secrets[name]})
		return
	case isSecret:
		f.status(w, http.StatusNotFound)
		return
	case r.Method == http.MethodPost && r.URL.Path+"/worker-0" == machinePath && f.object == nil:
		if err := json.Unmarshal(body, &f.object); err != nil {
			panic(err)
		}
		f.changed()
	case !strings.HasPrefix(r.URL.Path, machinePath) || f.object == nil:
		f.status(w, http.StatusNotFound)
		return
	case r.Method == http.MethodPatch && r.URL.Path == machinePath+"/status" && r.Header.Get("Content-Type") == "application/merge-patch+json":
		var patch map[string]any
		if err := json.Unmarshal(body, &patch); err != nil {
			panic(err)
		}
		meta, _ := patch["metadata"].(map[string]any)
		if v := meta["resourceVersion"]; v != nil && v != f.object["metadata"].(map[string]any)["resourceVersion"] {
			f.status(w, http.StatusConflict)
			return
		}
		f.object["status"] = merge(f.object["status"], patch["status"])
		f.changed()
	case r.Method != http.MethodGet:
		f.status(w, http.StatusMethodNotAllowed)
		return
	}
	_ = json.NewEncoder(w).Encode(f.object)
}

// merge applies a merge patch (RFC 7386, §2).
func merge(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range p {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merge(out[name], value)
		}
	}
	return out
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	changed := make(chan struct{}, 1)
	f.mu.Lock()
	f.watchers[changed] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, changed)
	}()
	w.WriteHeader(http.StatusOK)
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{}}`+"\n")
		}
	}
}

// RoundTrip implements http.RoundTripper without a network, so that a virtual clock runs
// while a watch waits.
func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w.Result(), r.Context().Err()
	}
	in, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, begun: make(chan int, 1)}
	go func() {
		f.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	return &http.Response{StatusCode: <-w.begun, Header: w.header, Body: in, Request: r}, nil
}

type pipeWriter struct {
	header http.Header
	out    *io.PipeWriter
	begun  chan int
	once   sync.Once
}

func (w *pipeWriter) Header() http.Header         { return w.header }
func (w *pipeWriter) WriteHeader(code int)        { w.once.Do(func() { w.begun <- code }) }
func (w *pipeWriter) Write(p []byte) (int, error) { return w.out.Write(p) }
func (w *pipeWriter) Flush()                      {}

// statuses returns the results of items as text: exit code and attempt.
func (f *fakeAPI) statuses() map[string]string {
	out := map[string]string{}
	for name, s := range f.machine().Status.StateItemStatuses {
		out[name] = fmt.Sprintf("%d after %d", s.ExitCode, s.Attempt)
	}
	return out
}

// leaks fails the test if a request of the agent contains a text.
func (f *fakeAPI) leaks(t *testing.T, texts ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, body := range f.bodies {
		for _, text := range texts {
			if strings.Contains(body, text) {
				t.Errorf("a patch has %q: %s", text, body)
			}
		}
	}
}

// secret sets the data of a Secret.
func (f *fakeAPI) secret(name string, data map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]byte{}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		all[key] = []byte(data[key])
	}
	f.secrets[name] = all
	f.version++
}
