package redfish_test

import (
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Lists that the service does not have are nil, those that are empty are not: the system has
// no NIC and no disk then.
func TestInventoryTellsNoneFromNotShown(t *testing.T) {
	const nics = systemPath + "/EthernetInterfaces"
	for name, tt := range map[string]struct {
		subsystem      map[string]any // nil: the system has no Storage
		hasNICs        bool
		noNIC, noDisks bool // the list is empty, and not nil
	}{
		"neither is shown":         {},
		"no NIC":                   {hasNICs: true, noNIC: true},
		"no drive in a controller": {subsystem: map[string]any{"Id": "1", "Drives": []any{}}, noDisks: true},
		"drives are not shown":     {subsystem: map[string]any{"Id": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(s *server) {
				if tt.subsystem != nil {
					s.system["Storage"] = linkTo(systemPath + "/Storage")
				}
				if tt.hasNICs {
					s.system["EthernetInterfaces"] = linkTo(nics)
				}
			})
			if tt.subsystem != nil {
				s.route("GET "+systemPath+"/Storage", s.show(collection(systemPath+"/Storage", "1")))
				s.route("GET "+systemPath+"/Storage/1", s.show(func() map[string]any { return tt.subsystem }))
			}
			if tt.hasNICs {
				s.route("GET "+nics, s.show(collection(nics)))
			}
			got, err := s.open().(bmc.Inspector).Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(got.NICs) > 0 || (got.NICs != nil) != tt.noNIC || len(got.Disks) > 0 || (got.Disks != nil) != tt.noDisks {
				t.Errorf("Inventory() = NICs %#v and disks %#v, want none told: %v, %v", got.NICs, got.Disks, tt.noNIC, tt.noDisks)
			}
		})
	}
}
