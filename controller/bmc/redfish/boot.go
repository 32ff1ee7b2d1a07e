package redfish

import (
	"context"
	"fmt"
	"slices"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// bootOverride holds the properties that the driver reads of a ComputerSystem's
// Boot.
type bootOverride struct {
	Enabled string `json:"BootSourceOverrideEnabled"`
	Target  string `json:"BootSourceOverrideTarget"`
	Mode    string `json:"BootSourceOverrideMode"`
	URL     string `json:"HttpBootUri"`

	Enableds []string `json:"BootSourceOverrideEnabled@Redfish.AllowableValues"`
	Targets  []string `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
}

const usbCD = "UsbCd" // used by Supermicro and iDRAC; not in the standard

// bootSources lists the values of BootSourceOverrideTarget for each device, best
// first.
var bootSources = map[bmc.Device][]string{
	// Virtual media are USB devices. Where both targets are offered, Cd may be an
	// internal drive, and an override to it is accepted and boots nothing
	// (Supermicro, iDRAC 8 and 9: sushy's change-bootdev-smc and
	// supermicro-vmedia-dev-workaround notes, dell/iDRAC-Redfish-Scripting issue
	// 90).
	bmc.BootCD:   {usbCD, string(schemas.CdBootSource)},
	bmc.BootDisk: {string(schemas.HddBootSource)},
	bmc.BootPXE:  {string(schemas.PxeBootSource)},
	bmc.BootHTTP: {string(schemas.UefiHTTPBootSource)},
}

// boot converts the override to a bmc.Boot.
func (o *bootOverride) boot() bmc.Boot {
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
		if slices.Contains(bootSources[d], o.Target) {
			b.Device = d
		}
	}
	b.Persistent = o.Enabled == string(schemas.ContinuousBootSourceOverrideEnabled)
	if b.Device == bmc.BootHTTP {
		b.URL = o.URL
	}
	return b
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

// satisfies reports whether the override o is b.
func (o *bootOverride) satisfies(b bmc.Boot) bool {
	current := o.boot()
	if mode := modeFor(b.Mode); mode != "" && o.Mode != "" && o.Mode != mode {
		return false
	}
	if b.Device == bmc.BootHTTP && b.URL != "" && current.URL != b.URL {
		return false
	}
	return current.Device == b.Device && (b.Device == bmc.BootNone || current.Persistent == b.Persistent)
}

// setSecureBoot switches secure boot on or off, unless it is so already.
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
