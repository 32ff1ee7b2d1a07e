package conformance

import (
	"context"
	"errors"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// chassisControl is the IPMI command of power (§28.3).
func chassisControl(how byte) ipmi.Request {
	return ipmi.Request{NetFn: ipmi.Chassis, Command: 0x02, Data: []byte{how}, Name: "Chassis Control"}
}

// Actions of Chassis Control.
const (
	ipmiOff, ipmiOn, ipmiCycle, ipmiSoft = 0, 1, 2, 5
)

// ipmiPowers controls the power by IPMI.
func ipmiPowers(ctx context.Context, r *Run) Outcome {
	s, err := r.IPMISession(ctx)
	if err != nil {
		return Judge(err)
	}
	defer func() { r.IPMIClose(ctx, s) }()
	was, err := r.ipmiPower(ctx)
	if err != nil {
		return Judge(err)
	}
	back := []byte{byte(ipmi.Chassis), 0x02, ipmiOff}
	if was {
		back[2] = ipmiOn
	}
	control := func(how byte) error {
		// A session ends after a minute; the waits between commands are longer.
		r.IPMIClose(ctx, s)
		if s, err = r.IPMISession(ctx); err != nil {
			return err
		}
		_, err := r.IPMIChange(ctx, s, Disruptive, chassisControl(how), back)
		return err
	}
	reach := func(on bool, what string) error {
		ok, err := r.Poll(ctx, powerInterval, powerLimit, func() (bool, error) {
			now, err := r.ipmiPower(ctx)
			return now == on, err
		})
		if err == nil && !ok {
			err = Findingf("%v after %s the power has not changed", powerLimit, what)
		}
		return err
	}
	o := Passed("")
	if !was {
		if err := control(ipmiOn); err != nil {
			return judgeIPMI(err)
		}
		if err := reach(true, "power on"); err != nil {
			return Judge(err)
		}
	}
	for _, step := range []struct {
		what string
		how  byte
		on   bool
	}{{"power off", ipmiOff, false}, {"power off when off", ipmiOff, false}, {"power on", ipmiOn, true}, {"power cycle", ipmiCycle, true}, {"power soft", ipmiSoft, false}} {
		err := control(step.how)
		code := ipmi.Code(0)
		switch {
		case errors.As(err, &code) && step.what == "power off when off":
			o = Warned("power off is refused while the power is off: %v", code).Quirky("ipmi-off-when-off-errors")
			continue
		case errors.As(err, &code) && step.how == ipmiSoft:
			o = o.With("power soft", "refused: %v", code) // as during POST
			continue
		case errors.As(err, &code):
			return Failed("%s: %v", step.what, code)
		case err != nil:
			return Judge(err)
		}
		if step.how == ipmiSoft {
			break // the operating system decides
		}
		if step.how == ipmiCycle {
			if err := r.cycled(ctx, nil); err != nil {
				return Judge(err)
			}
		}
		if err := reach(step.on, step.what); err != nil {
			return Judge(err)
		}
	}
	return o
}
