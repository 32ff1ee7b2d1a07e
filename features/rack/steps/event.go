package steps

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

const subscriptionsURI = root + "/EventService/Subscriptions"

// eventReceiver is an HTTP server that stores the events posted to it.
type eventReceiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // keys of messages
	from int      // number of them when the last cause began
	down bool
}

// eventPayload is the part of an Event (DSP2046) that steps look at.
type eventPayload struct {
	Events []struct {
		MessageID         string
		OriginOfCondition struct {
			ID string `json:"@odata.id"`
		}
	}
}

func (r eventPayload) keys() (out []string) {
	for _, e := range r.Events {
		out = append(out, e.MessageID[strings.LastIndexByte(e.MessageID, '.')+1:])
	}
	return out
}

func newEventReceiver() *eventReceiver {
	h := &eventReceiver{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e eventPayload
		err := json.NewDecoder(r.Body).Decode(&e)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil || h.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.got = append(h.got, e.keys()...)
	}))
	return h
}

// setDown has the receiver answer with 503 from now on, or accept again.
func (h *eventReceiver) setDown(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// beginCause remembers that a cause begins now.
func (h *eventReceiver) beginCause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.from = len(h.got)
}

// received returns the keys of all messages, and of those since the last cause began.
func (h *eventReceiver) received() (all, since []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got), slices.Clone(h.got[h.from:])
}

func (s *scenario) registerEvents(sc *stepRegistry) {
	sc.Step(`^an event receiver subscribes with (\{.*\})$`, func(text string) error {
		s.receiver = newEventReceiver()
		body := object{"Destination": s.receiver.URL, "Protocol": "Redfish", "Context": "feature"}
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			return err
		}
		err := s.sendOK("POST", subscriptionsURI, body)
		s.saved["SUBSCRIPTION"] = s.response.header.Get("Location")
		return err
	})
	sc.Step(`^the receiver has received the message (\w+)$`, func(key string) error {
		s.lab.Settle()
		if all, since := s.receiver.received(); !slices.Contains(since, key) {
			return fmt.Errorf("it has received %q, of which %q since the cause", all, since)
		}
		return nil
	})
	sc.NegativeStep(`^the receiver has not received the message (\w+)$`, func(key string) error {
		s.lab.Settle()
		if all, _ := s.receiver.received(); slices.Contains(all, key) {
			return fmt.Errorf("it has received %q", all)
		}
		return nil
	})
	sc.Step(`^the receiver answers with (200|503)$`, func(status int) { s.receiver.setDown(status == http.StatusServiceUnavailable) })
	sc.Step(`^the client submits a test event$`, func() error {
		return s.sendOK("POST", root+"/EventService/Actions/EventService.SubmitTestEvent", object{"MessageId": "Base.1.0.Success"})
	})
	sc.Step(`^the client opens the SSE stream$`, func() error { return s.openStream("") })
	sc.Step(`^the client opens the SSE stream with the Last-Event-ID$`, func() error { return s.openStream(s.stream().lastID) })
	sc.Step(`^the stream delivers the message (\w+)$`, func(key string) error { return s.stream().readUntil(key) })
	sc.NegativeStep(`^no event of the stream has "([^"]*)"$`, func(name string) error { return s.stream().lacksProperty(name) })
	sc.Step(`^the client closes the stream$`, func() error {
		s.stream().close()
		return eventually(func() error {
			r, err := s.get(subscriptionsURI)
			if err != nil {
				return err
			}
			return equal("the number of subscriptions", r.body["Members@odata.count"], 0)
		})
	})
	sc.Step(`^the client deletes the stream's subscription$`, func() error {
		r, err := s.get(subscriptionsURI)
		if err != nil {
			return err
		}
		return s.sendOK("DELETE", fmt.Sprint(r.at("Members/0/@odata.id")), nil)
	})
	sc.Step(`^the stream has ended$`, func() { s.stream().readToEnd() })
}

// stream returns the stream that was opened last.
func (s *scenario) stream() *stream { return s.streams[len(s.streams)-1] }

// stream is an open stream of server-sent events.
type stream struct {
	lines  <-chan string
	lastID string // ID of the last event
	close  func()
}

func (s *scenario) openStream(after string) error {
	ctx, cancel := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", s.server(1).URL()+root+"/EventService/SSE", nil)
	if err != nil {
		cancel()
		return err
	}
	r.SetBasicAuth(s.lab.Credentials(s.server(1)))
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := s.lab.Client.Do(r) //nolint:bodyclose // the goroutine that reads the stream closes it
	if err != nil {
		cancel()
		return err
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			lines <- in.Text()
		}
	}()
	st := &stream{lines: lines, close: cancel}
	s.streams = append(s.streams, st)
	return equal("the status", resp.StatusCode, 200)
}

// readUntil reads events until one has a message with this key.
func (st *stream) readUntil(key string) error {
	for line := range st.lines {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			st.lastID = id
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e eventPayload
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if slices.Contains(e.keys(), key) {
			return nil
		}
	}
	return fmt.Errorf("the stream has ended without %s", key)
}

// lacksProperty reads events until the power is on, and returns an error when
// one of them has a property.
func (st *stream) lacksProperty(name string) error {
	for line := range st.lines {
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case ok && strings.Contains(data, `"`+name+`"`):
			return fmt.Errorf("an event has %s: %.300s", name, data)
		case ok && strings.Contains(data, "ResourcePoweredOn"):
			return nil
		}
	}
	return errors.New("the stream has ended without ResourcePoweredOn")
}

func (st *stream) readToEnd() {
	for range st.lines {
	}
}
