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
	// staleLimit is how long a drive may be in use after it was emptied.
	staleLimit = time.Minute
	// restartAgain is after how long a BMC is restarted once more for its
	// virtual media.
	restartAgain = time.Hour
)

// InsertMedia inserts an image. Some services fetch by HTTPS alone (bmcweb,
// redfish-core/lib/virtual_media.hpp; Huawei's iBMC): where one does not take
// the first URL the next one is tried, and first the next time.
func (c *client) InsertMedia(ctx context.Context, urls ...string) error {
	if len(urls) == 0 {
		return errors.New("redfish: insert media: no URL of an image")
	}
	known, order := c.lessons.Way(aboutProtocol), slices.Clone(urls)
	slices.SortStableFunc(order, func(a, b string) int { // false is before true
		return boolean(protocolOf(a) != known) - boolean(protocolOf(b) != known)
	})
	var first error
	for _, url := range order {
		err := c.insertMedia(ctx, url, urls)
		if err == nil {
			if len(urls) > 1 {
				c.lessons.Learn(bmc.Lesson{Topic: aboutProtocol, Way: protocolOf(url), Odd: protocolOf(url) != protocolOf(urls[0])})
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

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// refusesURL reports whether it may be the URL that the BMC has something
// against, whatever it says.
func refusesURL(err error) bool {
	for _, other := range []error{bmc.ErrUnauthorized, bmc.ErrUnreachable, bmc.ErrUntrusted} {
		if errors.Is(err, other) {
			return false
		}
	}
	e := new(statusError)
	if !errors.As(err, &e) {
		return !errors.Is(err, bmc.ErrUnsupported) // a task that has failed, or a drive that stays empty
	}
	switch e.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return !e.has("OemLicenseNotPassed", "LicenseKeyRequired")
	}
	return false
}

// insertMedia inserts the image at url, after ejecting what is in the drive,
// unless that is the image already. A drive that does not take it gives way to
// the next one: the first can be for the console alone, whatever actions they
// show.
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
		failure := c.insert(ctx, d, url)
		if failure == nil {
			if len(dead) > 0 {
				c.lessons.Learn(bmc.Lesson{Topic: aboutSlot, Way: local(d.uri), Odd: true})
			}
			return nil
		}
		if first == nil {
			first = failure
		}
		if !deadSlot(failure) {
			return first
		}
		dead = append(dead, d.uri)
		if d, err = c.findDrive(ctx, "InsertMedia", dead); errors.Is(err, bmc.ErrUnsupported) {
			c.mu.Lock()
			c.drive = "" // none is better than the others
			c.mu.Unlock()
			return first
		}
	}
	return err
}

// insert puts an image into a drive.
func (c *client) insert(ctx context.Context, d drive, url string) error {
	if d.inserted() {
		if err := c.eject(ctx, d); err != nil {
			return err
		}
	}
	a, err := c.requestInsert(ctx, d, url)
	if detached(err) {
		return c.restartForMedia(ctx, err)
	}
	// It looks empty, and is not: an image that was ejected a moment ago is not
	// gone (storyboard.openstack.org story 2008504), or a session that has gone
	// holds it.
	began := c.clock.Now()
	for wait := time.Second; inUse(err) && c.clock.Since(began)+wait <= staleLimit; wait = min(2*wait, busyWaitMost) {
		if e := c.eject(ctx, d); e != nil {
			return err
		}
		if e := c.sleep(ctx, wait); e != nil {
			return fmt.Errorf("%w: %w", err, e)
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
	return errors.As(err, &e) && (e.status == http.StatusConflict || e.has("VRM0012", "ResourceInUse"))
}

// detached reports whether virtual media are not connected to the server (iDRAC:
// VRM0021).
func detached(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.has("VRM0021")
}

// deadSlot reports whether the drive will never take an image.
func deadSlot(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) {
		return false
	}
	switch e.status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusNotFound, http.StatusGone:
		return true
	}
	// A slot for the console may refuse whatever it is sent, and say nothing of
	// use.
	return e.has("ActionNotSupported", "ResourceMissingAtURI") || e.status == http.StatusBadRequest && aboutParameters(err)
}

// restartForMedia restarts the BMC, as there is no other way to get virtual
// media back that are detached (microsoft/lisa pull 4168).
func (c *client) restartForMedia(ctx context.Context, why error) error {
	now := c.clock.Now()
	c.mu.Lock()
	lately := c.restart != nil && now.Sub(*c.restart) < restartAgain
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
		c.restart = &now
		c.mu.Unlock()
		c.lessons.Learn(bmc.Lesson{Topic: aboutDetached, Way: "a restart of the BMC brings them back", Odd: true})
		return fmt.Errorf("redfish: insert media: %w: the BMC is being restarted: %s", bmc.ErrBusy, why) //nolint:errorlint // it has passed
	}
	return why
}

// requestInsert asks for an image. Services differ on which parameters they
// require and which they refuse, and refuse before they act: so the next list
// is tried when one is refused for its parameters.
func (c *client) requestInsert(ctx context.Context, d drive, url string) (answer, error) {
	stream := string(schemas.StreamTransferMethod)
	lists := []struct {
		name string
		body map[string]any
	}{
		{"the image alone", map[string]any{}},
		{"that it is inserted", map[string]any{"Inserted": true, "WriteProtected": true}},
		// NVIDIA DGX and xFusion require the rest (openshift/ironic-image pulls 560 and 819).
		{"how it is transferred", map[string]any{"TransferProtocolType": protocolOf(url), "TransferMethod": stream}},
		{"how it is transferred, and an account", map[string]any{"TransferProtocolType": protocolOf(url), "TransferMethod": stream, "UserName": "", "Password": ""}},
	}
	var ways []way
	if uri := d.control(); uri != "" && d.Actions.Insert.URI == "" {
		c.lessons.Learn(bmc.Lesson{Topic: aboutInsert, Way: "VmmControl", Odd: true})
		return c.do(ctx, http.MethodPost, uri, map[string]any{"VmmControlType": "Connect", "Image": url}, nil)
	}
	if d.Actions.Insert.URI == "" {
		if c.lessons.Way(aboutInsert) == isoWay {
			return c.mount(ctx, d, url, unsupported("InsertMedia", "its configuration of images is there no longer"))
		}
		// Lenovo XCC has no action, and wants Inserted as well
		// (stmcginnis/gofish issue 529; sushy's fix-virtual-media-fallback note).
		for _, l := range []struct {
			name string
			body map[string]any
		}{
			{"the image and that it is inserted", map[string]any{"Image": url, "Inserted": true}},
			{"the image alone", map[string]any{"Image": url}},
			{"how it is transferred", map[string]any{"Image": url, "Inserted": true, "WriteProtected": true, "TransferProtocolType": protocolOf(url), "TransferMethod": stream}},
		} {
			ways = append(ways, way{"PATCH of the slot, saying " + l.name, func() (answer, error) {
				return c.patch(ctx, d.uri, d.tag, l.body)
			}})
		}
		a, err := c.climb(aboutInsert, ways, aboutParameters)
		if err == nil {
			c.lessons.Learn(bmc.Lesson{Topic: aboutInsert, Way: c.lessons.Way(aboutInsert), Odd: true})
		}
		if notOffered(err) {
			return c.mount(ctx, d, url, err)
		}
		return a, err
	}
	for _, l := range lists {
		l.body["Image"] = url
		ways = append(ways, way{"InsertMedia, saying " + l.name, func() (answer, error) {
			return c.do(ctx, http.MethodPost, d.Actions.Insert.URI, l.body, nil)
		}})
	}
	return c.climb(aboutInsert, ways, aboutParameters)
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
