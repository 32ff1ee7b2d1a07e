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
	// inUseLimit bounds the retries while the BMC reports an emptied drive as in
	// use.
	inUseLimit = time.Minute
	// bmcRestartInterval is the shortest time between two restarts of the BMC for
	// its virtual media.
	bmcRestartInterval = time.Hour
)

// InsertMedia inserts an image. Some services fetch by HTTPS alone (bmcweb,
// redfish-core/lib/virtual_media.hpp; Huawei's iBMC): when the first URL is
// refused the next is tried, and the protocol that worked is tried first from then
// on.
func (c *client) InsertMedia(ctx context.Context, urls ...string) error {
	if len(urls) == 0 {
		return errors.New("redfish: insert media: no URL of an image")
	}
	known, order := c.workarounds.Variant(topicMediaProtocol), slices.Clone(urls)
	slices.SortStableFunc(order, func(a, b string) int { // false is before true
		return boolToInt(protocolOf(a) != known) - boolToInt(protocolOf(b) != known)
	})
	var first error
	for _, url := range order {
		err := c.insertMedia(ctx, url, urls)
		if err == nil {
			if len(urls) > 1 {
				c.workarounds.Record(bmc.Workaround{Topic: topicMediaProtocol, Variant: protocolOf(url), Nonstandard: protocolOf(url) != protocolOf(urls[0])})
			}
			return nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || !refusesURL(err) {
			break
		}
	}
	return first
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// refusesURL reports whether the BMC may object to the URL itself. Services do not
// agree on a message for this, so every error counts that has no other known
// cause.
func refusesURL(err error) bool {
	for _, other := range []error{bmc.ErrUnauthorized, bmc.ErrUnreachable, bmc.ErrUntrusted} {
		if errors.Is(err, other) {
			return false
		}
	}
	e := new(statusError)
	if !errors.As(err, &e) {
		return !errors.Is(err, bmc.ErrUnsupported) // a failed task, or a drive that stays empty
	}
	switch e.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return !e.has("OemLicenseNotPassed", "LicenseKeyRequired")
	}
	return false
}

// insertMedia inserts the image at url after ejecting the present one, unless one
// of same is inserted already. When a slot never accepts an image the next slot is
// tried: the first may serve the remote console alone, whatever actions it
// advertises.
func (c *client) insertMedia(ctx context.Context, url string, same []string) error {
	d, err := c.cdDrive(ctx, "InsertMedia")
	var (
		dead  []string
		first error
	)
	for err == nil {
		if d.inserted() && slices.Contains(same, d.Image) {
			return nil
		}
		failure := c.insertInto(ctx, d, url)
		if failure == nil {
			if len(dead) > 0 {
				c.workarounds.Record(bmc.Workaround{Topic: topicMediaSlot, Variant: localPath(d.uri), Nonstandard: true})
			}
			return nil
		}
		if first == nil {
			first = failure
		}
		if !isUnusableSlot(failure) {
			return first
		}
		dead = append(dead, d.uri)
		if d, err = c.findDrive(ctx, "InsertMedia", dead); errors.Is(err, bmc.ErrUnsupported) {
			c.mu.Lock()
			c.knownDrive = "" // no slot is better than another
			c.mu.Unlock()
			return first
		}
	}
	return err
}

// insertInto inserts an image into one drive and waits until the drive shows it.
func (c *client) insertInto(ctx context.Context, d virtualDrive, url string) error {
	if d.inserted() {
		if err := c.eject(ctx, d); err != nil {
			return err
		}
	}
	a, err := c.postInsert(ctx, d, url)
	if isDetached(err) {
		return c.restartForMedia(ctx, err)
	}
	// The drive looks empty and is not: the BMC has not yet released an image
	// ejected a moment ago (storyboard.openstack.org story 2008504), or a session
	// that has ended holds it.
	began := c.clock.Now()
	for wait := time.Second; isInUse(err) && c.clock.Since(began)+wait <= inUseLimit; wait = min(2*wait, maxBusyWait) {
		if e := c.eject(ctx, d); e != nil {
			return err
		}
		if e := c.sleep(ctx, wait); e != nil {
			return fmt.Errorf("%w: %w", err, e)
		}
		a, err = c.postInsert(ctx, d, url)
	}
	if err != nil {
		return err
	}
	if err := c.awaitTask(ctx, "insert media", a); err != nil {
		return err
	}
	old := ""
	if d.inserted() {
		old = d.Image
	}
	// iDRACs show the old image for a while after it was ejected
	// (storyboard.openstack.org story 2008504); other BMCs rewrite the URL.
	return c.awaitDrive(ctx, d.uri, "insert media", func(now virtualDrive) bool {
		return now.inserted() && (now.Image == url || now.Image != old || old == "")
	})
}

// isInUse reports whether the service refused a request because the drive holds an
// image: 409, VRM0012 (iDRAC) or ResourceInUse.
func isInUse(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusConflict || e.has("VRM0012", "ResourceInUse"))
}

// isDetached reports whether virtual media are disconnected from the server
// (iDRAC: VRM0021).
func isDetached(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.has("VRM0021")
}

// isUnusableSlot reports whether the drive will never accept an image.
func isUnusableSlot(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) {
		return false
	}
	switch e.status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusNotFound, http.StatusGone:
		return true
	}
	// A slot that serves the console alone may refuse every insert without a
	// specific message.
	return e.has("ActionNotSupported", "ResourceMissingAtURI") || e.status == http.StatusBadRequest && refusesParameters(err)
}

// restartForMedia restarts the BMC: nothing else reattaches detached virtual media
// (microsoft/lisa pull 4168). It returns bmc.ErrBusy when the restart has begun,
// and why when the last restart was less than bmcRestartInterval ago or no manager
// offers one.
func (c *client) restartForMedia(ctx context.Context, why error) error {
	now := c.clock.Now()
	c.mu.Lock()
	lately := c.bmcRestart != nil && now.Sub(*c.bmcRestart) < bmcRestartInterval
	c.mu.Unlock()
	if lately {
		return why
	}
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	managers, err := c.managers(ctx, s)
	if err != nil {
		return err
	}
	for _, uri := range managers {
		var m struct {
			Actions struct {
				Reset struct {
					Target string   `json:"target"`
					Types  []string `json:"ResetType@Redfish.AllowableValues"`
				} `json:"#Manager.Reset"`
			} `json:"Actions"`
		}
		if _, err := c.get(ctx, uri, &m); err != nil || m.Actions.Reset.Target == "" {
			continue
		}
		body := map[string]any{}
		for _, t := range []schemas.ResetType{schemas.GracefulRestartResetType, schemas.ForceRestartResetType} {
			if body["ResetType"] == nil && slices.Contains(m.Actions.Reset.Types, string(t)) {
				body["ResetType"] = t
			}
		}
		if _, err := c.do(ctx, http.MethodPost, m.Actions.Reset.Target, body, nil); err != nil {
			return err
		}
		c.mu.Lock()
		c.bmcRestart = &now
		c.mu.Unlock()
		c.workarounds.Record(bmc.Workaround{Topic: topicMediaDetached, Variant: "a restart of the BMC reattaches them", Nonstandard: true})
		return fmt.Errorf("redfish: insert media: %w: the BMC is being restarted: %s", bmc.ErrBusy, why) //nolint:errorlint // it has passed
	}
	return why
}

// postInsert sends the insert. Services differ on which parameters they require
// and which they refuse, and refuse before they act: each refusal of the
// parameters leads to the next list.
func (c *client) postInsert(ctx context.Context, d virtualDrive, url string) (response, error) {
	stream := string(schemas.StreamTransferMethod)
	lists := []struct {
		name string
		body map[string]any
	}{
		{"Image only", map[string]any{}},
		{"Inserted and WriteProtected", map[string]any{"Inserted": true, "WriteProtected": true}},
		// NVIDIA DGX and xFusion require the rest (openshift/ironic-image pulls 560 and 819).
		{"TransferProtocolType and TransferMethod", map[string]any{"TransferProtocolType": protocolOf(url), "TransferMethod": stream}},
		{"TransferProtocolType, TransferMethod, UserName and Password", map[string]any{"TransferProtocolType": protocolOf(url), "TransferMethod": stream, "UserName": "", "Password": ""}},
	}
	var variants []variant
	if uri := d.vmmControl(); uri != "" && d.Actions.Insert.URI == "" {
		c.workarounds.Record(bmc.Workaround{Topic: topicInsertMedia, Variant: "VmmControl", Nonstandard: true})
		return c.do(ctx, http.MethodPost, uri, map[string]any{"VmmControlType": "Connect", "Image": url}, nil)
	}
	if d.Actions.Insert.URI == "" {
		if c.workarounds.Variant(topicInsertMedia) == isoConfigVariant {
			return c.mountISO(ctx, d, url, unsupported("InsertMedia", "its configuration of images is there no longer"))
		}
		// Lenovo XCC has no action and requires Inserted in the PATCH
		// (stmcginnis/gofish issue 529; sushy's fix-virtual-media-fallback note).
		for _, l := range []struct {
			name string
			body map[string]any
		}{
			{"Image and Inserted", map[string]any{"Image": url, "Inserted": true}},
			{"Image only", map[string]any{"Image": url}},
			{"Image, Inserted, WriteProtected, TransferProtocolType and TransferMethod", map[string]any{"Image": url, "Inserted": true, "WriteProtected": true, "TransferProtocolType": protocolOf(url), "TransferMethod": stream}},
		} {
			variants = append(variants, variant{"PATCH of the slot with " + l.name, func() (response, error) {
				return c.patch(ctx, d.uri, d.tag, l.body)
			}})
		}
		a, err := c.tryVariants(topicInsertMedia, variants, refusesParameters)
		if err == nil {
			c.workarounds.Record(bmc.Workaround{Topic: topicInsertMedia, Variant: c.workarounds.Variant(topicInsertMedia), Nonstandard: true})
		}
		if notOffered(err) {
			return c.mountISO(ctx, d, url, err)
		}
		return a, err
	}
	for _, l := range lists {
		l.body["Image"] = url
		variants = append(variants, variant{"InsertMedia with " + l.name, func() (response, error) {
			return c.do(ctx, http.MethodPost, d.Actions.Insert.URI, l.body, nil)
		}})
	}
	return c.tryVariants(topicInsertMedia, variants, refusesParameters)
}

func protocolOf(image string) string {
	u, err := url.Parse(image)
	if err != nil {
		return ""
	}
	return strings.ToUpper(u.Scheme)
}

// refusesParameters reports whether a 400 is about the parameters of an insert, or
// gives no cause.
func refusesParameters(err error) bool {
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
