package redfish_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	eventsPath = "/redfish/v1/EventService"
	listPath   = eventsPath + "/Subscriptions"
)

// eventRoutes adds an event service that follows DSP2046.
func (s *server) eventRoutes(routes map[string]http.HandlerFunc) {
	routes["GET "+eventsPath] = s.show(func() map[string]any {
		m := map[string]any{"@odata.id": eventsPath, "ServiceEnabled": true, "Subscriptions": linkTo(listPath)}
		if s.bare {
			delete(m, "Subscriptions")
		}
		return m
	})
	routes["GET "+listPath] = s.show(func() map[string]any {
		var ids []string
		for _, l := range s.listeners {
			ids = append(ids, l["Id"].(string))
		}
		return collection(listPath, ids...)()
	})
	routes["POST "+listPath] = func(w http.ResponseWriter, r *http.Request) {
		body, ok := object(w, r)
		if !ok {
			return
		}
		for _, name := range []string{"Destination", "Protocol"} {
			if body[name] == nil || body[name] == "" {
				fail(w, http.StatusBadRequest, "PropertyMissing", "The property "+name+" is missing.", name)
				return
			}
		}
		s.listen(w, body)
	}
}

// listen creates an event destination.
func (s *server) listen(w http.ResponseWriter, body map[string]any) {
	s.listened++
	id := fmt.Sprint(s.listened)
	uri := listPath + "/" + id
	body["Id"], body["@odata.id"], body["HttpHeaders"] = id, uri, []any{} // write-only
	s.listeners = append(s.listeners, body)
	s.routes["GET "+uri] = s.show(func() map[string]any { return body })
	s.routes["DELETE "+uri] = func(w http.ResponseWriter, _ *http.Request) {
		s.listeners = slices.DeleteFunc(s.listeners, func(l map[string]any) bool { return l["Id"] == id })
		delete(s.routes, "GET "+uri)
		delete(s.routes, "DELETE "+uri)
		w.WriteHeader(http.StatusNoContent)
	}
	w.Header().Set("Location", s.URL+uri)
	reply(w, http.StatusCreated, body)
}

func subscriber(t *testing.T, s *server) bmc.Subscriber {
	t.Helper()
	c, ok := s.open().(bmc.Subscriber)
	if !ok {
		t.Fatal("the client is no Subscriber")
	}
	return c
}

var headers = []bmc.Header{{Name: "X-Token", Value: "t0p-s3cret"}, {Name: "X-Site", Value: "r1"}}

func TestSubscribeRequest(t *testing.T) { // B-245
	s := newServer(t)
	id, err := subscriber(t, s).Subscribe(t.Context(), bmc.Subscription{Destination: "https://events.example/", Context: "rack 1", Headers: headers})
	if id != "1" || err != nil {
		t.Errorf("Subscribe() = %q, %v, want 1", id, err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(strings.Join(s.sent(), "")), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"Destination": "https://events.example/", "Protocol": "Redfish", "Context": "rack 1",
		"HttpHeaders": []any{map[string]any{"X-Token": "t0p-s3cret"}, map[string]any{"X-Site": "r1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
}

// The driver sends the deprecated list of event types to a service that requires
// it, and to no other.
func TestSubscribeWithEventTypes(t *testing.T) {
	s := newServer(t)
	s.wrap("POST "+listPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, ok := object(w, r)
			if !ok {
				return
			}
			if _, there := body["EventTypes"]; !there {
				fail(w, http.StatusBadRequest, "CreateFailedMissingReqProperties", "EventTypes is required.", "EventTypes")
				return
			}
			s.listen(w, body)
		}
	})
	if id, err := subscriber(t, s).Subscribe(t.Context(), bmc.Subscription{Destination: "https://events.example/"}); id != "1" || err != nil {
		t.Errorf("Subscribe() = %q, %v, want 1", id, err)
	}
	if n := s.count("POST " + listPath); n != 2 {
		t.Errorf("%d requests to subscribe, want 2", n)
	}
}

// A refusal is not retried, and the error does not repeat the values of the
// headers.
func TestSubscribeRefusedHidesHeaders(t *testing.T) {
	s := newServer(t)
	s.route("POST "+listPath, func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusBadRequest, "PropertyValueFormatError", "The value t0p-s3cret of HttpHeaders is of a different format.", "t0p-s3cret", "HttpHeaders")
	})
	_, err := subscriber(t, s).Subscribe(t.Context(), bmc.Subscription{Destination: "https://events.example/", Headers: headers})
	if err == nil || strings.Contains(err.Error(), "t0p-s3cret") || !strings.Contains(err.Error(), "of HttpHeaders is of a different format") {
		t.Errorf("Subscribe() error = %v, want what the service said without the header's value", err)
	}
	if n := s.count("POST " + listPath); n != 1 {
		t.Errorf("%d requests to subscribe, want 1", n)
	}
}

// Some services answer 201 or 204 without Location and body.
func TestSubscribeResponseWithoutLocation(t *testing.T) {
	s := newServer(t)
	s.wrap("POST "+listPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			next(&mute{ResponseWriter: w}, r)
		}
	})
	c := subscriber(t, s)
	for _, want := range []string{"1", "2"} {
		if id, err := c.Subscribe(t.Context(), bmc.Subscription{Destination: "https://events.example/", Context: "c"}); id != want || err != nil {
			t.Errorf("Subscribe() = %q, %v, want %s", id, err, want)
		}
	}
}

// mute answers 204 whatever the handler writes.
type mute struct{ http.ResponseWriter }

func (m *mute) WriteHeader(int) {
	m.Header().Del("Location")
	m.ResponseWriter.WriteHeader(http.StatusNoContent)
}

func (m *mute) Write(b []byte) (int, error) { return len(b), nil }

func TestSubscriptionsOmitsEventStreams(t *testing.T) {
	s := newServer(t)
	s.listeners = append(s.listeners, map[string]any{"Id": "9"})
	s.route("GET "+listPath+"/9", s.show(func() map[string]any {
		return map[string]any{"@odata.id": listPath + "/9", "Id": "9", "SubscriptionType": "SSE"}
	}))
	if got, err := subscriber(t, s).Subscriptions(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("Subscriptions() = %+v, %v, want none", got, err)
	}
}
