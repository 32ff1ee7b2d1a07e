package faulthttp

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
)

// heldResponse collects the response of a service. A stream of events passes
// through it, because it has no end to wait for.
type heldResponse struct {
	w         http.ResponseWriter // where a stream goes
	header    http.Header
	status    int
	body      bytes.Buffer
	streaming bool
	passed    int    // bytes of the stream
	release   func() // called when a stream begins
}

// isStream reports whether a response is a stream of server-sent events.
func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// Header implements http.ResponseWriter.
func (a *heldResponse) Header() http.Header {
	if a.streaming {
		return a.w.Header()
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *heldResponse) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	if !isStream(a.header) {
		return
	}
	a.streaming = true
	a.release()
	for name, values := range a.header {
		a.w.Header()[name] = values
	}
	a.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *heldResponse) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.streaming {
		a.passed += len(b)
		return a.w.Write(b)
	}
	return a.body.Write(b)
}

// FlushError is for http.ResponseController.
func (a *heldResponse) FlushError() error {
	if a.streaming {
		return http.NewResponseController(a.w).Flush()
	}
	return nil
}

// Flush implements http.Flusher.
func (a *heldResponse) Flush() { _ = a.FlushError() }

// Unwrap is for http.ResponseController.
func (a *heldResponse) Unwrap() http.ResponseWriter { return a.w }

// countingWriter counts the bytes of a response.
type countingWriter struct {
	http.ResponseWriter
	status  int
	n       int64
	release func() // called when a stream begins
}

// WriteHeader implements http.ResponseWriter.
func (c *countingWriter) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
		if isStream(c.Header()) {
			c.release()
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *countingWriter) Write(b []byte) (int, error) {
	c.status = cmp.Or(c.status, http.StatusOK)
	n, err := c.ResponseWriter.Write(b)
	c.n += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (c *countingWriter) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
