package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// forceOff powers the system off, twice.
func forceOff(ctx context.Context, r *Run) Outcome {
	if err := r.ensure(ctx, "On"); err != nil {
		return Judge(err)
	}
	_, took, err := r.resetTo(ctx, "ForceOff", "Off")
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("time to Off", "%v", took.Round(time.Second))
	resp, err := r.reset(ctx, "ForceOff")
	if err != nil {
		return Judge(err)
	}
	switch {
	case resp.Status >= 500:
		return Failed("a second ForceOff: %s", resp.Problem())
	case resp.Status/100 != 2:
		o.Verdict, o.Reason = Warn, "a second ForceOff is refused: "+resp.Problem()
	}
	return o
}

// powerOn powers the system on at once after it is off.
func powerOn(ctx context.Context, r *Run) Outcome {
	if err := r.ensure(ctx, "On"); err != nil {
		return Judge(err)
	}
	if _, _, err := r.resetTo(ctx, "ForceOff", "Off"); err != nil {
		return Judge(err)
	}
	began := r.Now()
	first, err := r.reset(ctx, "On")
	if err != nil {
		return Judge(err)
	}
	refused := time.Duration(0)
	if first.Status/100 != 2 {
		if refused, _, err = r.resetTo(ctx, "On", "On"); err != nil {
			return Judge(err)
		}
	} else if ok, err := r.Poll(ctx, powerInterval, powerLimit, func() (bool, error) {
		now, err := r.powerState(ctx)
		return now == "On", err
	}); err != nil {
		return Judge(err)
	} else if !ok && r.bmc.dry == nil {
		return Failed("%v after Reset On the system is not On", powerLimit)
	}
	took := r.Now().Sub(began)
	o := Passed("").With("time to On", "%v", took.Round(time.Second))
	switch {
	case first.Status == http.StatusConflict:
		o.Verdict, o.Reason = Warn, fmt.Sprintf("Reset On is answered 409 for %v after power off", refused.Round(time.Second))
		o.Quirks = []Quirk{{Name: "power-settle-409", Values: map[string]string{"for": refused.Round(time.Second).String()}}}
	case first.Status == http.StatusBadRequest:
		o.Verdict, o.Reason = Warn, fmt.Sprintf("Reset On is answered 400 for %v after power off", refused.Round(time.Second))
		o.Quirks = []Quirk{{Name: "power-invalid-state-400", Values: map[string]string{"for": refused.Round(time.Second).String()}}}
	case first.Status/100 != 2:
		o.Verdict, o.Reason = Warn, "Reset On after power off is refused at first: "+first.Problem()
	}
	return o
}

// forceRestart restarts the system and watches its boot.
func forceRestart(ctx context.Context, r *Run) Outcome {
	if ok, err := r.lists(ctx, "ForceRestart"); err != nil {
		return Judge(err)
	} else if !ok {
		return Skipped("ForceRestart is not among the reset types")
	}
	if err := r.ensure(ctx, "On"); err != nil {
		return Judge(err)
	}
	before, err := r.awaitPOST(ctx)
	if err != nil {
		return Judge(err)
	}
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	system, _, err := r.Get(ctx, place.SystemURI)
	if err != nil {
		return Judge(err)
	}
	resetAt := restartTimes(system)
	resp, err := r.reset(ctx, "ForceRestart")
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("Reset ForceRestart: %s", resp.Problem())
	}
	seen := false // the restart: the power, the boot state or a time of them changed
	if _, err = r.Poll(ctx, powerInterval/4, r.patience(time.Minute), func() (bool, error) {
		v, _, err := r.Get(ctx, place.SystemURI)
		seen = v.At("PowerState").TextOr("On") != "On" || len(before) > 0 && bootState(v) != before[len(before)-1] || restartTimes(v) != resetAt
		return seen, err
	}); err != nil {
		return Judge(err)
	}
	states, err := r.awaitPOST(ctx)
	if finding := new(Finding); errors.As(err, &finding) {
		// Off and On bring it back.
		if back := r.restart(ctx); back == nil {
			return Failed("after ForceRestart %v; off and on ends it", err).Quirky("forcerestart-hangs")
		}
	}
	if err != nil {
		return Judge(err)
	}
	if !seen && len(before) > 0 {
		return Failed("ForceRestart is answered %d, and the system does not restart", resp.Status)
	}
	return Passed("").With("boot states", "%s", strings.Join(states, " "))
}

// restartTimes returns the times of a system that a restart changes, "" without them. They tell of
// one that was over before the next look.
func restartTimes(system Value) [2]string {
	return [2]string{system.At("LastResetTime").TextOr(""), system.At("BootProgress", "LastStateTime").TextOr("")}
}

// gracefulShutdown shuts down a system in POST, which has no operating system, and
// one that runs.
func gracefulShutdown(ctx context.Context, r *Run) Outcome {
	if ok, err := r.lists(ctx, "GracefulShutdown"); err != nil {
		return Judge(err)
	} else if !ok {
		return Skipped("GracefulShutdown is not among the reset types")
	}
	o := Passed("")
	if err := r.ensure(ctx, "On"); err != nil {
		return Judge(err)
	}
	if _, err := r.awaitPOST(ctx); err != nil {
		return Judge(err)
	}
	resp, err := r.reset(ctx, "GracefulShutdown")
	if err != nil {
		return Judge(err)
	}
	if resp.Status >= 500 {
		return Failed("Reset GracefulShutdown: %s", resp.Problem())
	}
	began := r.Now()
	off, err := r.Poll(ctx, powerInterval, r.patience(10*time.Minute), func() (bool, error) {
		now, err := r.powerState(ctx)
		return now == "Off", err
	})
	if err != nil {
		return Judge(err)
	}
	if off {
		o = o.With("time to Off", "%v", r.Now().Sub(began).Round(time.Second))
	} else {
		o = Passed("the operating system ignores the shutdown; the power stays on")
	}
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(fmt.Errorf("after GracefulShutdown: %w", err))
	}
	return o
}

// cycled waits until a system has gone off or begun to boot, and is on again. The boot
// states before, if any, end with the one in which it was.
func (r *Run) cycled(ctx context.Context, before []string) error {
	rest := booted
	if len(before) > 0 {
		rest = before[len(before)-1:]
	}
	place, err := r.Place(ctx)
	if err != nil {
		return err
	}
	for _, wanted := range []func(power, boot string) bool{
		func(power, boot string) bool { return power != "On" || boot != "" && !slices.Contains(rest, boot) },
		func(power, _ string) bool { return power == "On" },
	} {
		if _, err := r.Poll(ctx, powerInterval/4, r.patience(time.Minute), func() (bool, error) {
			v, _, err := r.Get(ctx, place.SystemURI)
			return wanted(v.At("PowerState").TextOr(""), bootState(v)), err
		}); err != nil {
			return err
		}
	}
	_, err = r.awaitPOST(ctx)
	return err
}

// powerCycle cycles the power where it is advertised.
func powerCycle(ctx context.Context, r *Run) Outcome {
	if ok, err := r.lists(ctx, "PowerCycle"); err != nil {
		return Judge(err)
	} else if !ok {
		return Skipped("PowerCycle is not among the reset types")
	}
	if err := r.ensure(ctx, "On"); err != nil {
		return Judge(err)
	}
	before, err := r.awaitPOST(ctx)
	if err != nil {
		return Judge(err)
	}
	_, took, err := r.resetTo(ctx, "PowerCycle", "On")
	if err != nil {
		return Judge(err)
	}
	if err := r.cycled(ctx, before); err != nil {
		return Judge(err)
	}
	return Passed("").With("time to On", "%v", took.Round(time.Second))
}

// resetAnswered looks at the response to a Reset.
func resetAnswered(ctx context.Context, r *Run) Outcome {
	state, err := r.powerState(ctx)
	if err != nil {
		return Judge(err)
	}
	kind := map[string]string{"On": "ForceOff", "Off": "On"}[state]
	if kind == "" {
		return Skipped("PowerState is %s", state)
	}
	var resp *Response
	if _, err := r.Poll(ctx, powerInterval, settleLimit, func() (bool, error) {
		resp, err = r.reset(ctx, kind)
		return err == nil && resp.Status/100 == 2, err
	}); err != nil {
		return Judge(err)
	}
	o := Passed("").With("status", "%d", resp.Status)
	switch resp.Status {
	case http.StatusOK, http.StatusNoContent:
		return o
	case http.StatusAccepted:
		uri := resp.Header.Get("Location")
		if uri == "" {
			return Failed("Reset %s is answered 202 without Location", kind)
		}
		monitor, err := r.Do(ctx, Request{URI: uri})
		if err != nil {
			return Judge(err)
		}
		if monitor.Status/100 != 2 {
			return Failed("the Location of the 202, %s: %s", uri, monitor.Problem())
		}
		return o
	}
	return Failed("Reset %s: %s", kind, resp.Problem())
}

// postVisible watches the states of a boot.
func postVisible(ctx context.Context, r *Run) Outcome {
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(err)
	}
	if _, _, err := r.resetTo(ctx, "On", "On"); err != nil {
		return Judge(err)
	}
	states, err := r.awaitPOST(ctx)
	if err != nil {
		return Judge(err)
	}
	if len(states) < 2 {
		return Failed("BootProgress and PostState do not change during POST: %s", strings.Join(states, ", "))
	}
	return Passed("").With("boot states", "%s", strings.Join(states, " "))
}
