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

// isoConfigVariant is the request that older Supermicros take in place of
// InsertMedia: the image's URL is written into a configuration beside the drives,
// and then mounted (jgato/jgato, random_docs/Configuring_SuperMicro_UEFI.md;
// redhat-performance/badfish).
const isoConfigVariant = "IsoConfig"

// isoConfig holds the properties that the driver reads of an IsoConfig resource.
type isoConfig struct {
	Actions struct {
		Mount   actionTarget `json:"#IsoConfig.Mount"`
		UnMount actionTarget `json:"#IsoConfig.UnMount"`
	} `json:"Actions"`

	uri string
	tag string
}

// isoConfig reads the configuration that the collection of a drive links to. It
// returns refused, the error of the standard request, if there is none.
func (c *client) isoConfig(ctx context.Context, d virtualDrive, refused error) (isoConfig, error) {
	var collection struct {
		OEM map[string]json.RawMessage `json:"Oem"`
	}
	if _, err := c.get(ctx, path.Dir(localPath(d.uri)), &collection); err != nil {
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

// mountISO inserts an image through the IsoConfig resource.
func (c *client) mountISO(ctx context.Context, d virtualDrive, image string, refused error) (response, error) {
	config, err := c.isoConfig(ctx, d, refused)
	if err != nil {
		return response{}, err
	}
	u, err := url.Parse(image)
	if err != nil {
		return response{}, refused // unlike the parser's error it does not quote the password
	}
	password, _ := u.User.Password()
	body := map[string]any{
		"Host": u.Scheme + "://" + u.Host, "Path": u.RequestURI(), "Username": u.User.Username(), "Password": password,
	}
	if _, err := c.patch(ctx, config.uri, config.tag, body); err != nil {
		return response{}, err
	}
	a, err := c.do(ctx, http.MethodPost, config.Actions.Mount.URI, struct{}{}, nil)
	if err == nil {
		c.workarounds.Record(bmc.Workaround{Topic: topicInsertMedia, Variant: isoConfigVariant, Nonstandard: true})
	}
	return a, err
}

// unmountISO empties the drive through the IsoConfig resource.
func (c *client) unmountISO(ctx context.Context, d virtualDrive, refused error) (response, error) {
	config, err := c.isoConfig(ctx, d, refused)
	if err != nil {
		return response{}, err
	}
	return c.do(ctx, http.MethodPost, config.Actions.UnMount.URI, struct{}{}, nil)
}

// notOffered reports whether the service lacks the operation.
func notOffered(err error) bool {
	e := new(statusError)
	if !errors.As(err, &e) {
		return false
	}
	switch e.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return isBadRequest(err) && refusesParameters(err)
}
