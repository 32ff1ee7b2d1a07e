package redfish

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// raidType holds the names of a RAID level.
type raidType struct {
	level      bmc.Level
	raidType   schemas.RAIDType
	volumeType schemas.VolumeType
}

// raidTypes lists the levels by their names in Redfish: Volume.RAIDType and,
// before Volume 1.3.1, VolumeType, where one name stands for several levels. Level
// 2 has no name in Redfish.
var raidTypes = []raidType{
	{bmc.Level0, schemas.RAID0RAIDType, schemas.NonRedundantVolumeType},
	{bmc.Level1, schemas.RAID1RAIDType, schemas.MirroredVolumeType},
	{bmc.Level5, schemas.RAID5RAIDType, schemas.StripedWithParityVolumeType},
	{bmc.Level6, schemas.RAID6RAIDType, schemas.StripedWithParityVolumeType},
	{bmc.Level10, schemas.RAID10RAIDType, schemas.SpannedMirrorsVolumeType},
	{bmc.Level50, schemas.RAID50RAIDType, schemas.SpannedStripesWithParityVolumeType},
	{bmc.Level60, schemas.RAID60RAIDType, schemas.SpannedStripesWithParityVolumeType},
}

// subsystem holds the properties that the driver reads of a Storage resource.
type subsystem struct {
	ID          string                 `json:"Id"`
	Name        string                 `json:"Name"`
	Drives      []link                 `json:"Drives"`
	Volumes     link                   `json:"Volumes"`
	Inline      []storageController    `json:"StorageControllers"` // until Storage 1.9
	Controllers link                   `json:"Controllers"`
	Status      struct{ State string } `json:"Status"`
}

type storageController struct {
	Name  string   `json:"Name"`
	Model string   `json:"Model"`
	Types []string `json:"SupportedRAIDTypes"`
}

// driveResource holds the properties that the driver reads of a Drive.
type driveResource struct {
	ID       string `json:"Id"`
	Name     string `json:"Name"`
	Vendor   string `json:"Manufacturer"`
	Model    string `json:"Model"`
	Serial   string `json:"SerialNumber"`
	Media    string `json:"MediaType"`
	Protocol string `json:"Protocol"`
	Bytes    int64  `json:"CapacityBytes"`
	Spare    string `json:"HotspareType"`
	Failing  bool   `json:"FailurePredicted"`
	identifiers
	Status struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
	Links struct {
		Volumes []link `json:"Volumes"`
	} `json:"Links"`
}

// identifiers holds the identifiers of a Drive or a Volume.
type identifiers struct {
	Identifiers []struct {
		Name   string `json:"DurableName"`
		Format string `json:"DurableNameFormat"`
	} `json:"Identifiers"`
}

// wwn returns the worldwide name as operating systems show it; "" if there is none.
func (i identifiers) wwn() (name string) {
	for _, one := range i.Identifiers {
		switch {
		case one.Name == "":
		case one.Format == string(schemas.NAADurableNameFormat):
			name = formatNAA(one.Name)
		case one.Format == string(schemas.EUIDurableNameFormat) && name == "":
			name = "eui." + strings.ToLower(strings.NewReplacer("eui.", "", "-", "", ":", "").Replace(one.Name))
		}
	}
	return name
}

// volumeResource holds the properties that the driver reads of a Volume.
type volumeResource struct {
	Name        string `json:"Name"`
	DisplayName string `json:"DisplayName"`
	Type        string `json:"RAIDType"`
	Old         string `json:"VolumeType"`
	Bytes       int64  `json:"CapacityBytes"`
	Status      struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
	identifiers
	Operations []struct {
		Percent float64 `json:"PercentageComplete"`
	} `json:"Operations"`
	Links struct {
		Drives []link `json:"Drives"`
	} `json:"Links"`
}

// Storage reads all storage of the system, with a request for each resource:
// $expand is the query that services most often get wrong.
func (c *client) Storage(ctx context.Context) (bmc.Storage, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return bmc.Storage{}, err
	}
	var out bmc.Storage
	if s.Storage.ID == "" {
		out.Controllers, err = c.arrayControllers(ctx, s)
		if err == nil && out.Controllers == nil {
			err = unsupported("Storage", "the system has none that its BMC knows")
		}
		return out, err
	}
	all, err := c.members(ctx, s.Storage.ID)
	if err == nil && len(all) == 0 {
		err = c.checkAwake(ctx)
	}
	if err != nil {
		return bmc.Storage{}, err
	}
	for _, uri := range all {
		ctl, err := c.readController(ctx, uri)
		if err != nil {
			return bmc.Storage{}, err
		}
		out.Controllers = append(out.Controllers, ctl)
	}
	out.Operations, err = c.operations(ctx)
	return out, err
}

func (c *client) readController(ctx context.Context, uri string) (bmc.Controller, error) {
	var s subsystem
	if _, err := c.get(ctx, uri, &s); err != nil {
		return bmc.Controller{}, err
	}
	out := bmc.Controller{ID: localPath(uri), Names: []string{s.ID, s.Name}}
	listed, err := c.storageControllers(ctx, s)
	if err != nil {
		return out, err
	}
	hasLevels := false
	for _, m := range listed {
		out.Names = append(out.Names, m.Name, m.Model)
		hasLevels = hasLevels || m.Types != nil
		for _, t := range raidTypes {
			if slices.Contains(m.Types, string(t.raidType)) {
				out.Levels = append(out.Levels, t.level)
			}
		}
	}
	if !hasLevels && s.Volumes.ID != "" { // the service lists no levels: CreateVolume finds out
		for _, t := range raidTypes {
			out.Levels = append(out.Levels, t.level)
		}
	}
	if s.Drives != nil { // the service lists drives, be it none
		out.Drives = []bmc.Drive{}
	}
	for _, d := range s.Drives {
		drive, err := c.physicalDrive(ctx, d.ID)
		if err != nil {
			return out, err
		}
		out.Drives = append(out.Drives, drive)
	}
	if s.Volumes.ID == "" {
		return out, nil
	}
	uris, err := c.members(ctx, s.Volumes.ID)
	if err != nil {
		return out, err
	}
	for _, uri := range uris {
		v, ok, err := c.volume(ctx, uri)
		if err != nil {
			return out, err
		}
		if ok {
			out.Volumes = append(out.Volumes, v)
		}
	}
	return out, nil
}

// storageControllers reads the controllers of a subsystem.
func (c *client) storageControllers(ctx context.Context, s subsystem) ([]storageController, error) {
	if s.Controllers.ID == "" {
		return s.Inline, nil
	}
	uris, err := c.members(ctx, s.Controllers.ID)
	if err != nil {
		return nil, err
	}
	var out []storageController
	for _, uri := range uris {
		var m storageController
		if _, err := c.get(ctx, uri, &m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (c *client) physicalDrive(ctx context.Context, uri string) (bmc.Drive, error) {
	var d driveResource
	if _, err := c.get(ctx, uri, &d); err != nil {
		return bmc.Drive{}, err
	}
	state := schemas.State(d.Status.State)
	return bmc.Drive{
		ID: localPath(uri), Names: []string{d.ID, d.Name, d.Serial}, Rotational: d.Media == string(schemas.HDDMediaType),
		Name: d.Name, Vendor: d.Vendor, Model: d.Model, Serial: d.Serial, WWN: d.wwn(), Protocol: d.Protocol, Bytes: d.Bytes, Used: len(d.Links.Volumes) > 0,
		Spare:   d.Spare != "" && d.Spare != string(schemas.NoneHotspareType) || state == schemas.StandbySpareState,
		Absent:  state == schemas.AbsentState,
		Healthy: (state == schemas.EnabledState || state == "") && d.Status.Health != string(schemas.CriticalHealth) && !d.Failing,
	}, nil
}

// volume reads a volume. It returns false for a drive that the service lists as a
// volume (iDRAC: VolumeType RawDevice) and for a volume that was deleted since the
// collection was read.
func (c *client) volume(ctx context.Context, uri string) (_ bmc.Volume, ok bool, _ error) {
	var v volumeResource
	if _, err := c.get(ctx, uri, &v); err != nil {
		if isNotFound(err) { // deleted since the collection was read
			return bmc.Volume{}, false, nil
		}
		return bmc.Volume{}, false, err
	}
	if v.Old == string(schemas.RawDeviceVolumeType) && v.Type == "" {
		return bmc.Volume{}, false, nil
	}
	out := bmc.Volume{ID: localPath(uri), Name: cmp.Or(v.DisplayName, v.Name), Bytes: v.Bytes}
	for _, t := range raidTypes {
		if v.Type == string(t.raidType) || v.Type == "" && v.Old == string(t.volumeType) && out.Level == "" {
			out.Level = t.level
		}
	}
	for _, d := range v.Links.Drives {
		out.Drives = append(out.Drives, localPath(d.ID))
	}
	out.WWN = v.wwn()
	state := schemas.State(v.Status.State)
	out.Healthy = (v.Status.Health == "" || v.Status.Health == string(schemas.OKHealth)) && state != schemas.DegradedState
	out.Ready = state == "" || state == schemas.EnabledState || state == schemas.DegradedState
	for _, o := range v.Operations {
		out.Percent = max(out.Percent, int(o.Percent))
	}
	return out, true, nil
}

// formatNAA writes an NAA identifier as operating systems show it: 0x and
// lower-case hex digits.
func formatNAA(name string) string {
	return "0x" + strings.ToLower(strings.NewReplacer("0x", "", "0X", "", "naa.", "", ":", "", "-", "").Replace(name))
}
