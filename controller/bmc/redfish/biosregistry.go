package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// attributeRegistry reads the registry that a Bios names; nil if the service does
// not have it. A registry that a similar service has sent before is requested with
// If-None-Match, unless it lacks attributes that the BIOS has: then it is out of
// date.
func (c *client) attributeRegistry(ctx context.Context, key bmc.RegistryKey, knows func(*bmc.AttributeRegistry) bool) (*bmc.AttributeRegistry, error) {
	uri, err := c.registryURI(ctx, key.ID)
	if err != nil || uri == "" {
		return nil, err
	}
	known, tag := c.registries.Lookup(key)
	header := map[string]string{}
	if known != nil && knows(known) {
		header["If-None-Match"] = tag
	}
	a, err := c.do(ctx, http.MethodGet, uri, nil, header)
	e := new(statusError)
	switch {
	case errors.As(err, &e) && e.status == http.StatusNotModified && known != nil:
		return known, nil
	case isNotFound(err):
		c.mu.Lock()
		delete(c.registryURIs, key.ID) // it has moved
		c.mu.Unlock()
		return nil, nil
	case err != nil:
		return nil, err
	}
	return c.registries.Store(key, a.header.Get("ETag"), a.body, parseRegistry)
}

// registryURI returns the URI of a registry's document; "" if the service has
// none.
func (c *client) registryURI(ctx context.Context, id string) (string, error) {
	c.mu.Lock()
	uri, known := c.registryURIs[id]
	collection := c.root.Registries.ID
	c.mu.Unlock()
	if known {
		return uri, nil
	}
	if collection == "" {
		collection = servicePath + "Registries"
	}
	files, err := c.members(ctx, collection)
	if isNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, file := range sortByMatch(files, id) {
		var f registryFile
		if _, err := c.get(ctx, file, &f); err != nil && !isNotFound(err) {
			return "", err
		}
		if f.ID != id && f.Registry != id && registryName(f.Registry) != registryName(id) && registryName(f.ID) != registryName(id) {
			continue
		}
		if uri = f.documentURI(); uri != "" {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registryURIs == nil {
		c.registryURIs = map[string]string{}
	}
	c.registryURIs[id] = uri
	return uri, nil
}

// registryName returns the name of a registry without its version.
func registryName(id string) string {
	name, _, _ := strings.Cut(id, ".")
	return name
}

// sortByMatch puts the registry files first that are named like the registry: a
// service has dozens of others.
func sortByMatch(files []string, id string) []string {
	var same, alike, rest []string
	for _, f := range files {
		switch base := path.Base(strings.TrimRight(f, "/")); {
		case base == id:
			same = append(same, f)
		case registryName(base) == registryName(id):
			alike = append(alike, f)
		default:
			rest = append(rest, f)
		}
	}
	return append(append(same, alike...), rest...)
}

// registryFile holds the properties that the driver reads of a
// MessageRegistryFile.
type registryFile struct {
	ID       string `json:"Id"`
	Registry string `json:"Registry"`
	Location []struct {
		Language string          `json:"Language"`
		URI      json.RawMessage `json:"Uri"`
	} `json:"Location"`
}

// documentURI returns the URI of the registry, in English if there is a choice.
// Some iLOs have an object with extref in place of the URI.
func (f registryFile) documentURI() string {
	first := ""
	for _, l := range f.Location {
		var uri string
		var object struct {
			Ref string `json:"extref"`
		}
		if json.Unmarshal(l.URI, &uri) != nil && json.Unmarshal(l.URI, &object) == nil {
			uri = object.Ref
		}
		switch {
		case uri == "":
		case strings.HasPrefix(l.Language, "en"):
			return uri
		case first == "":
			first = uri
		}
	}
	return first
}
