package disk

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// resources counts the open resources of a Writer: bodies of HTTP responses, each of which
// occupies a connection, and scratch files, each of which occupies the ramdisk's
// memory until it is closed.
type resources struct {
	mu   sync.Mutex
	held map[string]int
}

// checkReleased fails the test when something is still held.
func (r *resources) checkReleased(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, n := range r.held {
		if n != 0 {
			t.Errorf("%d of %s are held after Write", n, name)
		}
	}
}

func (r *resources) add(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[string]int{}
	}
	r.held[name] += n
}

// RoundTrip is that of the default transport; the response counts until its body
// is closed.
func (r *resources) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		r.add("the responses", 1)
		resp.Body = &body{ReadCloser: resp.Body, release: sync.OnceFunc(func() { r.add("the responses", -1) })}
	}
	return resp, err
}

type body struct {
	io.ReadCloser
	release func()
}

func (b *body) Close() error {
	b.release()
	return b.ReadCloser.Close()
}

// countedSystem counts its scratch files.
type countedSystem struct {
	*systest.System
	resources *resources
}

func (s countedSystem) TempFile() (sys.Scratch, error) {
	f, err := s.System.TempFile()
	if err != nil {
		return nil, err
	}
	s.resources.add("the scratch files", 1)
	return &countedScratch{Scratch: f, release: sync.OnceFunc(func() { s.resources.add("the scratch files", -1) })}, nil
}

type countedScratch struct {
	sys.Scratch
	release func()
}

func (f *countedScratch) Close() error {
	f.release()
	return f.Scratch.Close()
}
