package redfish

import (
	"context"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// smartControllers is the path of iLO 4's controllers below the system: iLO 4 has
// no Storage (HewlettPackard/ilo-rest-api-docs, SmartStorageArrayController).
const smartControllers = "/SmartStorage/ArrayControllers"

// arrayController holds the properties that the driver reads of an iLO 4
// controller. Its volumes can be changed only with HPE's tools.
type arrayController struct {
	ID     string `json:"Id"`
	Name   string `json:"Name"`
	Model  string `json:"Model"`
	Serial string `json:"SerialNumber"`
	Links  struct {
		Logical  link `json:"LogicalDrives"`
		Physical link `json:"PhysicalDrives"`
	} `json:"Links"`
}

// diskDrive holds the properties that the driver reads of a drive of an iLO 4
// controller.
type diskDrive struct {
	driveResource
	Interface string `json:"InterfaceType"`
	MiB       int64  `json:"CapacityMiB"`
	Use       string `json:"DiskDriveUse"`
}

// logicalDrive holds the properties that the driver reads of a volume of an iLO 4
// controller.
type logicalDrive struct {
	Name   string `json:"LogicalDriveName"`
	RAID   string `json:"Raid"`
	MiB    int64  `json:"CapacityMiB"`
	WWN    string `json:"VolumeUniqueIdentifier"`
	Status struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
}

// arrayControllers reads the controllers of a system without Storage; none if it
// has no ArrayControllers either.
func (c *client) arrayControllers(ctx context.Context, s computerSystem) ([]bmc.Controller, error) {
	uris, err := c.members(ctx, strings.TrimRight(localPath(s.uri), "/")+smartControllers)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []bmc.Controller
	for _, uri := range uris {
		var a arrayController
		if _, err := c.get(ctx, uri, &a); err != nil {
			return nil, err
		}
		out := bmc.Controller{ID: localPath(uri), Names: []string{a.ID, a.Name, a.Model, a.Serial}}
		if out.Drives, err = readMembers(ctx, c, a.Links.Physical.ID, c.diskDrive); err != nil {
			return nil, err
		}
		if out.Volumes, err = readMembers(ctx, c, a.Links.Logical.ID, c.logicalDrive); err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	return all, nil
}

// readMembers reads all members of a collection. It returns nil for "", a collection that
// the service does not have, and an empty list for an empty one.
func readMembers[T any](ctx context.Context, c *client, collection string, read func(context.Context, string) (T, error)) ([]T, error) {
	if collection == "" {
		return nil, nil
	}
	uris, err := c.members(ctx, collection)
	if err != nil {
		return nil, err
	}
	out := []T{}
	for _, uri := range uris {
		one, err := read(ctx, uri)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (c *client) diskDrive(ctx context.Context, uri string) (bmc.Drive, error) {
	var d diskDrive
	if _, err := c.get(ctx, uri, &d); err != nil {
		return bmc.Drive{}, err
	}
	if d.Bytes == 0 {
		d.Bytes = d.MiB << 20
	}
	return bmc.Drive{
		ID: localPath(uri), Names: []string{d.ID, d.Name, d.Serial}, Rotational: d.Media == string(schemas.HDDMediaType),
		Name: d.Name, Vendor: d.Vendor, Model: d.Model, Serial: d.Serial, Protocol: d.Interface, Bytes: d.Bytes, Spare: d.Use == "Spare",
		Healthy: (d.Status.State == "" || d.Status.State == string(schemas.EnabledState)) && d.Status.Health != string(schemas.CriticalHealth),
	}, nil
}

func (c *client) logicalDrive(ctx context.Context, uri string) (bmc.Volume, error) {
	var l logicalDrive
	if _, err := c.get(ctx, uri, &l); err != nil {
		return bmc.Volume{}, err
	}
	out := bmc.Volume{ID: localPath(uri), Name: l.Name, Bytes: l.MiB << 20}
	if i := slices.IndexFunc(raidTypes, func(t raidType) bool { return "RAID"+l.RAID == string(t.raidType) }); i >= 0 {
		out.Level = raidTypes[i].level
	}
	if l.WWN != "" {
		out.WWN = formatNAA(l.WWN)
	}
	out.Healthy = l.Status.Health == "" || l.Status.Health == string(schemas.OKHealth)
	out.Ready = out.Healthy || l.Status.State == string(schemas.EnabledState)
	return out, nil
}
