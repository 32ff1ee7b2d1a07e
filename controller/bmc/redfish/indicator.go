package redfish

import (
	"context"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// blinking is the value of IndicatorLED that identifies a system. Lit does not: an
// iDRAC's indicator is lit while the system is healthy.
const blinking = "Blinking"

// indicatorOn reports whether the light that identifies the system is on.
func (s computerSystem) indicatorOn() bool {
	return s.Locator != nil && *s.Locator || s.LED == blinking
}

// Identify switches the identification light: LocationIndicatorActive, or
// IndicatorLED, which the standard had until 2020.
func (c *client) Identify(ctx context.Context, on bool) error {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	if s.Locator == nil && s.LED == "" {
		return unsupported("Identify", "the system has no indicator")
	}
	if s.indicatorOn() == on {
		return nil
	}
	if s.Locator != nil {
		_, err := c.patch(ctx, s.uri, s.tag, map[string]any{"LocationIndicatorActive": on})
		return err
	}
	to := "Off"
	if on {
		to = blinking
	}
	_, err = c.patch(ctx, s.uri, s.tag, map[string]any{"IndicatorLED": to})
	if isBadRequest(err) && !on {
		// iDRAC 9 takes Lit and Blinking only.
		_, err = c.patch(ctx, s.uri, s.tag, map[string]any{"IndicatorLED": "Lit"})
	}
	return err
}

var _ bmc.Client = (*client)(nil)
