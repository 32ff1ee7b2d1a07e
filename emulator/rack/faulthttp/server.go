// Package faulthttp applies a fault.Decision to an HTTP request: it delays the
// request, answers in place of the service, changes the service's response, or
// breaks the connection. It owns the wrong ways to speak HTTP and the error bodies
// of responses that it makes up. It decides nothing and knows no host.
package faulthttp

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Server answers requests to a service, wrong as a decision says.
type Server struct {
	Next http.Handler
	// Stale answers as Next would have before the last change of the host.
	Stale http.Handler
	// Ended is closed when requests that hang must end.
	Ended <-chan struct{}
}

// InFlight is a request that the lab's clock waits for until Release is called.
type InFlight interface {
	// Pause returns after d of the lab's time, or with the context's error. The
	// clock does not wait for the request meanwhile.
	Pause(ctx context.Context, d time.Duration) error
	// Release ends the clock's waiting: what follows may take any time.
	Release()
}

// Sent is what the client got.
type Sent struct {
	Status int   // 0: no response
	Body   int64 // bytes
}

// maxDrained bounds how many bytes of an unwanted request body are read.
const maxDrained = 1 << 20

// Serve answers a request as d says. Error messages are of the registry versions
// that the service uses.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, d fault.Decision, v message.Versions, work InFlight) Sent {
	if d.Delay > 0 {
		if err := work.Pause(r.Context(), d.Delay); err != nil {
			Abort(w)
			return Sent{}
		}
	}
	if (d.Status != 0 || replacesResponse(d.Drop)) && !d.Performed {
		a := fabricate(d, v, r.URL.Path)
		switch {
		case d.Drop == "" && (d.Status == http.StatusUnauthorized || d.Status == http.StatusForbidden) && r.ContentLength != 0 && r.ProtoMajor == 1:
			a.header.Set("Connection", "close") // as a service that reads no body of a client without rights
		default:
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxDrained)) // so that the server notices when the client leaves
		}
		return s.send(w, r, d, a, work)
	}
	next := s.Next
	if d.Stale && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		next = s.Stale
	}
	if d.Status == 0 && d.Drop == "" && d.LengthError == 0 && !d.Rewrites() && len(d.Headers) == 0 {
		counted := &countingWriter{ResponseWriter: w, release: work.Release}
		next.ServeHTTP(counted, r)
		return Sent{Status: counted.status, Body: counted.n}
	}
	if d.Rewrites() {
		r = r.Clone(r.Context())
		r.Header.Del("Accept-Encoding") // a compressed body could not be rewritten
	}
	a := &heldResponse{header: http.Header{}, w: w, release: work.Release}
	next.ServeHTTP(a, r)
	if a.streaming {
		return Sent{Status: a.status, Body: int64(a.passed)}
	}
	if d.Status != 0 {
		a = fabricate(d, v, r.URL.Path)
	}
	return s.send(w, r, d, a, work)
}

// ServeDelayed carries out a request at once and sends its response after a delay.
// A refusal is sent at once.
func (s *Server) ServeDelayed(w http.ResponseWriter, r *http.Request, delay time.Duration, work InFlight) {
	a := &heldResponse{header: http.Header{}, w: w, release: work.Release}
	s.Next.ServeHTTP(a, r)
	if a.streaming {
		return
	}
	if a.status < http.StatusBadRequest {
		if err := work.Pause(r.Context(), delay); err != nil {
			Abort(w)
			return
		}
	}
	s.send(w, r, fault.Decision{}, a, work)
}

// replacesResponse reports whether a drop comes in place of a response.
func replacesResponse(d fault.Drop) bool {
	return d == fault.Reset || d == fault.HalfClose || d == fault.Hang
}

// send sends a response as d says.
func (s *Server) send(w http.ResponseWriter, r *http.Request, d fault.Decision, a *heldResponse, work InFlight) Sent {
	switch d.Drop {
	case fault.Reset:
		Abort(w)
		return Sent{}
	case fault.HalfClose:
		work.Release()
		halfClose(r.Context(), w)
		return Sent{}
	case fault.Hang:
		work.Release()
		select {
		case <-r.Context().Done():
		case <-s.Ended:
		}
		Abort(w)
		return Sent{}
	}
	body := a.body.Bytes()
	a.status = cmp.Or(a.status, http.StatusOK)
	bare := r.Method == http.MethodHead || a.status == http.StatusNoContent || a.status == http.StatusNotModified
	if d.Rewrites() && !bare && (d.Status != 0 || a.status < 300) {
		var kind string
		kind, body = d.Rewrite(a.header.Get("Content-Type"), body)
		a.header.Set("Content-Type", kind)
		a.header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	for _, headers := range d.Headers {
		for name, text := range headers { // each header alone: the order has no effect
			if text == "" {
				a.header.Del(name)
				continue
			}
			a.header.Set(name, text)
		}
	}
	sent := Sent{Status: a.status, Body: int64(len(body))}
	if bare {
		sent.Body = 0
	}
	switch {
	case d.Drop == fault.MidBody && !bare:
		sent.Body = int64(len(body) / 2)
		writeRaw(w, a, len(body), body[:len(body)/2], true)
	case d.Drop == fault.MidBody:
		Abort(w)
		return Sent{}
	case d.LengthError != 0 && !bare:
		writeRaw(w, a, max(0, len(body)+d.LengthError), body, false)
	default:
		h := w.Header()
		clear(h)
		for name, values := range a.header {
			h[name] = values
		}
		w.WriteHeader(a.status)
		if !bare {
			_, _ = w.Write(body) // fails when the client is gone
		}
	}
	return sent
}
