package redfish_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const entriesPath = systemPath + "/LogServices/SEL/Entries"

// Of a log in pages, the driver reads every entry once, whatever the size of a
// page, and also when there are more pages than a collection of links has.
func TestLogReadsEveryPage(t *testing.T) {
	s := newServer(t, func(s *server) { s.paged = true })
	c := s.open()
	const entries = 40
	for i := range entries {
		s.log("OK", fmt.Sprint("Entry ", i))
	}
	log, err := c.Log(t.Context())
	if err != nil || len(log) != entries {
		t.Fatalf("Log() = %d entries, %v; want %d", len(log), err, entries)
	}
	for i, e := range log {
		if want := fmt.Sprint("Entry ", i); e.Text != want {
			t.Errorf("entry %d is %q, want %q", i, e.Text, want)
		}
	}
}

// The same for a collection whose members are links.
func TestSubscriptionsReadsEveryPage(t *testing.T) {
	s := newServer(t, func(s *server) { s.paged = true })
	c := s.open().(bmc.Subscriber)
	const destinations = 40
	for i := range destinations {
		if _, err := c.Subscribe(t.Context(), bmc.Subscription{Destination: fmt.Sprintf("https://events.example/%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.Subscriptions(t.Context())
	if err != nil || len(all) != destinations {
		t.Fatalf("Subscriptions() = %d, %v; want %d", len(all), err, destinations)
	}
}

// A nextLink without an end is an error that names the page: the members read so
// far would pass for all.
func TestNextLinkWithoutAnEndIsAnError(t *testing.T) {
	for _, tt := range []struct {
		name string
		next func(query string) string // nextLink of the page with this query
		want string
		most int // requests
	}{
		{"to itself", func(query string) string { return entriesPath + "?" + query }, "leads back to " + entriesPath, 2},
		{"to the first page, absolute", func(query string) string {
			if query == "" {
				return "$skip=1"
			}
			return "https://bmc.example" + entriesPath
		}, "leads back to " + entriesPath, 3},
		{"to the page before", func(query string) string {
			return map[string]string{"": "$skip=1", "$skip=1": "$skip=2", "$skip=2": "$skip=1"}[query]
		}, "leads back to " + entriesPath + "?$skip=1", 4},
		{"always to another page", func(query string) string { return "$skip=1" + strings.TrimPrefix(query, "$skip=") }, "has more than 1024 pages", 1024},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			c := s.open()
			s.route("GET "+entriesPath, func(w http.ResponseWriter, r *http.Request) {
				next := tt.next(r.URL.RawQuery)
				if !strings.Contains(next, "/") {
					next = entriesPath + "?" + next
				}
				reply(w, http.StatusOK, map[string]any{
					"Members":                []any{map[string]any{"Id": "1", "Message": "The fan has failed.", "Created": "2026-01-02T03:04:05Z"}},
					"Members@odata.nextLink": strings.TrimSuffix(next, "?"),
				})
			})
			log, err := c.Log(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "GET "+entriesPath) {
				t.Errorf("Log() = %d entries, error = %v; want one that says %q", len(log), err, tt.want)
			}
			if n := s.count("GET " + entriesPath); n > tt.most {
				t.Errorf("%d requests, want at most %d", n, tt.most)
			}
		})
	}
}
