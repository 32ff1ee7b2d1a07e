package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
	} `json:"Actions"`

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
	if uri != "" {
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
// insert, else the first CD drive: the first slots can be for the console
// alone (OpenBMC, Cisco; bugs.launchpad.net/ironic bug 2031595).
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
		if d.isCD() && d.Actions.Insert.URI != "" {
			best = d
			break
		}
		if d.isCD() && best.uri == "" {
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

// InsertMedia inserts the image at url, after ejecting what is in the drive.
func (c *client) InsertMedia(ctx context.Context, url string) error {
	d, err := c.cdDrive(ctx, "InsertMedia")
	var dead []string
	for err == nil {
		if d.inserted() && d.Image == url {
			return nil
		}
		if d.inserted() {
			if err := c.eject(ctx, d); err != nil {
				return err
			}
		}
		failure := c.insert(ctx, d, url)
		if !deadSlot(failure) {
			return failure
		}
		dead = append(dead, d.uri)
		if d, err = c.findDrive(ctx, "InsertMedia", dead); errors.Is(err, bmc.ErrUnsupported) {
			return failure
		}
	}
	return err
}

// EjectMedia empties the drive.
func (c *client) EjectMedia(ctx context.Context) error {
	d, err := c.cdDrive(ctx, "EjectMedia")
	if err != nil || !d.inserted() {
		return err
	}
	return c.eject(ctx, d)
}

func (c *client) insert(ctx context.Context, d drive, url string) error {
	a, err := c.requestInsert(ctx, d, url)
	if inUse(err) {
		// It looked empty, and is not: a session that has gone holds it.
		if e := c.eject(ctx, d); e != nil {
			return err
		}
		a, err = c.requestInsert(ctx, d, url)
	}
	if err != nil {
		return err
	}
	if err := c.finish(ctx, "insert media", a); err != nil {
		return err
	}
	old := ""
	if d.inserted() {
		old = d.Image
	}
	// iDRACs go on showing the old image for a while after it was ejected
	// (storyboard.openstack.org story 2008504); others rewrite the URL.
	return c.await(ctx, d.uri, "insert media", func(now drive) bool {
		return now.inserted() && (now.Image == url || now.Image != old || old == "")
	})
}

// inUse reports whether the drive is said to hold an image (iDRAC: VRM0012).
func inUse(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusConflict || e.has("VRM0012"))
}

// deadSlot reports whether the drive will never take an image.
func deadSlot(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotImplemented || e.has("ActionNotSupported"))
}

func notFound(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone)
}

// requestInsert asks for an image. Services differ on which parameters they
// require and which they refuse, and refuse before they act: so the next list
// is tried when one is refused for its parameters.
func (c *client) requestInsert(ctx context.Context, d drive, url string) (answer, error) {
	send := func(body map[string]any) (answer, error) {
		return c.do(ctx, http.MethodPost, d.Actions.Insert.URI, body, nil)
	}
	if d.Actions.Insert.URI == "" {
		// Lenovo XCC has no action (stmcginnis/gofish issue 529).
		send = func(body map[string]any) (answer, error) {
			body["Inserted"] = true
			return c.patch(ctx, d.uri, d.tag, body)
		}
	}
	var first error
	for _, body := range []map[string]any{
		{"Image": url, "Inserted": true, "WriteProtected": true},
		// Supermicro X11 and X12 know the image alone (sushy's fix-insert-media-payload note).
		{"Image": url},
		// NVIDIA DGX and xFusion require the rest (openshift/ironic-image pulls 560 and 819).
		{"Image": url, "TransferProtocolType": protocolOf(url), "TransferMethod": string(schemas.StreamTransferMethod)},
		{"Image": url, "TransferProtocolType": protocolOf(url), "TransferMethod": string(schemas.StreamTransferMethod),
			"UserName": "", "Password": ""},
	} {
		a, err := send(body)
		if !aboutParameters(err) {
			return a, err
		}
		if first == nil {
			first = err
		}
	}
	return answer{}, first
}

func protocolOf(image string) string {
	u, err := url.Parse(image)
	if err != nil {
		return ""
	}
	return strings.ToUpper(u.Scheme)
}

// aboutParameters reports whether a 400 is about the parameters of an insert,
// or does not say what it is about.
func aboutParameters(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) || e.status != http.StatusBadRequest {
		return false
	}
	if e.has("ActionParameterMissing", "ActionParameterNotSupported", "ActionParameterUnknown", "ActionParameterValueTypeError",
		"PropertyMissing", "PropertyUnknown", "PropertyNotWritable") {
		return true
	}
	for _, name := range []string{"Inserted", "WriteProtected", "TransferProtocolType", "TransferMethod", "UserName"} {
		if strings.Contains(strings.Join(e.arguments, " ")+e.text, name) {
			return true
		}
	}
	return !slices.ContainsFunc(e.ids, func(id string) bool { return id != "" && id != "GeneralError" })
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
	} else {
		a, err = c.patch(ctx, d.uri, d.tag, map[string]any{"Image": nil, "Inserted": false})
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
