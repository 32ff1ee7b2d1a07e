package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// attributeRegistry reads the registry that a Bios names; nil when the service
// does not have it. One that a service like this has sent before is not sent
// again, unless it does not know what the BIOS shows: then it has been behind.
func (c *client) attributeRegistry(ctx context.Context, key bmc.RegistryKey, knows func(*bmc.AttributeRegistry) bool) (*bmc.AttributeRegistry, error) {
	uri, err := c.registryURI(ctx, key.ID)
	if err != nil || uri == "" {
		return nil, err
	}
	known, tag := c.registries.Known(key)
	header := map[string]string{}
	if known != nil && knows(known) {
		header["If-None-Match"] = tag
	}
	a, err := c.do(ctx, http.MethodGet, uri, nil, header)
	e := new(statusError)
	switch {
	case errors.As(err, &e) && e.status == http.StatusNotModified && known != nil:
		return known, nil
	case notFound(err):
		c.mu.Lock()
		delete(c.registryURIs, key.ID) // it has moved
		c.mu.Unlock()
		return nil, nil
	case err != nil:
		return nil, err
	}
	return c.registries.Keep(key, a.header.Get("ETag"), a.body, parseRegistry)
}

// registryURI finds the document of a registry; "" when the service has none.
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
	if notFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, file := range byLikeness(files, id) {
		var f registryFile
		if _, err := c.get(ctx, file, &f); err != nil && !notFound(err) {
			return "", err
		}
		if f.ID != id && f.Registry != id && stem(f.Registry) != stem(id) && stem(f.ID) != stem(id) {
			continue
		}
		if uri = f.document(); uri != "" {
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

// stem is the name of a registry without its version.
func stem(id string) string {
	name, _, _ := strings.Cut(id, ".")
	return name
}

// byLikeness orders the addresses of registry files: what is called as the
// registry comes first, and a service has dozens of others.
func byLikeness(files []string, id string) []string {
	var same, alike, rest []string
	for _, f := range files {
		switch base := path.Base(strings.TrimRight(f, "/")); {
		case base == id:
			same = append(same, f)
		case stem(base) == stem(id):
			alike = append(alike, f)
		default:
			rest = append(rest, f)
		}
	}
	return append(append(same, alike...), rest...)
}

// registryFile is what the driver reads of a MessageRegistryFile.
type registryFile struct {
	ID       string `json:"Id"`
	Registry string `json:"Registry"`
	Location []struct {
		Language string          `json:"Language"`
		URI      json.RawMessage `json:"Uri"`
	} `json:"Location"`
}

// document is the address of the registry itself, in English where there is a
// choice. iLO has had an object with extref in the place of the address.
func (f registryFile) document() string {
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

// parseRegistry reads an AttributeRegistry (DSP2046).
func parseRegistry(body []byte) (*bmc.AttributeRegistry, error) {
	var doc struct {
		ID      string `json:"Id"`
		Entries struct {
			Attributes []struct {
				Name          string   `json:"AttributeName"`
				Type          string   `json:"Type"`
				Lower         *float64 `json:"LowerBound"`
				Upper         *float64 `json:"UpperBound"`
				MinLength     *float64 `json:"MinLength"`
				MaxLength     *float64 `json:"MaxLength"`
				ReadOnly      bool     `json:"ReadOnly"`
				Unique        bool     `json:"IsSystemUniqueProperty"`
				ResetRequired *bool    `json:"ResetRequired"`
				Values        []struct {
					Name string `json:"ValueName"`
				} `json:"Value"`
			} `json:"Attributes"`
		} `json:"RegistryEntries"`
	}
	if err := decode(body, &doc); err != nil {
		return nil, fmt.Errorf("redfish: attribute registry: %w", err)
	}
	whole := func(f *float64) *int64 {
		if f == nil {
			return nil
		}
		return new(int64(*f))
	}
	all := make([]bmc.Attribute, 0, len(doc.Entries.Attributes))
	for _, a := range doc.Entries.Attributes {
		if a.Name == "" {
			continue
		}
		one := bmc.Attribute{
			Name: a.Name, Type: bmc.AttributeType(a.Type), ReadOnly: a.ReadOnly, Unique: a.Unique,
			Lower: whole(a.Lower), Upper: whole(a.Upper), MinLength: whole(a.MinLength), MaxLength: whole(a.MaxLength),
			ResetRequired: a.ResetRequired == nil || *a.ResetRequired, // who does not say, waits for it
		}
		for _, v := range a.Values {
			one.Values = append(one.Values, v.Name)
		}
		all = append(all, one)
	}
	return bmc.NewAttributeRegistry(doc.ID, all), nil
}
