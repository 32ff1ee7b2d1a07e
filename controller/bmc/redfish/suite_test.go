package redfish_test

import (
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
)

// The driver passes the suite with services of several kinds.
func TestSuite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(*server)
	}{
		{"as the standard has it", func(*server) {}},
		{"power takes time", func(s *server) { s.slow = true }},
		{"sessions only", func(s *server) { s.sessionsOf = true }},
		{"weak tags", func(s *server) { s.weak = true }},
		{"no tags", func(s *server) { s.noTags = true }},
		{"media with the manager", func(s *server) { s.mediaAt = "Managers/1" }},
		{"media by PATCH", func(s *server) { s.noActions = true }},
		{"media takes time", func(s *server) { s.async, s.pending = true, 3 }},
		{"no list of resets", func(s *server) { s.system["Actions"] = nil }},
		{"power cycles", func(s *server) { s.resets = append(s.resets, "PowerCycle") }},
		{"a light that blinks, a manager's log, Thermal", func(s *server) {
			s.led, s.logAt, s.oldSensors = true, "Managers/1", true
		}},
		{"no light, no log, no sensors", func(s *server) { s.bare = true }},
		{"collections in pages", func(s *server) { s.paged = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bmctest.Run(t, bmctest.Fixture{Open: redfish.Open, New: func(t *testing.T) bmctest.BMC {
				s := newServer(t, tt.build)
				return bmctest.BMC{
					Config:   s.config(systemPath),
					Images:   [2]string{"http://images.example/a.iso", "http://images.example/b.iso"},
					BadImage: "http://images.example/missing.iso",
					Settle:   s.settle,
					Power: func() bmc.Power {
						s.mu.Lock()
						defer s.mu.Unlock()
						return bmc.Power(s.power)
					},
					Override: s.override,
					Light: func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return s.lit
					},
					Event: func() { s.log("Critical", "The fan has failed.") },
					Media: func() string {
						s.mu.Lock()
						defer s.mu.Unlock()
						return s.image
					},
					Unplug: s.Close,
					Stall:  s.stalled,
					SetPassword: func(password string) {
						s.mu.Lock()
						defer s.mu.Unlock()
						s.password = password
						clear(s.sessions) // as services do
					},
				}
			}})
		})
	}
}
