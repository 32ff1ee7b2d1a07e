package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// dryRun prints requests and answers writes in place of the BMC, so that the check
// goes on to its next request. Time passes only by waiting.
type dryRun struct {
	out    io.Writer
	clock  clock.Clock
	mu     sync.Mutex
	offset time.Duration
	last   string // line, to print a poll once
}

func (d *dryRun) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.Now().Add(d.offset)
}

func (d *dryRun) skip(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offset += by
}

// answer prints a request. It answers those that change something.
func (d *dryRun) answer(q Request) (*Response, bool) {
	method := q.Method
	if method == "" {
		method = http.MethodGet
	}
	line := method + " " + q.URI
	if q.Body != nil {
		text, raw := q.Body.([]byte)
		if !raw {
			text, _ = json.Marshal(q.Body)
		}
		line += " " + string(secretProperty.ReplaceAll(text, []byte(`${1}"`+redacted+`"`)))
	}
	d.print(line)
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions {
		return nil, false
	}
	return &Response{URI: q.URI, Status: http.StatusNoContent, Header: http.Header{}}, true
}

// print prints a line unless it is that of the request before.
func (d *dryRun) print(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if line != d.last {
		_, _ = fmt.Fprintln(d.out, line)
	}
	d.last = line
}
