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

// powerState converts a PowerState to a bmc.Power, "" if it is unknown.
func powerState(state string) bmc.Power {
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

// resetTypes lists the ResetTypes for each power action, best first.
var resetTypes = map[bmc.PowerAction][]schemas.ResetType{
	// PushPowerButton is sent only to a system that is off: see SetPower.
	bmc.PowerOn:      {schemas.OnResetType, schemas.ForceOnResetType, schemas.PushPowerButtonResetType},
	bmc.PowerOff:     {schemas.ForceOffResetType},
	bmc.PowerSoftOff: {schemas.GracefulShutdownResetType},
	bmc.PowerReset:   {schemas.ForceRestartResetType, schemas.PowerCycleResetType},
	bmc.PowerCycle:   {schemas.PowerCycleResetType},
}

// satisfiedStates lists the states in which a power action has no effect.
var satisfiedStates = map[bmc.PowerAction][]bmc.Power{
	bmc.PowerOn:      {bmc.On, bmc.PoweringOn},
	bmc.PowerOff:     {bmc.Off},
	bmc.PowerSoftOff: {bmc.Off, bmc.PoweringOff},
}

// SetPower sends a reset, unless the system is in the wanted state already:
// services differ on whether that is an error, and PushPowerButton would do the
// opposite.
func (c *client) SetPower(ctx context.Context, a bmc.PowerAction) error {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	if (a == bmc.PowerReset || a == bmc.PowerCycle) && powerState(s.Power) == bmc.Off {
		a = bmc.PowerOn
	}
	if isPowered(a, s) {
		return nil
	}
	resetType, err := c.resetType(ctx, a, s)
	if a == bmc.PowerReset && (errors.Is(err, bmc.ErrUnsupported) || err == nil && c.hangsAfterReset(s)) {
		c.workarounds.Record(bmc.Workaround{Topic: topicReset, Variant: resetTwoSteps, Nonstandard: true})
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
	err = c.retryUntilSettled(ctx, a, func() error {
		_, err := c.doOnce(ctx, http.MethodPost, target, map[string]any{"ResetType": resetType}, nil)
		return err
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forcedReset = nil
		if a == bmc.PowerReset {
			c.forcedReset = new(c.clock.Now())
		}
	}
	return err
}

const (
	resetTwoSteps = "off, and on again"
	// postLimit is the duration of the longest POST.
	postLimit = 10 * time.Minute
	// offLimit bounds how long a system may take to power off.
	offLimit = time.Minute
)

// hangsAfterReset reports whether the system hangs after a forced reset, as some
// models do (libredfish, lenovo.rs, of an SR675): it was reset longer ago than the
// longest POST takes, and is still in POST.
func (c *client) hangsAfterReset(s computerSystem) bool {
	if c.workarounds.Variant(topicReset) == resetTwoSteps {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forcedReset != nil && c.clock.Since(*c.forcedReset) > postLimit && inPOST[s.Progress.Last]
}

// offAndOn replaces a reset by power off and power on, for systems that have no
// reset (iDRAC 8) or hang after one.
func (c *client) offAndOn(ctx context.Context) error {
	if err := c.SetPower(ctx, bmc.PowerOff); err != nil {
		return err
	}
	for began := c.clock.Now(); ; {
		s, err := c.computerSystem(ctx)
		if err != nil {
			return err
		}
		if powerState(s.Power) == bmc.Off {
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

// settleLimit bounds the retries of a reset while the BMC reports that power has
// to settle.
const settleLimit = 90 * time.Second

// retryUntilSettled repeats ask while the BMC refuses it because power has to
// settle first: iDRAC 10 answers 409 (bugs.launchpad.net/ironic bug 2162995), iLO
// sends a message.
func (c *client) retryUntilSettled(ctx context.Context, a bmc.PowerAction, ask func() error) error {
	began := c.clock.Now()
	for wait := busyWait; ; wait = min(2*wait, maxBusyWait) {
		err := ask()
		e := new(statusError)
		if !errors.As(err, &e) || e.status/100 != 4 && !errors.Is(err, bmc.ErrBusy) || errors.Is(err, bmc.ErrUnauthorized) {
			if err == nil && wait > busyWait {
				c.workarounds.Record(bmc.Workaround{Topic: topicPower, Variant: "it has to settle before the next change", Nonstandard: true})
			}
			return err
		}
		// The system may have reached the state in the meantime.
		if s, e := c.computerSystem(ctx); e == nil && isPowered(a, s) {
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

func isPowered(a bmc.PowerAction, s computerSystem) bool {
	for _, state := range satisfiedStates[a] {
		if powerState(s.Power) == state {
			return true
		}
	}
	return false
}

// resetType chooses the best ResetType that the service offers, or the best of all
// if the service lists none.
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

// resetInfo reads the reset types from an ActionInfo, which OpenBMC has instead of
// the annotation. It caches them: they do not change while the BMC runs.
func (c *client) resetInfo(ctx context.Context, uri string) ([]string, error) {
	c.mu.Lock()
	types := c.knownResetTypes
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
	c.knownResetTypes = types
	c.mu.Unlock()
	return types, nil
}
