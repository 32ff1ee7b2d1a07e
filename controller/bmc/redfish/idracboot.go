package redfish

import (
	"context"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Attributes of a Dell manager that choose the first boot device.
const (
	firstDevice = "ServerBoot.1.FirstBootDevice"
	firstOnce   = "ServerBoot.1.BootOnce"
	virtualDVD  = "VCD-DVD"
)

// preferVirtualDVD makes the boot target Cd mean virtual media instead of an
// internal drive. iDRAC 8 distinguishes the two only by an attribute of the
// manager (dell/iDRAC-Redfish-Scripting issue 90; sushy sets it, too). Newer
// iDRACs have the attribute elsewhere and do not need it.
func (c *client) preferVirtualDVD(ctx context.Context, b bmc.Boot, s computerSystem) error {
	if !strings.HasPrefix(s.Manufacturer, "Dell") {
		return nil
	}
	managers, err := c.managers(ctx, s)
	if err != nil {
		return err
	}
	for _, uri := range managers {
		var m struct {
			Attributes map[string]any `json:"Attributes"`
		}
		group := strings.TrimRight(uri, "/") + "/Attributes"
		a, err := c.get(ctx, group, &m)
		switch {
		case isNotFound(err):
			continue
		case err != nil:
			return err
		case m.Attributes[firstDevice] == nil:
			continue
		}
		once := "Enabled"
		if b.Persistent {
			once = "Disabled"
		}
		if _, err := c.patch(ctx, group, etag(a), map[string]any{"Attributes": map[string]string{firstDevice: virtualDVD, firstOnce: once}}); err != nil {
			return err
		}
		c.workarounds.Record(bmc.Workaround{Topic: topicBootTarget, Variant: firstDevice + " " + virtualDVD, Nonstandard: true})
		return nil
	}
	return nil
}
