package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/exchange"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

// The pace of an event stream, in real time.
const (
	pace      = 200 * time.Millisecond // interval between updates of tiles, journal and console
	slowPace  = 5                      // in pace: of sensors and the lab's time
	tokenPace = 25                     // in pace: how often the token is checked
)

// maxEntries is how many entries of the journal a server's page begins with, and the most
// that it gets at once.
const maxEntries = 200

// labState is the state of the lab that the head of the page shows.
type labState struct {
	Name    string    `json:"name"`
	Time    time.Time `json:"time"` // the lab's
	Speed   string    `json:"speed"`
	Hosts   int       `json:"hosts"`
	Faults  int       `json:"faults"`
	Storage string    `json:"storage,omitempty"`
	Kube    bool      `json:"kube"`
	Version string    `json:"version"`
	Shard   bool      `json:"shard,omitempty"` // a part of a lab in several processes
	// URLs of the lab's images, which objects name.
	Images       string `json:"images,omitempty"`
	SecureImages string `json:"secureImages,omitempty"`
}

// stream is an open event stream: server-sent events (HTML, "Server-sent events").
type stream struct {
	s       *Server
	w       http.ResponseWriter
	version uint64 // version of the tiles that the page has
	host    *rack.Host

	last    map[string][]byte // bodies of the latest events of kinds that replace each other
	mark    journal.Mark
	started bool
	console uint64 // number of the next byte

	mu        sync.Mutex
	exchanges []exchange.Exchange // that the page does not have, at most maxExchanges
	typing    bool                // the page shows the console
}

// events streams the changes of the tiles and, with host, all of one server.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	e := &stream{s: s, w: w, last: map[string][]byte{}, typing: q.Has("console")}
	if name := q.Get("host"); name != "" {
		h, ok := s.c.Rack.Host(name)
		if !ok {
			http.Error(w, "there is no host "+name, http.StatusNotFound)
			return
		}
		e.host = h
	}
	if at, ok := s.parseEventID(r.Header.Get("Last-Event-ID")); ok { // the browser connects again
		e.version, e.console = at.version, at.console
	} else if at, ok := s.parseEventID(q.Get("since")); ok { // the page has opened another server
		e.version = at.version
	}
	s.stream(w, func() error { return e.run(r.Context(), func() bool { return s.access.admits(r) }) })
}

// stream answers with the events that run sends, unless too many pages are open.
func (s *Server) stream(w http.ResponseWriter, run func() error) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open: close one", maxStreams), http.StatusServiceUnavailable)
		return
	}
	s.watchObjects()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if err := run(); err != nil {
		s.c.Log.Debug("page left", "err", err)
	}
}

// eventID identifies the state of a page after an event.
type eventID struct {
	version uint64 // version of the tiles
	console uint64 // number of the next byte
}

// parseEventID reads the ID of an event. ok is false for that of another process, whose
// versions mean something else.
func (s *Server) parseEventID(text string) (id eventID, ok bool) {
	process, rest, _ := strings.Cut(text, ".")
	n, err := fmt.Sscanf(rest, "%d.%d", &id.version, &id.console)
	return id, n == 2 && err == nil && process == s.process
}

// run sends events until ctx ends, the page goes or the token is replaced.
func (e *stream) run(ctx context.Context, admitted func() bool) error {
	tick := e.s.c.Clock.NewTicker(pace)
	defer tick.Stop()
	wake := make(chan struct{}, 1)
	if e.host != nil && e.typing {
		defer e.host.Watch(func() {
			select {
			case wake <- struct{}{}:
			default: // it is awake already
			}
		})()
	}
	if e.host != nil {
		defer e.s.c.Rack.WatchRequests(e.keep)()
	}
	for n := 0; ; n++ {
		if err := e.send(n%slowPace == 0); err != nil {
			return err
		}
		if n%tokenPace == tokenPace-1 && !admitted() {
			return nil
		}
		if err := e.await(ctx, tick.C(), wake); err != nil {
			return err
		}
	}
}

// await returns at the next tick. It sends the output of the console at once.
func (e *stream) await(ctx context.Context, tick <-chan time.Time, wake <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick:
			return nil
		case <-wake:
			if err := errors.Join(e.sendConsole(), http.NewResponseController(e.w).Flush()); err != nil {
				return err
			}
		}
	}
}

// send sends the changes. slowly also sends values that change with time alone.
func (e *stream) send(slowly bool) error {
	if slowly || !e.started {
		if err := e.replace("lab", e.s.labState()); err != nil {
			return err
		}
	}
	if tiles, version := e.s.rack.changes(e.version); version != e.version {
		e.version = version
		if err := e.event("tiles", tiles); err != nil {
			return err
		}
	}
	if e.host != nil {
		if err := e.sendHost(slowly); err != nil {
			return err
		}
	}
	e.started = true
	return http.NewResponseController(e.w).Flush()
}

// sendHost sends the changes of the server whose page is open.
func (e *stream) sendHost(slowly bool) error {
	if err := e.replace("server", e.s.serverOf(e.host)); err != nil {
		return err
	}
	if slowly {
		if err := e.event("sensors", sensorsOf(e.host)); err != nil {
			return err
		}
	}
	q := journal.Query{Host: e.host.Name(), After: e.mark, Last: maxEntries}
	entries, mark, err := e.s.c.Rack.Journal().Select(q)
	if err != nil {
		return err
	}
	e.mark = mark
	if len(entries) > 0 || !e.started {
		if err := e.event("journal", entries); err != nil {
			return err
		}
	}
	return errors.Join(e.sendExchanges(), e.sendConsole())
}

// maxExchanges is how many bodies of requests wait to be sent.
const maxExchanges = 50

// keep takes the bodies of a request to the server whose page is open.
func (e *stream) keep(x exchange.Exchange) {
	if x.Host != e.host.Name() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.exchanges) < maxExchanges {
		e.exchanges = append(e.exchanges, x)
	}
}

// sendExchanges sends the bodies of requests, after the journal's entries of them.
func (e *stream) sendExchanges() error {
	e.mu.Lock()
	all := e.exchanges
	e.exchanges = nil
	e.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	return e.event("exchanges", all)
}

// sendConsole sends the output of the console that the page does not have.
func (e *stream) sendConsole() error {
	if !e.typing || e.host == nil {
		return nil
	}
	text, at := e.host.Machine().Console.Since(e.console)
	if len(text) == 0 {
		return nil
	}
	e.console = at + uint64(len(text))
	return e.event("console", map[string]any{"at": at, "text": text}) // in base64: any bytes
}

// replace sends an event that replaces the one before of its kind, unless they are equal.
func (e *stream) replace(kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	if bytes.Equal(b, e.last[kind]) {
		return nil
	}
	e.last[kind] = b
	return e.write(kind, b)
}

func (e *stream) event(kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return e.write(kind, b)
}

func (e *stream) write(kind string, b []byte) error {
	id := strconv.FormatUint(e.version, 10) + "." + strconv.FormatUint(e.console, 10)
	_, err := fmt.Fprintf(e.w, "id: %s.%s\nevent: %s\ndata: %s\n\n", e.s.process, id, kind, b)
	return err
}

func (s *Server) labState() labState {
	st := s.c.Status()
	return labState{
		Name: s.c.Rack.Definition().Name, Time: s.c.Rack.Clock().Now().UTC().Truncate(time.Second), Speed: st.Speed, Hosts: len(s.rack.hosts),
		Faults: len(s.c.Rack.Faults()), Storage: st.Storage, Kube: st.Kubeconfig != "", Version: control.Version(),
		Shard:  s.c.Rack.Definition().Part != nil && s.fleet == nil,
		Images: st.Images, SecureImages: st.SecureImages,
	}
}
