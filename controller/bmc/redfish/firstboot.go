package redfish

import (
	"context"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Attributes of a manager, by which iDRACs choose what is booted first.
const (
	firstDevice = "ServerBoot.1.FirstBootDevice"
	firstOnce   = "ServerBoot.1.BootOnce"
	virtualDVD  = "VCD-DVD"
)

// virtualFirst makes an override to Cd mean virtual media where it means a drive
// in the case: iDRAC 8 tells them apart by an attribute of the manager alone
// (dell/iDRAC-Redfish-Scripting issue 90; sushy sets it, too). Newer ones have
// it elsewhere, and do not need it.
func (c *client) virtualFirst(ctx context.Context, b bmc.Boot, s computerSystem) error {
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
		case notFound(err):
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
		c.lessons.Learn(bmc.Lesson{Topic: aboutTarget, Way: firstDevice + " " + virtualDVD, Odd: true})
		return nil
	}
	return nil
}
