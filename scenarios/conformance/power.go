package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Time limits of changes of power. Clients such as Ironic wait as long.
const (
	powerLimit    = 3 * time.Minute
	postLimit     = 20 * time.Minute
	settleLimit   = 2 * time.Minute // time limit of a refusal after power off
	powerInterval = 2 * time.Second
)

// powerState reads the system's power state now.
func (r *Run) powerState(ctx context.Context) (string, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return "", err
	}
	v, _, err := r.Get(ctx, place.SystemURI)
	if err != nil {
		return "", err
	}
	return v.At("PowerState").Text()
}

// reset sends a Reset. What takes the check's Resets back is the power state
// before the first one.
func (r *Run) reset(ctx context.Context, kind string) (*Response, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	target, err := place.System.At("Actions", "#ComputerSystem.Reset", "target").Text()
	if err != nil {
		return nil, err
	}
	c := Change{Level: Disruptive, Request: Request{Method: http.MethodPost, URI: target, Body: map[string]string{"ResetType": kind}}}
	if r.powerWas == "" {
		r.powerWas = place.System.At("PowerState").TextOr("")
		c.Undo = powerBack(place.SystemURI, target, r.powerWas)
	}
	return r.Change(ctx, c)
}

// powerBack returns what brings the power to a state.
func powerBack(system, target, state string) []Undo {
	to := map[string]struct{ kind, state string }{
		"On": {"On", "On"}, "PoweringOn": {"On", "On"}, "Off": {"ForceOff", "Off"}, "PoweringOff": {"ForceOff", "Off"},
	}[state]
	if to.kind == "" {
		return nil
	}
	return []Undo{{
		Method: http.MethodPost, URI: target, Body: jsonBody(map[string]string{"ResetType": to.kind}),
		State: &State{Resource: system, Property: "PowerState", Value: to.state},
	}}
}

// holds reports whether a property has the value. One that is absent or null is
// false.
func (s State) holds(v Value) bool {
	return fmt.Sprint(v.Raw()) == s.Value || v.Null() && s.Value == "false"
}

// bring sends the request of an undo until the resource shows its state.
func (r *Run) bring(ctx context.Context, u Undo) error {
	problem := ""
	reached, err := r.Poll(ctx, powerInterval, settleLimit+powerLimit, func() (bool, error) {
		v, _, err := r.Get(ctx, u.State.Resource)
		if err != nil || u.State.holds(v.At(strings.Split(u.State.Property, "/")...)) {
			return err == nil, err
		}
		resp, err := r.roundTrip(ctx, Request{Method: u.Method, URI: u.URI, Body: []byte(u.Body)})
		if err == nil && resp.Status/100 != 2 {
			problem = resp.Problem()
		}
		return false, err
	})
	if err == nil && !reached {
		err = fmt.Errorf("%s of %s is not %s again: %s", u.State.Property, u.State.Resource, u.State.Value, problem)
	}
	return err
}

// resetTo sends a Reset, again while the BMC refuses it for the moment, and waits
// for a power state. It returns how long the BMC refused and how long the state
// took.
func (r *Run) resetTo(ctx context.Context, kind, state string) (refused, took time.Duration, err error) {
	began := r.Now()
	var resp *Response
	accepted, err := r.Poll(ctx, powerInterval, settleLimit, func() (bool, error) {
		resp, err = r.reset(ctx, kind)
		if err != nil {
			return false, err
		}
		switch resp.Status {
		case http.StatusConflict, http.StatusServiceUnavailable:
			return false, nil
		case http.StatusBadRequest:
			return false, nil // some BMCs say so after a change of power
		}
		return true, nil
	})
	if err != nil {
		return 0, 0, err
	}
	if !accepted || resp.Status/100 != 2 {
		return 0, 0, Findingf("Reset %s: %s", kind, resp.Problem())
	}
	refused = r.Now().Sub(began)
	now := ""
	reached, err := r.Poll(ctx, powerInterval, powerLimit, func() (bool, error) {
		now, err = r.powerState(ctx)
		return now == state, err
	})
	if err != nil {
		return refused, 0, err
	}
	if !reached && r.bmc.dry == nil {
		return refused, 0, Findingf("%v after Reset %s PowerState is %s, not %s", powerLimit, kind, now, state)
	}
	return refused, r.Now().Sub(began) - refused, nil
}

// ensure brings the power to a state, unless it is there.
func (r *Run) ensure(ctx context.Context, state string) error {
	now, err := r.powerState(ctx)
	if err != nil || now == state {
		return err
	}
	_, _, err = r.resetTo(ctx, map[string]string{"On": "On", "Off": "ForceOff"}[state], state)
	return err
}

// restart restarts the system, from whatever state, and waits until it runs.
func (r *Run) restart(ctx context.Context) error {
	if err := r.ensure(ctx, "Off"); err != nil {
		return err
	}
	if _, _, err := r.resetTo(ctx, "On", "On"); err != nil {
		return err
	}
	_, err := r.awaitPOST(ctx)
	return err
}

// bootState returns how far the boot is, where the BMC shows it: the state of
// BootProgress or of an OEM PostState.
func bootState(system Value) string {
	if s := system.At("BootProgress", "LastState").TextOr(""); s != "" {
		return s
	}
	return system.At("Oem", "Hpe", "PostState").TextOr("")
}

// booted are the states behind POST.
var booted = []string{"OSBootStarted", "OSRunning", "SetupEntered", "FinishedPost", "InPostDiscoveryComplete"}

// restLimit is how long a system without an operating system stays in its last boot
// state, and how long a BMC that shows none is given.
const restLimit = time.Minute

// initialized is the boot state in which a system stays that finds nothing to boot.
const initialized = "SystemHardwareInitializationComplete"

// awaitPOST waits for the end of POST and returns the boot states on the way, the last
// of them at the end. A system without an operating system ends in initialized.
func (r *Run) awaitPOST(ctx context.Context) ([]string, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	var states []string
	last, since := "", r.Now()
	done, err := r.Poll(ctx, min(powerInterval, r.patience(restLimit)/4), postLimit, func() (bool, error) {
		v, _, err := r.Get(ctx, place.SystemURI)
		if err != nil {
			return false, err
		}
		s := bootState(v)
		if s != last {
			last, since = s, r.Now()
		}
		if s != "" && !slices.Contains(states, s) {
			states = append(states, s)
		}
		return slices.Contains(booted, s) || (s == "" || s == initialized) && r.Now().Sub(since) >= r.patience(restLimit), nil
	})
	if err == nil && !done && r.bmc.dry == nil {
		err = Findingf("the system is in POST for %v: %s", postLimit, strings.Join(states, ", "))
	}
	return states, err
}

// lists reports whether a reset type is advertised.
func (r *Run) lists(ctx context.Context, kind string) (bool, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return false, err
	}
	types, err := r.resetTypes(ctx, place.System.At("Actions", "#ComputerSystem.Reset"))
	return slices.Contains(types, kind), err
}
