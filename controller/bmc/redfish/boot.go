package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// override is the Boot property of a ComputerSystem.
type override struct {
	Enabled string `json:"BootSourceOverrideEnabled"`
	Target  string `json:"BootSourceOverrideTarget"`
	Mode    string `json:"BootSourceOverrideMode"`
	URL     string `json:"HttpBootUri"`

	Enableds []string `json:"BootSourceOverrideEnabled@Redfish.AllowableValues"`
	Targets  []string `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
}

const usbCD = "UsbCd" // not in the standard

// devices are the boot sources of the devices, best first.
var devices = map[bmc.Device][]string{
	bmc.BootCD:   {string(schemas.CdBootSource), usbCD},
	bmc.BootDisk: {string(schemas.HddBootSource)},
	bmc.BootPXE:  {string(schemas.PxeBootSource)},
	bmc.BootHTTP: {string(schemas.UefiHTTPBootSource)},
}

// boot is the override in terms of package bmc.
func (o *override) boot() bmc.Boot {
	if o == nil {
		return bmc.Boot{}
	}
	var b bmc.Boot
	switch schemas.BootSourceOverrideMode(o.Mode) {
	case schemas.UEFIBootSourceOverrideMode:
		b.Mode = bmc.UEFI
	case schemas.LegacyBootSourceOverrideMode:
		b.Mode = bmc.LegacyBIOS
	}
	off := o.Enabled == "" || o.Enabled == string(schemas.DisabledBootSourceOverrideEnabled)
	if off || o.Target == "" || o.Target == string(schemas.NoneBootSource) {
		return b
	}
	b.Device = bmc.Device(o.Target)
	for _, d := range []bmc.Device{bmc.BootCD, bmc.BootDisk, bmc.BootPXE, bmc.BootHTTP} {
		if slices.Contains(devices[d], o.Target) {
			b.Device = d
		}
	}
	b.Persistent = o.Enabled == string(schemas.ContinuousBootSourceOverrideEnabled)
	if b.Device == bmc.BootHTTP {
		b.URL = o.URL
	}
	return b
}

// change is what to write into Boot. A nil field is not written.
type change struct {
	Enabled *string `json:"BootSourceOverrideEnabled,omitempty"`
	Target  *string `json:"BootSourceOverrideTarget,omitempty"`
	Mode    *string `json:"BootSourceOverrideMode,omitempty"`
	URL     *string `json:"HttpBootUri,omitempty"`
}

// changeFor is the smallest change that makes an override of s: some services
// refuse more (HPE DL160, bmc-toolbox/bmclib pull 318), but all that take an
// override take Enabled with Target, and some take no change without Enabled.
func changeFor(b bmc.Boot, s computerSystem) (change, error) {
	enabled, target := schemas.DisabledBootSourceOverrideEnabled, ""
	if b.Device != bmc.BootNone {
		enabled = schemas.OnceBootSourceOverrideEnabled
		if b.Persistent {
			enabled = schemas.ContinuousBootSourceOverrideEnabled
		}
		if target = targetFor(b.Device, s); target == "" {
			return change{}, fmt.Errorf("redfish: boot from %q: %w", b.Device, bmc.ErrUnsupported)
		}
	}
	if s.Boot.Enableds != nil && !slices.Contains(s.Boot.Enableds, string(enabled)) {
		// Lenovo XCC has Once and Disabled only.
		return change{}, fmt.Errorf("redfish: boot override %s: %w", enabled, bmc.ErrUnsupported)
	}
	ch := change{Enabled: new(string(enabled))}
	if target != "" {
		ch.Target = &target
	}
	if mode := modeFor(b.Mode); mode != "" && s.Boot.Mode != "" && s.Boot.Mode != mode {
		ch.Mode = &mode
	}
	if b.Device == bmc.BootHTTP && b.URL != "" {
		ch.URL = &b.URL
	}
	return ch, nil
}

// targetFor is the first boot source of a device that the service offers.
func targetFor(d bmc.Device, s computerSystem) string {
	targets := devices[d]
	if d == bmc.BootCD && strings.EqualFold(s.Manufacturer, "Supermicro") && slices.Contains(s.Boot.Targets, usbCD) {
		return usbCD // Cd is a drive in the case there (sushy's change-bootdev-smc note)
	}
	for _, t := range targets {
		if s.Boot.Targets == nil || slices.Contains(s.Boot.Targets, t) {
			return t
		}
	}
	return ""
}

func modeFor(m bmc.BootMode) string {
	switch m {
	case bmc.UEFI, bmc.UEFISecure:
		return string(schemas.UEFIBootSourceOverrideMode)
	case bmc.LegacyBIOS:
		return string(schemas.LegacyBootSourceOverrideMode)
	default:
		return ""
	}
}

// holds reports whether o is as b wants it.
func (o *override) holds(b bmc.Boot) bool {
	is := o.boot()
	if mode := modeFor(b.Mode); mode != "" && o.Mode != "" && o.Mode != mode {
		return false
	}
	if b.Device == bmc.BootHTTP && b.URL != "" && is.URL != b.URL {
		return false
	}
	return is.Device == b.Device && (b.Device == bmc.BootNone || is.Persistent == b.Persistent)
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
	switch {
	case s.Boot == nil && b.Device != bmc.BootNone:
		return fmt.Errorf("redfish: boot override: %w", bmc.ErrUnsupported)
	case s.Boot != nil && !s.Boot.holds(b):
		if err := c.writeBoot(ctx, b, s); err != nil {
			return err
		}
	}
	if b.Mode == bmc.BootModeAny {
		return nil
	}
	return c.setSecureBoot(ctx, b.Mode == bmc.UEFISecure, s)
}

func (c *client) writeBoot(ctx context.Context, b bmc.Boot, s computerSystem) error {
	ch, err := changeFor(b, s)
	if err != nil {
		return err
	}
	a, err := c.patch(ctx, s.uri, s.tag, map[string]any{"Boot": ch})
	if badRequest(err) && !readOnly(err) && ch.Mode == nil && s.Boot.Mode != "" {
		// AMI and ASRock Rack want all three together (Ironic's management.py).
		full := ch
		full.Mode = &s.Boot.Mode
		if full.Target == nil {
			full.Target = new(string(schemas.NoneBootSource))
		}
		a, err = c.patch(ctx, s.uri, s.tag, map[string]any{"Boot": full})
	}
	if settings := s.Settings.Object.ID; settings != "" && (readOnly(err) || badRequest(err)) {
		// iDRAC 10 keeps Boot read-only and takes changes in its settings
		// object, with that one's tag (stmcginnis/gofish pull 511). They show
		// up at the next boot.
		current, e := c.do(ctx, http.MethodGet, settings, nil, nil)
		if e != nil {
			return e
		}
		_, err = c.patch(ctx, settings, etag(current), map[string]any{"Boot": ch})
		return err
	}
	if err != nil || a.status == http.StatusAccepted {
		return err
	}
	return c.verifyBoot(ctx, b, a)
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
	if decode(a.body, &s) == nil && s.Boot != nil && s.Boot.Enabled != "" && s.Boot.holds(b) {
		return nil // the answer to the change shows it
	}
	const reads = 4
	for i := range reads {
		s, err := c.computerSystem(ctx)
		if err != nil {
			return err
		}
		if s.Boot != nil && s.Boot.holds(b) {
			return nil
		}
		if i < reads-1 {
			if err := c.sleep(ctx, time.Second<<i); err != nil {
				return fmt.Errorf("redfish: boot override: %w", err)
			}
		}
	}
	return errors.New("redfish: boot override: the BMC accepted it and did not set it")
}

// setSecureBoot switches secure boot, if it is not as wanted.
func (c *client) setSecureBoot(ctx context.Context, on bool, s computerSystem) error {
	if s.SecureBoot.ID == "" {
		if on {
			return fmt.Errorf("redfish: secure boot: %w", bmc.ErrUnsupported)
		}
		return nil
	}
	var sb struct {
		Enable bool `json:"SecureBootEnable"`
	}
	a, err := c.get(ctx, s.SecureBoot.ID, &sb)
	if err != nil || sb.Enable == on {
		return err
	}
	_, err = c.patch(ctx, s.SecureBoot.ID, etag(a), map[string]any{"SecureBootEnable": on})
	return err
}
