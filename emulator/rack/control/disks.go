package control

import (
	"context"
	"fmt"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// Disks are the drives of a host and its volumes.
type Disks struct {
	Bays    []Disk   `json:"bays"`
	Volumes []Volume `json:"volumes"`
	Shelf   []Disk   `json:"shelf"` // pulled drives
}

// Disk is a bay with its drive, or a drive on the shelf.
type Disk struct {
	ID         string   `json:"id"` // ID of the bay; on the shelf, of the bay that it was pulled from
	Controller string   `json:"controller,omitempty"`
	Serial     string   `json:"serial,omitempty"` // "": the bay is empty
	Model      string   `json:"model,omitempty"`
	Protocol   string   `json:"protocol,omitempty"`
	Media      string   `json:"media,omitempty"`
	Capacity   int64    `json:"capacity,omitempty"` // bytes
	State      string   `json:"state,omitempty"`
	Health     string   `json:"health,omitempty"` // as Redfish spells it
	Predicted  bool     `json:"predicted,omitempty"`
	Spare      string   `json:"spare,omitempty"`
	Volumes    []string `json:"volumes,omitempty"` // IDs of the volumes on this drive
}

// Volume is a volume of a RAID controller.
type Volume struct {
	ID         string `json:"id"`
	Controller string `json:"controller"`
	Name       string `json:"name"`
	RAID       string `json:"raid"`
	Capacity   int64  `json:"capacity"` // bytes
	Health     string `json:"health"`
	WWN        string `json:"wwn"`

	Disks []string `json:"disks"` // bays of its drives, span after span
	Work  []Work   `json:"work,omitempty"`
}

// Work is an operation on a volume that takes time.
type Work struct {
	Kind    string `json:"kind"` // rebuild, initialize, check, expand
	Percent int    `json:"percent"`
}

// DisksOf returns the drives and volumes of a host.
func DisksOf(h *rack.Host) Disks {
	v := h.Machine().Storage
	out := Disks{Bays: []Disk{}, Volumes: []Volume{}, Shelf: []Disk{}}
	for _, c := range v.Controllers() {
		for _, d := range c.Drives {
			out.Bays = append(out.Bays, Disk{
				ID: d.ID, Controller: d.Controller, Serial: d.Serial, Model: d.Vendor + " " + d.Product, Protocol: string(d.Protocol),
				Media: string(d.Media), Capacity: d.Capacity, State: string(d.State), Health: string(d.Health()),
				Predicted: d.Predicted, Spare: string(d.Spare), Volumes: d.Volumes,
			})
		}
		for _, x := range c.Volumes {
			v := Volume{
				ID: x.ID, Controller: x.Controller, Name: x.Name, RAID: string(x.Type), Capacity: x.Size(), Health: string(x.Health()), WWN: x.WWN,
				Disks: []string{},
			}
			for _, m := range x.Members {
				v.Disks = append(v.Disks, m.Bay)
			}
			for _, o := range x.Ops {
				v.Work = append(v.Work, Work{Kind: string(o.Kind), Percent: o.Percent(h.Now())})
			}
			out.Volumes = append(out.Volumes, v)
		}
	}
	for _, l := range v.Shelf() {
		d := Disk{ID: l.From, Serial: l.Serial}
		if l.Model != nil {
			d.Model, d.Protocol, d.Media, d.Capacity = l.Model.Vendor+" "+l.Model.Product, string(l.Model.Protocol), string(l.Model.Media), l.Model.Capacity
		}
		out.Shelf = append(out.Shelf, d)
	}
	return out
}

// DiskInsertion says which drive to insert into a bay.
type DiskInsertion struct {
	// What is same (a drive from the shelf; the default), new, or foreign (a drive
	// of another server's volume).
	What   string `json:"what,omitempty"`
	Serial string `json:"serial,omitempty"` // serial number of a drive on the shelf; "": the last one pulled from this bay
}

// DiskFailure says how a drive fails.
type DiskFailure struct {
	// How is fail (the default), predict (a predictive failure), unpredict or
	// revive.
	How string `json:"how,omitempty"`
}

var failures = map[string]func(drive string) storage.Command{
	"":          func(d string) storage.Command { return storage.FailDrive{Drive: d} },
	"fail":      func(d string) storage.Command { return storage.FailDrive{Drive: d} },
	"predict":   func(d string) storage.Command { return storage.PredictFailure{Drive: d, Predicted: true} },
	"unpredict": func(d string) storage.Command { return storage.PredictFailure{Drive: d} },
	"revive":    func(d string) storage.Command { return storage.ReviveDrive{Drive: d} },
}

var insertions = map[string]storage.Insertion{
	"": storage.InsertSame, "same": storage.InsertSame, "new": storage.InsertNew, "foreign": storage.InsertForeign,
}

// toDisk applies a storage command and returns the host's disks.
func (c *apiRequest) toDisk(cmd storage.Command) (any, error) {
	if err := c.host.Apply(c.Context(), machine.Storage{Command: cmd}); err != nil {
		return nil, err
	}
	return DisksOf(c.host), nil
}

func pullDisk(c *apiRequest) (any, error) {
	return c.toDisk(storage.PullDrive{Drive: c.PathValue("disk")})
}

func insertDisk(c *apiRequest) (any, error) {
	var in DiskInsertion
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	what, ok := insertions[in.What]
	if !ok {
		return nil, fmt.Errorf("%q is no drive to insert: use same, new or foreign", in.What)
	}
	return c.toDisk(storage.InsertDrive{Drive: c.PathValue("disk"), What: what, Serial: in.Serial})
}

func failDisk(c *apiRequest) (any, error) {
	var in DiskFailure
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	how, ok := failures[in.How]
	if !ok {
		return nil, fmt.Errorf("%q is no way to fail: use fail, predict, unpredict or revive", in.How)
	}
	return c.toDisk(how(c.PathValue("disk")))
}

// Disks returns the drives and volumes of a host.
func (c *Client) Disks(ctx context.Context, host string) (Disks, error) {
	var d Disks
	err := c.do(ctx, http.MethodGet, at(host, "disks"), nil, &d)
	return d, err
}

// PullDisk pulls a drive out of its bay.
func (c *Client) PullDisk(ctx context.Context, host, disk string) (Disks, error) {
	var d Disks
	err := c.do(ctx, http.MethodPost, at(host, "disks", disk, "pull"), nil, &d)
	return d, err
}

// InsertDisk inserts a drive into an empty bay.
func (c *Client) InsertDisk(ctx context.Context, host, disk string, i DiskInsertion) (Disks, error) {
	var d Disks
	err := c.do(ctx, http.MethodPost, at(host, "disks", disk, "insert"), i, &d)
	return d, err
}

// FailDisk makes a drive fail, or repairs it.
func (c *Client) FailDisk(ctx context.Context, host, disk string, f DiskFailure) (Disks, error) {
	var d Disks
	err := c.do(ctx, http.MethodPost, at(host, "disks", disk, "fail"), f, &d)
	return d, err
}

// VolumeCreation describes a volume to create.
type VolumeCreation struct {
	Controller string   `json:"controller"`
	RAID       string   `json:"raid"`            // RAID0, RAID1 …
	Disks      []string `json:"disks,omitempty"` // bays; empty: as few drives as needed
	Capacity   int64    `json:"capacity,omitempty"`
	Name       string   `json:"name,omitempty"`
}

func createVolume(c *apiRequest) (any, error) {
	var in VolumeCreation
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	return c.toDisk(storage.CreateVolume{
		Controller: in.Controller, Type: storage.RAIDType(in.RAID), Drives: in.Disks, Capacity: in.Capacity, Name: in.Name,
	})
}

func deleteVolume(c *apiRequest) (any, error) {
	return c.toDisk(storage.DeleteVolume{Controller: c.PathValue("controller"), Volume: c.PathValue("volume")})
}

// CreateVolume creates a RAID volume.
func (c *Client) CreateVolume(ctx context.Context, host string, v VolumeCreation) (Disks, error) {
	var d Disks
	err := c.do(ctx, http.MethodPost, at(host, "volumes"), v, &d)
	return d, err
}

// DeleteVolume deletes a RAID volume.
func (c *Client) DeleteVolume(ctx context.Context, host, controller, volume string) (Disks, error) {
	var d Disks
	err := c.do(ctx, http.MethodDelete, at(host, "volumes", controller, volume), nil, &d)
	return d, err
}
