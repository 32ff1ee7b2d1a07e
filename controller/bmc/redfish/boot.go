package redfish

import (
	"context"
	"fmt"
	"slices"

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
	// Virtual media are USB devices: where both are offered, Cd may be a drive in
	// the case, and an override to it is accepted and boots nothing (Supermicro,
	// iDRAC 8 and 9: sushy's change-bootdev-smc and supermicro-vmedia-dev-workaround
	// notes, dell/iDRAC-Redfish-Scripting issue 90).
	bmc.BootCD:   {usbCD, string(schemas.CdBootSource)},
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
