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

// bootPatch is a PATCH of the Boot property. A nil field is not written.
type bootPatch struct {
	Enabled *string `json:"BootSourceOverrideEnabled,omitempty"`
	Target  *string `json:"BootSourceOverrideTarget,omitempty"`
	Mode    *string `json:"BootSourceOverrideMode,omitempty"`
	URL     *string `json:"HttpBootUri,omitempty"`
}

// without returns the patch without the values that o has already, and whether
// that left any out.
func (ch bootPatch) without(o *bootOverride) (bootPatch, bool) {
	was := ch
	if ch.Enabled != nil && *ch.Enabled == o.Enabled {
		ch.Enabled = nil
	}
	if ch.Target != nil && *ch.Target == o.Target {
		ch.Target = nil
	}
	return ch, ch != was
}

// The variants of a PATCH of the boot override, as an operator reads them.
const (
	bootTargetEnabled = "target and enabled"
	bootAllProperties = "target, enabled and mode together"
	bootModeFirst     = "mode first, then target and enabled"
	bootTargetOnly    = "target only"
	bootChangedOnly   = "only the properties that differ"
	bootInSettings    = "in the settings resource"
	bootAllInSettings = "in the settings resource, target, enabled and mode together"
)

var settingsVariants = []string{bootInSettings, bootAllInSettings}

// urlFromDHCP is the workaround for a BMC that takes no HttpBootUri: the DHCP
// server names the URL.
const urlFromDHCP = "the URL comes from DHCP"

// onceBeforeEachStart is the workaround for a BMC without the override Continuous.
const onceBeforeEachStart = "once, set again before each start"

// bootPatchFor returns the smallest patch that sets the override b on a system
// whose override is o. Some services refuse a larger one (HPE DL160,
// bmc-toolbox/bmclib pull 318); every service that has overrides takes Enabled
// with Target, and some refuse a patch without Enabled.
func (c *client) bootPatchFor(b bmc.Boot, target string, o *bootOverride) bootPatch {
	enabled := schemas.DisabledBootSourceOverrideEnabled
	if target != "" {
		enabled = schemas.OnceBootSourceOverrideEnabled
		if b.Persistent && c.workarounds.Variant(topicPersistentBoot) != onceBeforeEachStart {
			enabled = schemas.ContinuousBootSourceOverrideEnabled
		}
	}
	ch := bootPatch{Enabled: new(string(enabled))}
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

// bootTargets returns the values of BootSourceOverrideTarget that the service
// offers for a device, best first.
func (c *client) bootTargets(d bmc.Device, o *bootOverride) []string {
	if d == bmc.BootNone {
		return []string{""}
	}
	var offered []string
	for _, t := range bootSources[d] {
		if o.Targets == nil && t != usbCD || slices.Contains(o.Targets, t) {
			offered = append(offered, t)
		}
	}
	if known := c.workarounds.Variant(topicBootTarget); d == bmc.BootCD && slices.Contains(offered, known) {
		offered = slices.Insert(slices.DeleteFunc(offered, func(t string) bool { return t == known }), 0, known)
	}
	return offered
}

// SetBoot sets the boot override. It writes nothing when the override is set
// already, because some services refuse that (storyboard.openstack.org story
// 2007355), and reads back what it wrote, because some accept an override and
// ignore it (bmc-toolbox/bmclib pull 459).
func (c *client) SetBoot(ctx context.Context, b bmc.Boot) error {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	if s.Boot == nil && b.Device != bmc.BootNone {
		return fmt.Errorf("redfish: boot override: %w", bmc.ErrUnsupported)
	}
	if s.Boot != nil {
		if s.Boot, err = c.pendingOverride(ctx, s); err != nil {
			return err
		}
		if b.DHCP && c.workarounds.Variant(topicHTTPBoot) == urlFromDHCP {
			b.URL = ""
		}
		err := c.ensureBoot(ctx, b, s)
		if b.DHCP && b.URL != "" && refusesBoot(err) {
			// iLO and Lenovo XCC2 boot by HTTP without HttpBootUri
			// (dsx-ai-factory/libredfish pull 76).
			b.URL = ""
			if without := c.ensureBoot(ctx, b, s); without == nil {
				c.workarounds.Record(bmc.Workaround{Topic: topicHTTPBoot, Variant: urlFromDHCP, Nonstandard: true})
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

// ensureBoot writes the override unless it is set. On a BMC without persistent
// overrides it sets one for the next boot, and the driver renews it before each
// start.
func (c *client) ensureBoot(ctx context.Context, b bmc.Boot, s computerSystem) error {
	// Lenovo XCC offers Once and Disabled only (bmclib, providers/lenovo/boot.go).
	once := func() {
		c.workarounds.Record(bmc.Workaround{Topic: topicPersistentBoot, Variant: onceBeforeEachStart, Nonstandard: true})
	}
	if b.Persistent && s.Boot.Enableds != nil && !slices.Contains(s.Boot.Enableds, string(schemas.ContinuousBootSourceOverrideEnabled)) {
		once()
	}
	c.setRenewedBoot(bmc.Boot{})
	var err error
	if !c.satisfies(s.Boot, b) {
		err = c.writeBoot(ctx, b, s)
	}
	if b.Persistent && refusesContinuous(err) {
		once()
		err = c.writeBoot(ctx, b, s)
	}
	if err == nil && b.Persistent && c.workarounds.Variant(topicPersistentBoot) == onceBeforeEachStart {
		c.setRenewedBoot(b)
	}
	return err
}

func (c *client) setRenewedBoot(b bmc.Boot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewedBoot = b
}

// renewBoot writes the override again before a start, if it has to be renewed.
func (c *client) renewBoot(ctx context.Context, s computerSystem) error {
	c.mu.Lock()
	b := c.renewedBoot
	c.mu.Unlock()
	if b.Device == bmc.BootNone || s.Boot == nil {
		return nil
	}
	now, err := c.pendingOverride(ctx, s)
	if s.Boot = now; err != nil || c.satisfies(s.Boot, b) {
		return err
	}
	return c.writeBoot(ctx, b, s)
}

// currentBoot returns the override of a system as a bmc.Boot.
func (c *client) currentBoot(ctx context.Context, s computerSystem) (bmc.Boot, error) {
	o, err := c.pendingOverride(ctx, s)
	if err != nil {
		return bmc.Boot{}, err
	}
	b := o.boot()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewedBoot.Device != bmc.BootNone && (b.Device == bmc.BootNone || b.Device == c.renewedBoot.Device) {
		// The driver sets it again before the system starts.
		b.Device, b.Persistent, b.URL = c.renewedBoot.Device, true, c.renewedBoot.URL
	}
	return b, nil
}

// pendingOverride returns the override for the next start: that of the settings
// resource if the BMC takes overrides there, otherwise that of the system.
func (c *client) pendingOverride(ctx context.Context, s computerSystem) (*bootOverride, error) {
	if s.Boot == nil || s.Settings.Object.ID == "" || !slices.Contains(settingsVariants, c.workarounds.Variant(topicBootOverride)) {
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

// writeBoot writes an override, by the variant that this BMC accepts.
func (c *client) writeBoot(ctx context.Context, b bmc.Boot, s computerSystem) error {
	targets := c.bootTargets(b.Device, s.Boot)
	if len(targets) == 0 {
		return fmt.Errorf("redfish: boot from %q: %w", b.Device, bmc.ErrUnsupported)
	}
	var first error
	for i, target := range targets {
		_, err := c.tryVariants(topicBootOverride, c.bootVariants(ctx, b, target, s), refusesBoot)
		if err == nil && target == string(schemas.CdBootSource) {
			err = c.preferVirtualDVD(ctx, b, s)
		}
		if err == nil {
			if b.Device == bmc.BootCD && len(targets) > 1 {
				c.workarounds.Record(bmc.Workaround{Topic: topicBootTarget, Variant: target, Nonstandard: target != bootSources[bmc.BootCD][len(bootSources[bmc.BootCD])-1]})
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

// bootVariants returns the PATCHes that may set an override, best first.
func (c *client) bootVariants(ctx context.Context, b bmc.Boot, target string, s computerSystem) []variant {
	short := c.bootPatchFor(b, target, s.Boot)
	complete := short
	if complete.Mode == nil && s.Boot.Mode != "" {
		complete.Mode = &s.Boot.Mode
	}
	if complete.Target == nil {
		complete.Target = new(string(schemas.NoneBootSource))
	}
	write := func(all ...bootPatch) func() (response, error) {
		return func() (response, error) {
			var a response
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
	variants := []variant{{bootTargetEnabled, write(short)}}
	if s.Boot.Mode != "" {
		// AMI and ASRock Rack require all three properties together (ironic's
		// management.py).
		variants = append(variants, variant{bootAllProperties, write(complete)})
	}
	if short.Mode != nil {
		rest := short
		rest.Mode = nil
		variants = append(variants, variant{bootModeFirst, write(bootPatch{Mode: short.Mode}, rest)})
	}
	if differs, less := short.without(s.Boot); less && differs != (bootPatch{}) || c.workarounds.Variant(topicBootOverride) == bootChangedOnly {
		// Some refuse a value that is set already (storyboard.openstack.org story
		// 2007355).
		variants = append(variants, variant{bootChangedOnly, write(differs)})
	}
	if short.Target != nil {
		variants = append(variants, variant{bootTargetOnly, write(bootPatch{Target: short.Target, URL: short.URL})})
	}
	if settings := s.Settings.Object.ID; settings != "" {
		// iDRAC 10 has a read-only Boot and takes changes in its settings
		// resource, with the ETag of that resource (stmcginnis/gofish pull 511).
		// The system shows them at the next boot.
		later := func(ch bootPatch) func() (response, error) {
			return func() (response, error) {
				current, err := c.do(ctx, http.MethodGet, settings, nil, nil)
				if err != nil {
					return current, err
				}
				return c.patch(ctx, settings, etag(current), map[string]any{"Boot": ch})
			}
		}
		variants = append(variants, variant{bootInSettings, later(short)}, variant{bootAllInSettings, later(complete)})
	}
	return variants
}

// errBootIgnored reports an override that the service accepted and did not set.
var errBootIgnored = errors.New("redfish: boot override: the BMC accepted it and did not set it")

// refusesBoot reports whether another variant may succeed.
func refusesBoot(err error) bool {
	return errors.Is(err, errBootIgnored) || (isBadRequest(err) || isReadOnly(err)) && !errors.Is(err, bmc.ErrBusy) && !refusesContinuous(err)
}

// refusesContinuous reports whether the service refused the value Continuous.
func refusesContinuous(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.has("PropertyValueNotInList") && slices.ContainsFunc(e.arguments, func(a string) bool {
		return a == string(schemas.ContinuousBootSourceOverrideEnabled) || a == "BootSourceOverrideEnabled" || a == "#/Boot/BootSourceOverrideEnabled"
	})
}

func isBadRequest(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.status == http.StatusBadRequest
}

func isReadOnly(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.has("PropertyNotWritable"))
}

// verifyBoot reads the system until its override is b, a few times: some services
// show it with a delay. It returns errBootIgnored if they never do.
func (c *client) verifyBoot(ctx context.Context, b bmc.Boot, a response) error {
	var s computerSystem
	if decode(a.body, &s) == nil && s.Boot != nil && s.Boot.Enabled != "" && c.satisfies(s.Boot, b) {
		return nil // the response to the PATCH shows the override
	}
	const reads = 4
	for i := range reads {
		s, err := c.computerSystem(ctx)
		if err != nil {
			return err
		}
		if s.Boot != nil && c.satisfies(s.Boot, b) {
			return nil
		}
		if i < reads-1 {
			if err := c.sleep(ctx, time.Second<<i); err != nil {
				return fmt.Errorf("redfish: boot override: %w", err)
			}
		}
	}
	return errBootIgnored
}

// satisfies reports whether the override o is b, as far as this BMC can express
// it.
func (c *client) satisfies(o *bootOverride, b bmc.Boot) bool {
	if c.workarounds.Variant(topicPersistentBoot) == onceBeforeEachStart {
		b.Persistent = false
	}
	return o.satisfies(b)
}
