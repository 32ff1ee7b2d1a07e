package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	mediaPoll  = 2 * time.Second
	mediaLimit = time.Minute // for a drive to show what the BMC has accepted
)

// drive is what the driver reads of a VirtualMedia resource.
type drive struct {
	Image    string   `json:"Image"`
	Inserted *bool    `json:"Inserted"`
	Types    []string `json:"MediaTypes"`
	Actions  struct {
		Insert target `json:"#VirtualMedia.InsertMedia"`
		Eject  target `json:"#VirtualMedia.EjectMedia"`
		// OEM are actions of vendors, by vendor and name.
		OEM map[string]map[string]json.RawMessage `json:"Oem"`
	} `json:"Actions"`
	OEM map[string]struct {
		Actions map[string]json.RawMessage `json:"Actions"`
	} `json:"Oem"`

	uri string
	tag string // ETag
}

type target struct {
	URI string `json:"target"`
}

// inserted reports whether the drive holds an image. Supermicro keeps Image
// after an eject, and iLO has it empty rather than null.
func (d drive) inserted() bool {
	if d.Inserted != nil {
		return *d.Inserted
	}
	return d.Image != ""
}

// control is the action that Huawei's iBMC and its kin have for both inserting
// and ejecting, whatever vendor it is of; "" is none.
func (d drive) control() string {
	of := func(actions map[string]json.RawMessage) string {
		var t target
		_ = decode(actions["#VirtualMedia.VmmControl"], &t) // it may not be there
		return t.URI
	}
	for _, actions := range d.Actions.OEM { // a drive has one vendor
		if uri := of(actions); uri != "" {
			return uri
		}
	}
	for _, oem := range d.OEM {
		if uri := of(oem.Actions); uri != "" {
			return uri
		}
	}
	return ""
}

func (d drive) isCD() bool {
	return slices.Contains(d.Types, string(schemas.CDVirtualMediaType)) || slices.Contains(d.Types, string(schemas.DVDVirtualMediaType))
}

func (c *client) readDrive(ctx context.Context, uri string) (drive, error) {
	var d drive
	a, err := c.get(ctx, uri, &d)
	d.uri, d.tag = uri, etag(a)
	return d, err
}

// cdDrive reads the virtual CD drive. Its place is remembered until it is
// there no more: iDRAC 9 moved it from the manager to the system with
// firmware 6.00 (dell/iDRAC-Redfish-Scripting issue 265).
func (c *client) cdDrive(ctx context.Context, verb string) (drive, error) {
	c.mu.Lock()
	uri := c.drive
	c.mu.Unlock()
	for _, uri := range []string{uri, c.lessons.Way(aboutSlot)} {
		if uri == "" {
			continue
		}
		d, err := c.readDrive(ctx, uri)
		if !notFound(err) {
			return d, err
		}
	}
	return c.findDrive(ctx, verb, nil)
}

// findDrive looks for the virtual CD drive, but for the dead ones, where the
// standard has had it: with the system, and before 2021 with its manager.
func (c *client) findDrive(ctx context.Context, verb string, dead []string) (drive, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return drive{}, err
	}
	if d, err := c.pickDrive(ctx, s.VirtualMedia.ID, dead); err != nil || d.uri != "" {
		return d, err
	}
	managers, err := c.managers(ctx, s)
	if err != nil {
		return drive{}, err
	}
	for _, uri := range managers {
		var m struct {
			VirtualMedia link `json:"VirtualMedia"`
		}
		if _, err := c.get(ctx, uri, &m); err != nil {
			return drive{}, err
		}
		if d, err := c.pickDrive(ctx, m.VirtualMedia.ID, dead); err != nil || d.uri != "" {
			return d, err
		}
	}
	if err := c.awake(ctx); err != nil {
		return drive{}, err
	}
	return drive{}, unsupported(verb, "it has no virtual CD drive")
}

// managers are the system's; services that do not link them (Huawei 1288H,
// Cisco) have theirs in the root.
func (c *client) managers(ctx context.Context, s computerSystem) ([]string, error) {
	var uris []string
	for _, m := range s.Links.ManagedBy {
		if m.ID != "" {
			uris = append(uris, m.ID)
		}
	}
	if uris != nil {
		return uris, nil
	}
	c.mu.Lock()
	collection := c.root.Managers.ID
	c.mu.Unlock()
	if collection == "" {
		return nil, nil
	}
	return c.members(ctx, collection)
}

// pickDrive chooses the first CD drive of a collection that has the action to
// insert, else the first that has no action at all, else the first: slots can be
// for the console alone, and then have the action to eject (OpenBMC, Cisco;
// bugs.launchpad.net/ironic bug 2031595).
func (c *client) pickDrive(ctx context.Context, collection string, dead []string) (drive, error) {
	if collection == "" {
		return drive{}, nil
	}
	uris, err := c.members(ctx, collection)
	if err != nil && !notFound(err) {
		return drive{}, err
	}
	var best drive
	for _, uri := range uris {
		if slices.Contains(dead, uri) {
			continue
		}
		d, err := c.readDrive(ctx, uri)
		if err != nil {
			return drive{}, err
		}
		if d.isCD() && (d.Actions.Insert.URI != "" || d.control() != "") {
			best = d
			break
		}
		if d.isCD() && (best.uri == "" || best.Actions.Eject.URI != "" && d.Actions.Eject.URI == "") {
			best = d
		}
	}
	if best.uri != "" {
		c.mu.Lock()
		c.drive = best.uri
		c.mu.Unlock()
	}
	return best, nil
}

// Media reads the virtual CD drive.
func (c *client) Media(ctx context.Context) (bmc.Media, error) {
	d, err := c.cdDrive(ctx, "Media")
	if err != nil || !d.inserted() {
		return bmc.Media{}, err
	}
	return bmc.Media{Image: d.Image, Inserted: true}, nil
}

func notFound(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone)
}

// EjectMedia empties the drive.
func (c *client) EjectMedia(ctx context.Context) error {
	d, err := c.cdDrive(ctx, "EjectMedia")
	if err != nil || !d.inserted() {
		return err
	}
	return c.eject(ctx, d)
}

// eject empties a drive, whatever it shows.
func (c *client) eject(ctx context.Context, d drive) error {
	var (
		a   answer
		err error
	)
	if uri := d.Actions.Eject.URI; uri != "" {
		// iLO wants the empty body (sushy's fix-eject-media-empty-dict note).
		a, err = c.do(ctx, http.MethodPost, uri, struct{}{}, nil)
	} else if uri := d.control(); uri != "" {
		a, err = c.do(ctx, http.MethodPost, uri, map[string]any{"VmmControlType": "Disconnect"}, nil)
	} else {
		a, err = c.patch(ctx, d.uri, d.tag, map[string]any{"Image": nil, "Inserted": false})
		if notOffered(err) {
			a, err = c.unmount(ctx, d, err)
		}
	}
	if e := new(statusError); errors.As(err, &e) && e.status/100 == 4 && !errors.Is(e.kind, bmc.ErrUnauthorized) {
		if now, e := c.readDrive(ctx, d.uri); e == nil && !now.inserted() {
			return nil // empty already
		}
	}
	if err != nil {
		return err
	}
	if err := c.finish(ctx, "eject media", a); err != nil {
		return err
	}
	return c.await(ctx, d.uri, "eject media", func(now drive) bool { return !now.inserted() })
}

// await reads a drive until it is as wanted. A service that answers before it
// acts is common, and one that then fails in silence too (iDRAC 9,
// dell/terraform-provider-redfish issue 331).
func (c *client) await(ctx context.Context, uri, what string, wanted func(drive) bool) error {
	for began := c.clock.Now(); ; {
		d, err := c.readDrive(ctx, uri)
		if err != nil {
			return err
		}
		if wanted(d) {
			return nil
		}
		if c.clock.Since(began) >= mediaLimit {
			return fmt.Errorf("redfish: %s: the BMC accepted it, and the drive does not show it", what)
		}
		if err := c.sleep(ctx, mediaPoll); err != nil {
			return fmt.Errorf("redfish: %s: %w", what, err)
		}
	}
}
