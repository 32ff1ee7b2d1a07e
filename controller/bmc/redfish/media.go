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
	mediaLimit = time.Minute // for a drive to show a change that the BMC has accepted
)

// virtualDrive holds the properties that the driver reads of a VirtualMedia
// resource.
type virtualDrive struct {
	Image    string   `json:"Image"`
	Inserted *bool    `json:"Inserted"`
	Types    []string `json:"MediaTypes"`
	Actions  struct {
		Insert actionTarget `json:"#VirtualMedia.InsertMedia"`
		Eject  actionTarget `json:"#VirtualMedia.EjectMedia"`
		// OEM holds the vendors' actions, by vendor and name.
		OEM map[string]map[string]json.RawMessage `json:"Oem"`
	} `json:"Actions"`
	OEM map[string]struct {
		Actions map[string]json.RawMessage `json:"Actions"`
	} `json:"Oem"`

	uri string
	tag string // ETag
}

type actionTarget struct {
	URI string `json:"target"`
}

// inserted reports whether the drive holds an image. Supermicro leaves Image set
// after an eject, and iLO has "" in place of null.
func (d virtualDrive) inserted() bool {
	if d.Inserted != nil {
		return *d.Inserted
	}
	return d.Image != ""
}

// vmmControl returns the URI of the action VmmControl, with which Huawei's iBMC
// and its derivatives insert and eject, under any vendor's name; "" if there is
// none.
func (d virtualDrive) vmmControl() string {
	target := func(actions map[string]json.RawMessage) string {
		var t actionTarget
		_ = decode(actions["#VirtualMedia.VmmControl"], &t) // missing in most services
		return t.URI
	}
	for _, actions := range d.Actions.OEM { // a drive has one vendor
		if uri := target(actions); uri != "" {
			return uri
		}
	}
	for _, oem := range d.OEM {
		if uri := target(oem.Actions); uri != "" {
			return uri
		}
	}
	return ""
}

func (d virtualDrive) isCD() bool {
	return slices.Contains(d.Types, string(schemas.CDVirtualMediaType)) || slices.Contains(d.Types, string(schemas.DVDVirtualMediaType))
}

func (c *client) readDrive(ctx context.Context, uri string) (virtualDrive, error) {
	var d virtualDrive
	a, err := c.get(ctx, uri, &d)
	d.uri, d.tag = uri, etag(a)
	return d, err
}

// cdDrive reads the virtual CD drive. It caches the drive's URI until that answers
// 404: iDRAC 9 moved the drive from the manager to the system with firmware 6.00
// (dell/iDRAC-Redfish-Scripting issue 265).
func (c *client) cdDrive(ctx context.Context, verb string) (virtualDrive, error) {
	c.mu.Lock()
	uri := c.knownDrive
	c.mu.Unlock()
	for _, uri := range []string{uri, c.workarounds.Variant(topicMediaSlot)} {
		if uri == "" {
			continue
		}
		d, err := c.readDrive(ctx, uri)
		if !isNotFound(err) {
			return d, err
		}
	}
	return c.findDrive(ctx, verb, nil)
}

// findDrive searches for the virtual CD drive, except for the URIs in dead: first
// in the system, where the standard has it now, then in its managers, where it was
// before 2021.
func (c *client) findDrive(ctx context.Context, verb string, dead []string) (virtualDrive, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return virtualDrive{}, err
	}
	if d, err := c.pickDrive(ctx, s.VirtualMedia.ID, dead); err != nil || d.uri != "" {
		return d, err
	}
	managers, err := c.managers(ctx, s)
	if err != nil {
		return virtualDrive{}, err
	}
	for _, uri := range managers {
		var m struct {
			VirtualMedia link `json:"VirtualMedia"`
		}
		if _, err := c.get(ctx, uri, &m); err != nil {
			return virtualDrive{}, err
		}
		if d, err := c.pickDrive(ctx, m.VirtualMedia.ID, dead); err != nil || d.uri != "" {
			return d, err
		}
	}
	if err := c.checkAwake(ctx); err != nil {
		return virtualDrive{}, err
	}
	return virtualDrive{}, unsupported(verb, "it has no virtual CD drive")
}

// managers returns the URIs of the system's managers. Services that do not link
// them (Huawei 1288H, Cisco) have them in the root's collection.
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

// pickDrive chooses a CD drive of a collection: the first with an action to
// insert, else the first without any action, else the first. Slots that serve the
// console alone have only the action to eject (OpenBMC, Cisco;
// bugs.launchpad.net/ironic bug 2031595).
func (c *client) pickDrive(ctx context.Context, collection string, dead []string) (virtualDrive, error) {
	if collection == "" {
		return virtualDrive{}, nil
	}
	uris, err := c.members(ctx, collection)
	if err != nil && !isNotFound(err) {
		return virtualDrive{}, err
	}
	var best virtualDrive
	for _, uri := range uris {
		if slices.Contains(dead, uri) {
			continue
		}
		d, err := c.readDrive(ctx, uri)
		if err != nil {
			return virtualDrive{}, err
		}
		if d.isCD() && (d.Actions.Insert.URI != "" || d.vmmControl() != "") {
			best = d
			break
		}
		if d.isCD() && (best.uri == "" || best.Actions.Eject.URI != "" && d.Actions.Eject.URI == "") {
			best = d
		}
	}
	if best.uri != "" {
		c.mu.Lock()
		c.knownDrive = best.uri
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

func isNotFound(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone)
}

// EjectMedia ejects the image from the virtual CD drive, if there is one.
func (c *client) EjectMedia(ctx context.Context) error {
	d, err := c.cdDrive(ctx, "EjectMedia")
	if err != nil || !d.inserted() {
		return err
	}
	return c.eject(ctx, d)
}

// eject ejects a drive, even if it looks empty.
func (c *client) eject(ctx context.Context, d virtualDrive) error {
	var (
		a   response
		err error
	)
	if uri := d.Actions.Eject.URI; uri != "" {
		// iLO requires the empty body (sushy's fix-eject-media-empty-dict note).
		a, err = c.do(ctx, http.MethodPost, uri, struct{}{}, nil)
	} else if uri := d.vmmControl(); uri != "" {
		a, err = c.do(ctx, http.MethodPost, uri, map[string]any{"VmmControlType": "Disconnect"}, nil)
	} else {
		a, err = c.patch(ctx, d.uri, d.tag, map[string]any{"Image": nil, "Inserted": false})
		if notOffered(err) {
			a, err = c.unmountISO(ctx, d, err)
		}
	}
	if e := new(statusError); errors.As(err, &e) && e.status/100 == 4 && !errors.Is(e.kind, bmc.ErrUnauthorized) {
		if now, e := c.readDrive(ctx, d.uri); e == nil && !now.inserted() {
			return nil // it was empty already
		}
	}
	if err != nil {
		return err
	}
	if err := c.awaitTask(ctx, "eject media", a); err != nil {
		return err
	}
	return c.awaitDrive(ctx, d.uri, "eject media", func(now virtualDrive) bool { return !now.inserted() })
}

// awaitDrive reads a drive until wanted returns true, for at most mediaLimit.
// Services often respond before they act, and some then fail silently (iDRAC 9,
// dell/terraform-provider-redfish issue 331).
func (c *client) awaitDrive(ctx context.Context, uri, what string, wanted func(virtualDrive) bool) error {
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
