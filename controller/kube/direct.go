package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"
)

// Direct returns a configuration for clients in this process, with the rights of
// RESTConfig. Their requests go through all that a server does with one, but not
// through a connection: what does not leave the process need not be encrypted and
// framed. It is the caller's own.
func (a *API) Direct() *rest.Config {
	c := a.RESTConfig()
	c.TLSClientConfig = rest.TLSClientConfig{} // client-go takes either
	c.Transport = a.server
	return c
}

var errEnded = errors.New("kube: the API has ended")

// RoundTrip implements http.RoundTripper. A watch is answered while it lasts;
// anything else when it is done, by the caller's own goroutine.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if r.Header.Get("Upgrade") != "" {
		return nil, fmt.Errorf("kube: %s %s: a connection of its own is what RESTConfig is for", r.Method, r.URL.Path)
	}
	// The server must not find its own values in what a client is called with: its
	// handlers are clients, too.
	ctx, cancel := context.WithCancelCause(context.Background())
	unhook := context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })
	leave := func() { unhook(); cancel(nil) }
	select {
	case <-s.done:
		leave()
		return nil, errEnded
	case <-r.Context().Done():
		leave()
		return nil, r.Context().Err()
	default:
	}
	if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
		return s.stream(r, incoming(ctx, r), leave)
	}
	defer leave()
	w := &whole{answer: newAnswer(ctx)}
	if err := s.serve(w, incoming(ctx, r)); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusOK)
	return w.response(r, int64(w.body.Len()), io.NopCloser(&w.body)), nil
}

// stream answers with what is written from now on.
func (s *apiServer) stream(r, in *http.Request, leave func()) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &flowing{answer: newAnswer(in.Context()), body: writer, begun: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		defer leave()
		err := s.serve(w, in)
		if err == nil {
			w.WriteHeader(http.StatusOK)
		}
		failed <- err
		_ = writer.CloseWithError(err) // nil is the end of the body
	}()
	select {
	case <-w.begun:
	case err := <-failed:
		if err != nil {
			return nil, err
		}
	case <-r.Context().Done():
		_ = reader.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	return w.response(r, -1, closing{reader, leave}), nil
}

// closing is the body of a watch: who closes it ends the watch.
type closing struct {
	*io.PipeReader
	leave func()
}

func (c closing) Close() error {
	c.leave()
	return c.PipeReader.Close()
}

// serve has the server's handlers answer. They give up by a panic.
func (s *apiServer) serve(w http.ResponseWriter, in *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("kube: %s %s: given up: %v", in.Method, in.URL.Path, v)
		}
	}()
	s.handler.ServeHTTP(w, in)
	return nil
}

// incoming is a client's request as a server sees it that has read it.
func incoming(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	in.RequestURI = in.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// answer is what both kinds of answers have in common.
type answer struct {
	header   http.Header
	code     int
	sent     http.Header  // the header as it was when the answer began
	whenGone func(func()) // calls a function when nobody waits any more
}

func newAnswer(ctx context.Context) answer {
	return answer{header: http.Header{}, whenGone: func(f func()) { context.AfterFunc(ctx, f) }}
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) begin(code int) (first bool) {
	if a.code != 0 || code/100 == 1 {
		return false
	}
	a.code, a.sent = code, a.header.Clone()
	return true
}

// CloseNotify is what upstream's handlers want of a writer that can flush.
func (a *answer) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	a.whenGone(func() { closed <- true })
	return closed
}

func (a *answer) response(r *http.Request, length int64, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code), StatusCode: a.code,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: a.sent, ContentLength: length, Body: body, Request: r,
	}
}

// whole is an answer that is read when it is complete.
type whole struct {
	answer
	body bytes.Buffer
}

func (w *whole) WriteHeader(code int) { w.begin(code) }
func (w *whole) Flush()               { w.begin(http.StatusOK) }

func (w *whole) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.body.Write(p)
}

// flowing is an answer that is read while it is written.
type flowing struct {
	answer
	once  sync.Once
	begun chan struct{}
	body  *io.PipeWriter
}

func (w *flowing) WriteHeader(code int) {
	if w.begin(code) {
		w.once.Do(func() { close(w.begun) })
	}
}

func (w *flowing) Flush() { w.WriteHeader(http.StatusOK) }

func (w *flowing) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}
