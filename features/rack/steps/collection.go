package steps

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

func (s *scenario) registerCollections(sc *stepRegistry) {
	sc.Step(`^GET ACCOUNT equals the response to POST$`, func() error {
		r, err := s.get(s.uri("ACCOUNT"))
		if err != nil {
			return err
		}
		if s.created.status != 201 || s.created.body["UserName"] == nil || !reflect.DeepEqual(s.created.body, r.body) {
			return fmt.Errorf("the response to POST was %s, the resource is %s", s.created, r)
		}
		return nil
	})
	sc.Step(`^the client creates accounts until one is refused$`, func() error {
		for i := range 1000 {
			err := s.send("POST", accountsURI, object{"UserName": fmt.Sprint("user-", i), "Password": "user-password", "RoleId": "ReadOnly"})
			if err != nil || s.response.status != 201 {
				s.mustBeChecked("POST", accountsURI)
				return err
			}
		}
		return errors.New("a thousand accounts have been created")
	})
	sc.Step(`^AccountService/Accounts has as many members as its MaxMembers$`, func() error {
		r, err := s.get(accountsURI)
		if err != nil {
			return err
		}
		return equal("the number of members", r.body["Members@odata.count"], r.at("@Redfish.CollectionCapabilities/MaxMembers"))
	})
	sc.Step(`^each RAIDType of the capabilities object can be created, and no other$`, s.createEachRAIDType)
	sc.Step(`^every resource has an @odata\.type that JsonSchemas and \$metadata list$`, s.schemasAreListed)
	sc.Step(`^every resource has a strong ETag, which is its @odata\.etag, and is answered with 304 to If-None-Match$`, s.resourcesHaveETags)
	sc.Step(`^the response has (\d+) members?$`, func(n int) error {
		all, ok := s.last().at("Members").([]any)
		if !ok {
			return fmt.Errorf("the response has no Members: %s", s.response)
		}
		return equal("the number of members", len(all), n)
	})
	sc.Step(`^GET (\S+) has (\d+) members, which are links$`, func(path string, n int) error {
		r, err := s.get(s.uri(path))
		if err != nil {
			return err
		}
		all, _ := r.at("Members").([]any)
		for _, m := range all {
			if o, _ := m.(object); len(o) != 1 || o["@odata.id"] == nil {
				return fmt.Errorf("a member is %v", m)
			}
		}
		if r.at("Members@odata.count") != float64(n) {
			return fmt.Errorf("the response is %s", r)
		}
		return equal("the number of members", len(all), n)
	})
	sc.Step(`^(\S+) (?:has|have) at least (\d+) members?$`, func(path string, n int) error {
		r, err := s.get(s.uri(path))
		if err != nil {
			return err
		}
		if count, _ := r.body["Members@odata.count"].(float64); count < float64(n) {
			return fmt.Errorf("there are %v", count)
		}
		return nil
	})
	sc.Step(`^the first member of the response has a RoleId that equals its Id$`, func() error {
		r := s.last()
		if r.at("Members/0/RoleId") == nil {
			return fmt.Errorf("the response is %s", r)
		}
		return equal("RoleId", r.at("Members/0/RoleId"), r.at("Members/0/Id"))
	})
	sc.Step(`^PowerState is the only property of the response, besides annotations$`, func() error {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.last().body)), func(n string) bool { return strings.HasPrefix(n, "@") })
		return equal("the list of properties", names, []string{"PowerState"})
	})
}

// raidTypes are the RAIDTypes of the standard (DSP2046, Volume).
var raidTypes = []string{"None", "RAID0", "RAID00", "RAID01", "RAID1", "RAID10", "RAID1E", "RAID3", "RAID4", "RAID5", "RAID50", "RAID6", "RAID60", "RAID6TP"}

// createEachRAIDType creates and deletes a volume of each RAIDType that the
// capabilities object lists, and tries those that it does not list.
func (s *scenario) createEachRAIDType() error {
	r, err := s.get(volumesURI)
	if err != nil {
		return err
	}
	all, _ := r.at("@Redfish.CollectionCapabilities/Capabilities").([]any)
	if len(all) != 1 {
		return fmt.Errorf("the capabilities are %s", r)
	}
	if r, err = s.get(fmt.Sprint(r.at("@Redfish.CollectionCapabilities/Capabilities/0/CapabilitiesObject/@odata.id"))); err != nil {
		return err
	}
	listed := map[string]bool{}
	kinds, _ := r.body["RAIDType@Redfish.AllowableValues"].([]any)
	for _, kind := range kinds {
		listed[fmt.Sprint(kind)] = true
	}
	var created []string
	for _, kind := range raidTypes {
		can, err := s.createVolumeOf(kind)
		if err != nil {
			return err
		}
		if can {
			created = append(created, kind)
		}
		// A listed type can still be refused for want of drives that fit.
		unknown := s.response.status >= 400 && slices.Contains(s.response.messageKeys(), "PropertyValueNotInList")
		if unknown == listed[kind] || can && unknown {
			return fmt.Errorf("%s: listed is %t, can be created is %t: %s", kind, listed[kind], can, s.response)
		}
	}
	if !slices.Equal(created, []string{"RAID0", "RAID1", "RAID10", "RAID5", "RAID6"}) {
		return fmt.Errorf("volumes of %v can be created", created)
	}
	return nil
}

// createVolumeOf reports whether a volume of a type can be created, on one to
// eight drives, and deletes it again.
func (s *scenario) createVolumeOf(kind string) (bool, error) {
	var drives []object
	for n := range 8 {
		drives = append(drives, object{"@odata.id": driveURI(n)})
		if err := s.send("POST", volumesURI, object{"RAIDType": kind, "Links": object{"Drives": drives}}); err != nil {
			return false, err
		}
		if s.response.status < 300 {
			s.lab.Advance(time.Minute)
			r, err := s.get(volumesURI)
			if err != nil {
				return false, err
			}
			for _, uri := range links(r.body["Members"]) {
				if err := s.sendOK("DELETE", uri, nil); err != nil {
					return false, err
				}
			}
			s.lab.Advance(time.Minute)
			return true, nil
		}
	}
	return false, nil
}

// schemasAreListed follows every link from the service root.
func (s *scenario) schemasAreListed() error {
	r, err := s.get(root + "/JsonSchemas")
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, uri := range links(r.body["Members"]) {
		listed[uri[strings.LastIndexByte(uri, '/')+1:]] = true
	}
	if r, err = s.get(root + "/$metadata"); err != nil {
		return err
	}
	metadata := r.text
	n := 0
	err = s.eachResource(func(uri string, r response) error {
		n++
		kind, _ := r.body["@odata.type"].(string)
		schema := strings.TrimPrefix(kind[:max(0, strings.LastIndexByte(kind, '.'))], "#")
		if !listed[schema] || !strings.Contains(metadata, `Namespace="`+schema+`"`) {
			return fmt.Errorf("%s is a %q, which is not listed", uri, kind)
		}
		if name, version, ok := strings.Cut(schema, "."); !strings.HasSuffix(kind, "."+name) || ok == strings.HasSuffix(name, "Collection") || ok && !strings.HasPrefix(version, "v1_") {
			return fmt.Errorf("%s is a %q", uri, kind)
		}
		return nil
	})
	if err == nil && n < 100 {
		err = fmt.Errorf("there are %d resources", n)
	}
	return err
}

// eachResource follows every link from the service root and calls do for each
// resource, until do returns an error.
func (s *scenario) eachResource(do func(uri string, r response) error) error {
	seen, todo := map[string]bool{}, []string{root + "/"}
	for len(todo) > 0 {
		uri := todo[0]
		todo = todo[1:]
		if seen[uri] || !strings.HasPrefix(uri, root+"/") || strings.Contains(uri, "#") {
			continue
		}
		seen[uri] = true
		r, err := s.get(uri)
		if err == nil {
			err = do(uri, r)
		}
		if err != nil {
			return err
		}
		todo = append(todo, links(r.body)...)
	}
	return nil
}

// strongETag is the form of a strong entity tag (RFC 9110, 8.8.3).
var strongETag = regexp.MustCompile(`^"[\x21\x23-\x7e]+"$`)

// resourcesHaveETags checks the ETag of every resource.
func (s *scenario) resourcesHaveETags() error {
	byTag := map[string]string{}
	err := s.eachResource(func(uri string, r response) error {
		tag := r.header.Get("ETag")
		if !strongETag.MatchString(tag) || r.body["@odata.etag"] != tag {
			return fmt.Errorf("%s has ETag %s and @odata.etag %v", uri, tag, r.body["@odata.etag"])
		}
		if other := byTag[tag]; other != "" {
			return fmt.Errorf("%s and %s have the same ETag", uri, other)
		}
		byTag[tag] = uri
		if err := s.send("GET", uri, nil, "If-None-Match", tag); err != nil {
			return err
		}
		if cached := s.last(); cached.status != 304 || cached.text != "" || cached.header.Get("ETag") != tag {
			return fmt.Errorf("GET %s with If-None-Match: %s is answered with %s", uri, tag, cached)
		}
		return nil
	})
	if err == nil && len(byTag) < 100 {
		err = fmt.Errorf("there are %d resources", len(byTag))
	}
	return err
}

// links returns the URIs of all @odata.id within a value, in a fixed order.
func links(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = append(out, links(x)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if uri, ok := v[name].(string); ok && name == "@odata.id" {
				out = append(out, uri)
			}
			out = append(out, links(v[name])...)
		}
	}
	return out
}
