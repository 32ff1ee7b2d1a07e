package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// isoWay is how older Supermicros are given an image: its place is written into a
// configuration beside the drives, and then mounted (jgato/jgato,
// random_docs/Configuring_SuperMicro_UEFI.md; redhat-performance/badfish).
const isoWay = "IsoConfig"

// isoConfig is such a configuration, and what can be done with it.
type isoConfig struct {
	Actions struct {
		Mount   target `json:"#IsoConfig.Mount"`
		UnMount target `json:"#IsoConfig.UnMount"`
	} `json:"Actions"`

	uri string
	tag string
}

// isoConfig reads the configuration that the collection of a drive links to;
// refused is why it is looked for, and the error where there is none.
func (c *client) isoConfig(ctx context.Context, d drive, refused error) (isoConfig, error) {
	var collection struct {
		OEM map[string]json.RawMessage `json:"Oem"`
	}
	if _, err := c.get(ctx, path.Dir(local(d.uri)), &collection); err != nil {
		return isoConfig{}, err
	}
	for _, oem := range collection.OEM { // a collection has one vendor
		var links struct {
			Config link `json:"VirtualMediaConfig"`
		}
		if decode(oem, &links) != nil || links.Config.ID == "" {
			continue
		}
		found := isoConfig{uri: links.Config.ID}
		a, err := c.get(ctx, found.uri, &found)
		if found.tag = etag(a); err != nil || found.Actions.Mount.URI != "" {
			return found, err
		}
	}
	return isoConfig{}, refused
}

// mount inserts the image at image.
func (c *client) mount(ctx context.Context, d drive, image string, refused error) (answer, error) {
	config, err := c.isoConfig(ctx, d, refused)
	if err != nil {
		return answer{}, err
	}
	u, err := url.Parse(image)
	if err != nil {
		return answer{}, refused // which names it without its password
	}
	password, _ := u.User.Password()
	body := map[string]any{
		"Host": u.Scheme + "://" + u.Host, "Path": u.RequestURI(), "Username": u.User.Username(), "Password": password,
	}
	if _, err := c.patch(ctx, config.uri, config.tag, body); err != nil {
		return answer{}, err
	}
	a, err := c.do(ctx, http.MethodPost, config.Actions.Mount.URI, struct{}{}, nil)
	if err == nil {
		c.lessons.Learn(bmc.Lesson{Topic: aboutInsert, Way: isoWay, Odd: true})
	}
	return a, err
}

// unmount empties the drive.
func (c *client) unmount(ctx context.Context, d drive, refused error) (answer, error) {
	config, err := c.isoConfig(ctx, d, refused)
	if err != nil {
		return answer{}, err
	}
	return c.do(ctx, http.MethodPost, config.Actions.UnMount.URI, struct{}{}, nil)
}

// notOffered reports whether a service has no such operation at all.
func notOffered(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) {
		return false
	}
	switch e.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return badRequest(err) && aboutParameters(err)
}
