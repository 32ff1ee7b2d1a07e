package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// change is what to write into Boot. A nil field is not written.
type change struct {
	Enabled *string `json:"BootSourceOverrideEnabled,omitempty"`
	Target  *string `json:"BootSourceOverrideTarget,omitempty"`
	Mode    *string `json:"BootSourceOverrideMode,omitempty"`
	URL     *string `json:"HttpBootUri,omitempty"`
}

// but is a change without what is so already, and whether that is less.
func (ch change) but(o *override) (change, bool) {
	was := ch
	if ch.Enabled != nil && *ch.Enabled == o.Enabled {
		ch.Enabled = nil
	}
	if ch.Target != nil && *ch.Target == o.Target {
		ch.Target = nil
	}
	return ch, ch != was
}

// The ways to write an override.
const (
	bootShort    = "target and enabled"
	bootWhole    = "target, enabled and mode together"
	bootSteps    = "mode first, then target and enabled"
	bootTarget   = "target alone"
	bootDiffers  = "what differs alone"
	bootSettings = "in the settings resource"
	bootWholeSet = "in the settings resource, target, enabled and mode together"
)

var inSettings = []string{bootSettings, bootWholeSet}

// fromDHCP is how a system knows what to boot by HTTP whose BMC takes no URL.
const fromDHCP = "DHCP names what"

// standingOnce is how an override is made to stay that does not.
const standingOnce = "once, anew before each start"

// changeFor is the smallest change that makes an override of s: some services
// refuse more (HPE DL160, bmc-toolbox/bmclib pull 318), but all that take an
// override take Enabled with Target, and some take no change without Enabled.
func (c *client) changeFor(b bmc.Boot, target string, o *override) change {
	enabled := schemas.DisabledBootSourceOverrideEnabled
	if target != "" {
		enabled = schemas.OnceBootSourceOverrideEnabled
		if b.Persistent && c.lessons.Way(aboutStanding) != standingOnce {
			enabled = schemas.ContinuousBootSourceOverrideEnabled
		}
	}
	ch := change{Enabled: new(string(enabled))}
	if target != "" {
		ch.Target = &target
	}
	if mode := modeFor(b.Mode); mode != "" && o.Mode != "" && o.Mode != mode {
		ch.Mode = &mode
	}
	if b.Device == bmc.BootHTTP && b.URL != "" {
		ch.URL = &b.URL
	}
	return ch
}

// targetsFor are the boot sources that the service offers for a device, best
// first.
func (c *client) targetsFor(d bmc.Device, o *override) []string {
	if d == bmc.BootNone {
		return []string{""}
	}
	var offered []string
	for _, t := range devices[d] {
		if o.Targets == nil && t != usbCD || slices.Contains(o.Targets, t) {
			offered = append(offered, t)
		}
	}
	if known := c.lessons.Way(aboutTarget); d == bmc.BootCD && slices.Contains(offered, known) {
		offered = slices.Insert(slices.DeleteFunc(offered, func(t string) bool { return t == known }), 0, known)
	}
	return offered
}

// SetBoot sets the boot override. It writes nothing when the override is as
// wanted, which some services refuse (storyboard.openstack.org story 2007355),
// and reads back what it wrote, because some accept it and do nothing
// (bmc-toolbox/bmclib pull 459).
func (c *client) SetBoot(ctx context.Context, b bmc.Boot) error {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	if s.Boot == nil && b.Device != bmc.BootNone {
		return fmt.Errorf("redfish: boot override: %w", bmc.ErrUnsupported)
	}
	if s.Boot != nil {
		if s.Boot, err = c.pendingBoot(ctx, s); err != nil {
			return err
		}
		if b.DHCP && c.lessons.Way(aboutURL) == fromDHCP {
			b.URL = ""
		}
		err := c.keepBoot(ctx, b, s)
		if b.DHCP && b.URL != "" && refusesBoot(err) {
			// iLO and Lenovo XCC2 boot by HTTP, and have no HttpBootUri
			// (dsx-ai-factory/libredfish pull 76).
			b.URL = ""
			if without := c.keepBoot(ctx, b, s); without == nil {
				c.lessons.Learn(bmc.Lesson{Topic: aboutURL, Way: fromDHCP, Odd: true})
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	if b.Mode == bmc.BootModeAny {
		return nil
	}
	return c.setSecureBoot(ctx, b.Mode == bmc.UEFISecure, s)
}

// keepBoot writes an override that is not there. Where none stays, one that
// shall is for once, and the driver sets it again before each start.
func (c *client) keepBoot(ctx context.Context, b bmc.Boot, s computerSystem) error {
	// Lenovo XCC has Once and Disabled only (bmclib, providers/lenovo/boot.go).
	once := func() { c.lessons.Learn(bmc.Lesson{Topic: aboutStanding, Way: standingOnce, Odd: true}) }
	if b.Persistent && s.Boot.Enableds != nil && !slices.Contains(s.Boot.Enableds, string(schemas.ContinuousBootSourceOverrideEnabled)) {
		once()
	}
	c.stand(bmc.Boot{})
	var err error
	if !c.holds(s.Boot, b) {
		err = c.writeBoot(ctx, b, s)
	}
	if b.Persistent && noContinuous(err) {
		once()
		err = c.writeBoot(ctx, b, s)
	}
	if err == nil && b.Persistent && c.lessons.Way(aboutStanding) == standingOnce {
		c.stand(b)
	}
	return err
}

func (c *client) stand(b bmc.Boot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standing = b
}

// renewBoot sets an override that shall stay, and does not, before a start.
func (c *client) renewBoot(ctx context.Context, s computerSystem) error {
	c.mu.Lock()
	b := c.standing
	c.mu.Unlock()
	if b.Device == bmc.BootNone || s.Boot == nil {
		return nil
	}
	now, err := c.pendingBoot(ctx, s)
	if s.Boot = now; err != nil || c.holds(s.Boot, b) {
		return err
	}
	return c.writeBoot(ctx, b, s)
}

// shownBoot is the override of a system in terms of package bmc.
func (c *client) shownBoot(ctx context.Context, s computerSystem) (bmc.Boot, error) {
	o, err := c.pendingBoot(ctx, s)
	if err != nil {
		return bmc.Boot{}, err
	}
	b := o.boot()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing.Device != bmc.BootNone && (b.Device == bmc.BootNone || b.Device == c.standing.Device) {
		// It is set again before the system starts.
		b.Device, b.Persistent, b.URL = c.standing.Device, true, c.standing.URL
	}
	return b, nil
}

// pendingBoot is the override of a system, or that which its settings resource
// holds for the next start, where that is where it is written.
func (c *client) pendingBoot(ctx context.Context, s computerSystem) (*override, error) {
	if s.Boot == nil || s.Settings.Object.ID == "" || !slices.Contains(inSettings, c.lessons.Way(aboutBoot)) {
		return s.Boot, nil
	}
	var p computerSystem
	if _, err := c.get(ctx, s.Settings.Object.ID, &p); err != nil {
		return nil, err
	}
	if p.Boot == nil || p.Boot.Enabled == "" {
		return s.Boot, nil
	}
	o := *p.Boot
	o.Enableds, o.Targets = s.Boot.Enableds, s.Boot.Targets
	if o.Mode == "" {
		o.Mode = s.Boot.Mode
	}
	return &o, nil
}

// writeBoot writes an override, in the way that this BMC takes.
func (c *client) writeBoot(ctx context.Context, b bmc.Boot, s computerSystem) error {
	targets := c.targetsFor(b.Device, s.Boot)
	if len(targets) == 0 {
		return fmt.Errorf("redfish: boot from %q: %w", b.Device, bmc.ErrUnsupported)
	}
	var first error
	for i, target := range targets {
		_, err := c.climb(aboutBoot, c.bootWays(ctx, b, target, s), refusesBoot)
		if err == nil && target == string(schemas.CdBootSource) {
			err = c.virtualFirst(ctx, b, s)
		}
		if err == nil {
			if b.Device == bmc.BootCD && len(targets) > 1 {
				c.lessons.Learn(bmc.Lesson{Topic: aboutTarget, Way: target, Odd: target != devices[bmc.BootCD][len(devices[bmc.BootCD])-1]})
			}
			return nil
		}
		if first == nil {
			first = err
		}
		if !refusesBoot(err) || i == len(targets)-1 {
			break
		}
	}
	return first
}

// bootWays are the ways to write an override.
func (c *client) bootWays(ctx context.Context, b bmc.Boot, target string, s computerSystem) []way {
	short := c.changeFor(b, target, s.Boot)
	whole := short
	if whole.Mode == nil && s.Boot.Mode != "" {
		whole.Mode = &s.Boot.Mode
	}
	if whole.Target == nil {
		whole.Target = new(string(schemas.NoneBootSource))
	}
	write := func(all ...change) func() (answer, error) {
		return func() (answer, error) {
			var a answer
			for _, ch := range all {
				var err error
				if a, err = c.patch(ctx, s.uri, s.tag, map[string]any{"Boot": ch}); err != nil {
					return a, err
				}
			}
			if a.status == http.StatusAccepted {
				return a, nil
			}
			return a, c.verifyBoot(ctx, b, a)
		}
	}
	ways := []way{{bootShort, write(short)}}
	if s.Boot.Mode != "" {
		// AMI and ASRock Rack want all three together (ironic's management.py).
		ways = append(ways, way{bootWhole, write(whole)})
	}
	if short.Mode != nil {
		rest := short
		rest.Mode = nil
		ways = append(ways, way{bootSteps, write(change{Mode: short.Mode}, rest)})
	}
	if differs, less := short.but(s.Boot); less && differs != (change{}) || c.lessons.Way(aboutBoot) == bootDiffers {
		// Some refuse what is so already (storyboard.openstack.org story 2007355).
		ways = append(ways, way{bootDiffers, write(differs)})
	}
	if short.Target != nil {
		ways = append(ways, way{bootTarget, write(change{Target: short.Target, URL: short.URL})})
	}
	if settings := s.Settings.Object.ID; settings != "" {
		// iDRAC 10 keeps Boot read-only and takes changes in its settings
		// resource, with that one's tag (stmcginnis/gofish pull 511). They show
		// up in the system at the next boot.
		later := func(ch change) func() (answer, error) {
			return func() (answer, error) {
				current, err := c.do(ctx, http.MethodGet, settings, nil, nil)
				if err != nil {
					return current, err
				}
				return c.patch(ctx, settings, etag(current), map[string]any{"Boot": ch})
			}
		}
		ways = append(ways, way{bootSettings, later(short)}, way{bootWholeSet, later(whole)})
	}
	return ways
}

// errIgnored is an override that was accepted and is not there.
var errIgnored = errors.New("redfish: boot override: the BMC accepted it and did not set it")

// refusesBoot reports whether another way may do.
func refusesBoot(err error) bool {
	return errors.Is(err, errIgnored) || (badRequest(err) || readOnly(err)) && !errors.Is(err, bmc.ErrBusy) && !noContinuous(err)
}

// noContinuous reports whether it is Continuous that a service does not know.
func noContinuous(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.has("PropertyValueNotInList") && slices.ContainsFunc(e.arguments, func(a string) bool {
		return a == string(schemas.ContinuousBootSourceOverrideEnabled) || a == "BootSourceOverrideEnabled" || a == "#/Boot/BootSourceOverrideEnabled"
	})
}

func badRequest(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.status == http.StatusBadRequest
}

func readOnly(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.has("PropertyNotWritable"))
}

// verifyBoot reads until the override is as b, a few times: some services
// show what they accepted a moment later.
func (c *client) verifyBoot(ctx context.Context, b bmc.Boot, a answer) error {
	var s computerSystem
	if decode(a.body, &s) == nil && s.Boot != nil && s.Boot.Enabled != "" && c.holds(s.Boot, b) {
		return nil // the answer to the change shows it
	}
	const reads = 4
	for i := range reads {
		s, err := c.computerSystem(ctx)
		if err != nil {
			return err
		}
		if s.Boot != nil && c.holds(s.Boot, b) {
			return nil
		}
		if i < reads-1 {
			if err := c.sleep(ctx, time.Second<<i); err != nil {
				return fmt.Errorf("redfish: boot override: %w", err)
			}
		}
	}
	return errIgnored
}

// holds reports whether an override is as wanted, as far as this BMC has it.
func (c *client) holds(o *override, b bmc.Boot) bool {
	if c.lessons.Way(aboutStanding) == standingOnce {
		b.Persistent = false
	}
	return o.holds(b)
}
