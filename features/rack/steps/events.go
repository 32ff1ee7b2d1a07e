package steps

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/cucumber/godog"
)

const subscriptionsURI = root + "/EventService/Subscriptions"

// eventReceiver is a server that keeps the events that are posted to it.
type eventReceiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // keys of messages
	down bool
}

// eventPayload is what a step looks at of an event.
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

func newHook() *eventReceiver {
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

func (h *eventReceiver) set(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

func (h *eventReceiver) has(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.got, key)
}

// messages are what an operator calls what events tell.
var messages = map[string]string{
	"the power": "ResourcePoweredOn", "a login": "SuccessfulLogin", "a test": "Success", "a sign of life": "RedfishServiceFunctional",
	"a new session": "ResourceCreated", "a change": "ResourceChanged", "its own making": "ResourceCreated",
}

func (s *scenario) registerEvents(sc *godog.ScenarioContext) {
	subscribe := func(more object) error {
		if s.receiver == nil {
			s.receiver = newHook()
		}
		body := object{"Destination": s.receiver.URL, "Protocol": "Redfish", "Context": "feature"}
		for name, v := range more {
			body[name] = v
		}
		err := s.sendOK("POST", subscriptionsURI, body)
		s.saved["subscription"] = s.response.header.Get("Location")
		return err
	}
	sc.Step(`^a monitoring system subscribes to everything$`, func() error { return subscribe(nil) })
	sc.Step(`^a monitoring system subscribes to what accounts and logins do$`, func() error {
		return subscribe(object{"RegistryPrefixes": []string{"AccountSecurity"}})
	})
	sc.Step(`^a monitoring system subscribes to signs of life every minute$`, func() error {
		return subscribe(object{"SendHeartbeat": true, "HeartbeatIntervalMinutes": 1})
	})
	sc.Step(`^somebody subscribes with a protocol that no BMC speaks$`, func() error {
		return s.send("POST", subscriptionsURI, object{"Destination": "https://192.0.2.1/", "Protocol": "FTP"})
	})
	sc.Step(`^the monitoring system is told of (the power|a login|a test|a sign of life|a new session|a change)$`, func(what string) error {
		s.lab.Settle()
		if !s.receiver.has(messages[what]) {
			return fmt.Errorf("it is told of %q", s.receiver.got)
		}
		return nil
	})
	sc.Step(`^the monitoring system is not told of (the power|a login|a change)$`, func(what string) error {
		s.lab.Settle()
		if s.receiver.has(messages[what]) {
			return fmt.Errorf("it is told of %q", s.receiver.got)
		}
		return nil
	})
	sc.Step(`^the monitoring system (is away|is back)$`, func(how string) { s.receiver.set(how == "is away") })
	sc.Step(`^the operator sends a test event$`, func() error {
		return s.sendOK("POST", root+"/EventService/Actions/EventService.SubmitTestEvent", object{"MessageId": "Base.1.0.Success"})
	})
	sc.Step(`^the subscription is (gone|there)$`, func(how string) error {
		if err := s.send("GET", s.saved["subscription"], nil); err != nil {
			return err
		}
		return equal("the subscription", s.response.status, map[string]int{"gone": 404, "there": 200}[how])
	})
	sc.Step(`^a client opens a stream of events$`, func() error { return s.openStream("") })
	sc.Step(`^the stream tells of (the power|a login|a new session|its own making)$`, func(what string) error {
		return s.streams[len(s.streams)-1].until(messages[what])
	})
	sc.Step(`^the client loses the stream$`, func() error {
		s.streams[len(s.streams)-1].close()
		return eventually(func() error {
			a, err := s.get(subscriptionsURI)
			if err != nil {
				return err
			}
			return equal("the number of subscriptions", a.body["Members@odata.count"], 0)
		})
	})
	sc.Step(`^the client opens it again where it had stopped$`, func() error { return s.openStream(s.streams[len(s.streams)-1].last) })
	sc.Step(`^the operator deletes the stream's subscription$`, func() error {
		a, err := s.get(subscriptionsURI)
		if err != nil {
			return err
		}
		one, _ := a.body["Members"].([]any)[0].(map[string]any)
		return s.sendOK("DELETE", fmt.Sprint(one["@odata.id"]), nil)
	})
	sc.Step(`^the stream has ended$`, func() error { return s.streams[len(s.streams)-1].ended() })
	sc.Step(`^a client opens a stream with a filter that makes no sense$`, func() error {
		return s.send("GET", root+"/EventService/SSE?$filter=Moon%20eq%20'full'", nil)
	})
}

// stream is an open stream of events.
type stream struct {
	lines <-chan string
	last  string // id of the last event
	close func()
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
	resp, err := s.lab.Client.Do(r) //nolint:bodyclose // closed by who reads the stream
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
	return equal("the answer", resp.StatusCode, 200)
}

// until reads events until one tells a message.
func (st *stream) until(key string) error {
	for line := range st.lines {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			st.last = id
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

func (st *stream) ended() error {
	for range st.lines {
	}
	return nil
}
