package redfish_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const resetPath = systemPath + "/Actions/ComputerSystem.Reset"

func TestSetPowerChoosesTheResetType(t *testing.T) {
	for _, tt := range []struct {
		offered []string
		power   string // power state before the call
		action  bmc.PowerAction
		want    string // body of the action; "" is none
		err     error
	}{
		{[]string{"On", "ForceOn"}, "Off", bmc.PowerOn, `{"ResetType":"On"}`, nil},
		{[]string{"ForceOn", "PushPowerButton"}, "Off", bmc.PowerOn, `{"ResetType":"ForceOn"}`, nil},
		{[]string{"PushPowerButton"}, "Off", bmc.PowerOn, `{"ResetType":"PushPowerButton"}`, nil},
		{[]string{"PushPowerButton"}, "On", bmc.PowerOn, "", nil},
		{[]string{"PushPowerButton"}, "On", bmc.PowerOff, "", bmc.ErrUnsupported},
		{[]string{"ForceOff", "GracefulShutdown"}, "On", bmc.PowerOff, `{"ResetType":"ForceOff"}`, nil},
		{[]string{"ForceOff", "GracefulShutdown"}, "On", bmc.PowerSoftOff, `{"ResetType":"GracefulShutdown"}`, nil},
		{[]string{"ForceOff"}, "On", bmc.PowerSoftOff, "", bmc.ErrUnsupported},
		{[]string{"ForceOff"}, "Off", bmc.PowerSoftOff, "", nil},
		{[]string{"PowerCycle", "ForceRestart"}, "On", bmc.PowerReset, `{"ResetType":"ForceRestart"}`, nil},
		{[]string{"PowerCycle", "On"}, "On", bmc.PowerReset, `{"ResetType":"PowerCycle"}`, nil},
		{[]string{"ForceRestart", "On"}, "Off", bmc.PowerReset, `{"ResetType":"On"}`, nil},
		{[]string{}, "Off", bmc.PowerOn, `{"ResetType":"On"}`, nil},
	} {
		s := newServer(t, func(s *server) { s.resets, s.power = tt.offered, tt.power })
		c := s.open()
		if len(tt.offered) == 0 {
			s.resets = []string{"On"}
			s.system["Actions"] = map[string]any{"#ComputerSystem.Reset": map[string]any{"target": resetPath}}
		}
		if err := c.SetPower(t.Context(), tt.action); !errors.Is(err, tt.err) {
			t.Errorf("SetPower(%s) of %v error = %v, want %v", tt.action, tt.offered, err, tt.err)
		}
		got := ""
		if sent := s.sent(); len(sent) > 0 {
			got = sent[0]
		}
		if got != tt.want {
			t.Errorf("SetPower(%s) of %v while %s sends %s, want %s", tt.action, tt.offered, tt.power, got, tt.want)
		}
	}
}

// OpenBMC has the reset types in an ActionInfo, which the driver reads once.
func TestResetTypesFromActionInfo(t *testing.T) {
	s := newServer(t, func(s *server) { s.resets = []string{"ForceOn", "ForceOff"} })
	const info = systemPath + "/ResetActionInfo"
	s.system["Actions"] = map[string]any{"#ComputerSystem.Reset": map[string]any{"target": resetPath, "@Redfish.ActionInfo": info}}
	s.route("GET "+info, s.show(func() map[string]any {
		return map[string]any{"Parameters": []any{
			map[string]any{"Name": "Other", "AllowableValues": []string{"On"}},
			map[string]any{"Name": "ResetType", "Required": true, "AllowableValues": s.resets},
		}}
	}))
	c := s.open()
	for _, a := range []bmc.PowerAction{bmc.PowerOn, bmc.PowerOff, bmc.PowerOn} {
		if err := c.SetPower(t.Context(), a); err != nil {
			t.Errorf("SetPower(%s) error = %v", a, err)
		}
	}
	if got := s.count("GET " + info); got != 1 {
		t.Errorf("the ActionInfo was read %d times, want once", got)
	}
}

// The system is switched on between the read and the action.
func TestSetPowerWhenTheSystemChangesMeanwhile(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.wrap("POST "+resetPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s.power = "On"
			next(w, r)
		}
	})
	if err := c.SetPower(t.Context(), bmc.PowerOn); err != nil {
		t.Errorf("SetPower(on) error = %v though the system is on", err)
	}
	s.wantRequests("GET "+systemPath, "POST "+resetPath, "GET "+systemPath)

	// iDRAC 10 answers so for a while after a power off, and the system stays off
	// (bugs.launchpad.net/ironic bug 2162995).
	s.mu.Lock()
	s.power = "Off"
	s.mu.Unlock()
	s.route("POST "+resetPath, func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusConflict, "ActionParameterValueConflict", "The parameter ResetType conflicts with the state.")
	})
	if err := c.SetPower(t.Context(), bmc.PowerOn); err == nil {
		t.Error("SetPower(on) error = nil though the system stays off")
	}
}
