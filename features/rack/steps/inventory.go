package steps

import (
	"fmt"
	"slices"
)

// versionProperties are the properties in which resources show the version of their
// firmware.
var versionProperties = []string{"BiosVersion", "FirmwareVersion", "FirmwarePackageVersion", "Revision"}

func (s *scenario) registerInventory(sc *stepRegistry) {
	var versions map[string][]string // versions of the items, by the URI of a related resource
	sc.Step(`^each item of the inventory has Version, Updateable and RelatedItem$`, func() (err error) {
		versions, err = s.firmwareVersions()
		return err
	})
	sc.Step(`^the firmware version of each resource is that of an item$`, func() error {
		shown := map[string]bool{}
		err := s.eachResource(func(uri string, r response) error {
			for _, name := range versionProperties {
				version, ok := r.body[name].(string)
				if ok && !slices.Contains(versions[uri], version) {
					return fmt.Errorf("%s of %s is %s, its items have %q", name, uri, version, versions[uri])
				}
				shown[name] = shown[name] || ok
			}
			return nil
		})
		if err != nil {
			return err
		}
		return equal("the number of properties that show versions", len(shown), len(versionProperties))
	})
}

// firmwareVersions reads each item of the firmware inventory, and returns the versions
// by the URIs of the resources that it is the firmware of.
func (s *scenario) firmwareVersions() (map[string][]string, error) {
	r, err := s.get(updateURI + "/FirmwareInventory")
	if err != nil {
		return nil, err
	}
	versions := map[string][]string{}
	for _, uri := range links(r.body["Members"]) {
		item, err := s.get(uri)
		if err != nil {
			return nil, err
		}
		version, _ := item.body["Version"].(string)
		_, updateable := item.body["Updateable"].(bool)
		related := links(item.body["RelatedItem"])
		if version == "" || !updateable || len(related) == 0 || item.body["RelatedItem@odata.count"] != float64(len(related)) {
			return nil, fmt.Errorf("an item is %s", item)
		}
		for _, of := range related {
			versions[of] = append(versions[of], version)
		}
	}
	return versions, nil
}
