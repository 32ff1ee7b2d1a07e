package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// power maps PowerState.
func power(state string) bmc.Power {
	switch schemas.PowerState(state) {
	case schemas.OnPowerState, schemas.PausedPowerState:
		return bmc.On
	case schemas.OffPowerState:
		return bmc.Off
	case schemas.PoweringOnPowerState:
		return bmc.PoweringOn
	case schemas.PoweringOffPowerState:
		return bmc.PoweringOff
	default:
		return ""
	}
}

// resetTypes are the ways to do a power action, best first.
var resetTypes = map[bmc.PowerAction][]schemas.ResetType{
	// PushPowerButton only ever reaches a system that is off: see SetPower.
	bmc.PowerOn:      {schemas.OnResetType, schemas.ForceOnResetType, schemas.PushPowerButtonResetType},
	bmc.PowerOff:     {schemas.ForceOffResetType},
	bmc.PowerSoftOff: {schemas.GracefulShutdownResetType},
	bmc.PowerReset:   {schemas.ForceRestartResetType, schemas.PowerCycleResetType},
	bmc.PowerCycle:   {schemas.PowerCycleResetType},
}

// reached are the states in which a power action has nothing left to do.
var reached = map[bmc.PowerAction][]bmc.Power{
	bmc.PowerOn:      {bmc.On, bmc.PoweringOn},
	bmc.PowerOff:     {bmc.Off},
	bmc.PowerSoftOff: {bmc.Off, bmc.PoweringOff},
}

// SetPower resets the system, unless it is as wanted: services differ on
// whether that is an error, and a power button would do the opposite.
func (c *client) SetPower(ctx context.Context, a bmc.PowerAction) error {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	if (a == bmc.PowerReset || a == bmc.PowerCycle) && power(s.Power) == bmc.Off {
		a = bmc.PowerOn
	}
	if done(a, s) {
		return nil
	}
	resetType, err := c.resetType(ctx, a, s)
	if a == bmc.PowerReset && (errors.Is(err, bmc.ErrUnsupported) || err == nil && c.hangs(s)) {
		c.lessons.Learn(bmc.Lesson{Topic: aboutReset, Way: resetTwoSteps, Odd: true})
		return c.offAndOn(ctx)
	}
	if err != nil {
		return err
	}
	if a != bmc.PowerOff && a != bmc.PowerSoftOff {
		if err := c.renewBoot(ctx, s); err != nil {
			return err
		}
	}
	target := s.Actions.Reset.Target
	if target == "" {
		target = strings.TrimRight(s.uri, "/") + "/Actions/ComputerSystem.Reset"
	}
	err = c.settled(ctx, a, func() error {
		_, err := c.once(ctx, http.MethodPost, target, map[string]any{"ResetType": resetType}, nil)
		return err
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forced = nil
		if a == bmc.PowerReset {
			c.forced = new(c.clock.Now())
		}
	}
	return err
}

const (
	resetTwoSteps = "off, and on again"
	// hangLimit is how long the longest POST takes.
	hangLimit = 10 * time.Minute
	// offLimit is for how long a system may take to be off.
	offLimit = time.Minute
)

// hangs reports whether a system does not get over a reset by force, as some do
// (libredfish, lenovo.rs, of an SR675): it was reset long ago, and is in POST
// yet.
func (c *client) hangs(s computerSystem) bool {
	if c.lessons.Way(aboutReset) == resetTwoSteps {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forced != nil && c.clock.Since(*c.forced) > hangLimit && inPOST[s.Progress.Last]
}

// offAndOn is a reset in two steps, for systems that have none (iDRAC 8) or do
// not get over it.
func (c *client) offAndOn(ctx context.Context) error {
	if err := c.SetPower(ctx, bmc.PowerOff); err != nil {
		return err
	}
	for began := c.clock.Now(); ; {
		s, err := c.computerSystem(ctx)
		if err != nil {
			return err
		}
		if power(s.Power) == bmc.Off {
			return c.SetPower(ctx, bmc.PowerOn)
		}
		if c.clock.Since(began) >= offLimit {
			return errors.New("redfish: power reset: the BMC accepted to switch the system off, and it stays on")
		}
		if err := c.sleep(ctx, busyWait); err != nil {
			return fmt.Errorf("redfish: power reset: %w", err)
		}
	}
}

// settleLimit is for how long power is asked for that has to settle.
const settleLimit = 90 * time.Second

// settled asks for power until the BMC does not say that power has to settle
// first, as iDRAC 10 does with a 409 (bugs.launchpad.net/ironic bug 2162995) and
// iLO with a message.
func (c *client) settled(ctx context.Context, a bmc.PowerAction, ask func() error) error {
	began := c.clock.Now()
	for wait := busyWait; ; wait = min(2*wait, busyWaitMost) {
		err := ask()
		e := new(statusError)
		if !errors.As(err, &e) || e.status/100 != 4 && !errors.Is(err, bmc.ErrBusy) || errors.Is(err, bmc.ErrUnauthorized) {
			if err == nil && wait > busyWait {
				c.lessons.Learn(bmc.Lesson{Topic: aboutPower, Way: "it has to settle before the next change", Odd: true})
			}
			return err
		}
		// Perhaps it came to that state by itself in between.
		if s, e := c.computerSystem(ctx); e == nil && done(a, s) {
			return nil
		}
		if e.status != http.StatusConflict && !errors.Is(err, bmc.ErrBusy) || c.clock.Since(began)+wait > settleLimit {
			return err
		}
		if e := c.sleep(ctx, wait); e != nil {
			return fmt.Errorf("%w: %w", err, e)
		}
	}
}

func done(a bmc.PowerAction, s computerSystem) bool {
	for _, state := range reached[a] {
		if power(s.Power) == state {
			return true
		}
	}
	return false
}

// resetType chooses among what the service offers. One that offers nothing
// gets the first choice.
func (c *client) resetType(ctx context.Context, a bmc.PowerAction, s computerSystem) (schemas.ResetType, error) {
	wanted := resetTypes[a]
	if wanted == nil {
		return "", fmt.Errorf("redfish: power %q: %w", a, bmc.ErrUnsupported)
	}
	offered := s.Actions.Reset.Types
	if offered == nil && s.Actions.Reset.Info != "" {
		var err error
		if offered, err = c.resetInfo(ctx, s.Actions.Reset.Info); err != nil {
			return "", err
		}
	}
	if len(offered) == 0 {
		return wanted[0], nil
	}
	for _, w := range wanted {
		for _, o := range offered {
			if o == string(w) {
				return w, nil
			}
		}
	}
	return "", fmt.Errorf("redfish: power %s: %w: it offers %s", a, bmc.ErrUnsupported, strings.Join(offered, ", "))
}

// resetInfo reads the reset types from an ActionInfo, which OpenBMC has in
// place of the annotation. They do not change while the BMC runs.
func (c *client) resetInfo(ctx context.Context, uri string) ([]string, error) {
	c.mu.Lock()
	types := c.resets
	c.mu.Unlock()
	if types != nil {
		return types, nil
	}
	var info struct {
		Parameters []struct {
			Name   string          `json:"Name"`
			Values json.RawMessage `json:"AllowableValues"`
		} `json:"Parameters"`
	}
	if _, err := c.get(ctx, uri, &info); err != nil {
		return nil, err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			_ = decode(p.Values, &types)
		}
	}
	c.mu.Lock()
	c.resets = types
	c.mu.Unlock()
	return types, nil
}
