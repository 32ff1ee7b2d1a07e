package steps

import (
	"fmt"

	"github.com/cucumber/godog"
)

// iloCD is where the virtual CD of an iLO is, and arraySettings where volumes of
// a Smart Array are asked for.
const (
	iloCD         = root + "/Managers/1/VirtualMedia/2"
	iloBIOS       = root + "/systems/1/bios/settings/"
	arraySettings = systemURI + "/SmartStorageConfig/Settings"
)

// iloRequests are what clients send to an iLO, by what an operator calls them.
var iloRequests = map[string]request{
	"inserts an image":                                {"POST", iloCD + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
	"sets the image":                                  {"PATCH", iloCD, object{"Image": "IMAGE"}, nil},
	"ejects":                                          {"POST", iloCD + "/Actions/VirtualMedia.EjectMedia", nil, nil},
	"ejects with an empty object":                     {"POST", iloCD + "/Actions/VirtualMedia.EjectMedia", object{}, nil},
	"sets the boot target for once":                   {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, nil},
	"sets the boot target for once, with UEFI":        {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}}, nil},
	"switches on":                                     {"POST", systemURI + "/Actions/ComputerSystem.Reset", object{"ResetType": "On"}, nil},
	"switches off":                                    {"POST", systemURI + "/Actions/ComputerSystem.Reset", object{"ResetType": "ForceOff"}, nil},
	"cuts the power for a moment":                     {"POST", systemURI + "/Actions/ComputerSystem.Reset", object{"ResetType": "PowerCycle"}, nil},
	"presses the power button":                        {"POST", systemURI + "/Actions/Oem/Hpe/HpeComputerSystemExt.PowerButton", object{"PushType": "Press"}, nil},
	"changes the BIOS at the next reset, and says so": {"PATCH", iloBIOS, object{"Attributes": object{"AdminName": "joe"}, "@Redfish.SettingsApplyTime": object{"ApplyTime": "OnReset"}}, nil},
	"changes the BIOS":                                {"PATCH", iloBIOS, object{"Attributes": object{"AdminName": "joe"}}, nil},
	"says where to boot from by HTTP":                 {"PATCH", systemURI, object{"Boot": object{"HttpBootUri": "http://boot.test/a.efi"}}, nil},
	"says so to the BIOS":                             {"PATCH", iloBIOS, object{"Attributes": object{"UrlBootFile": "http://boot.test/a.efi"}}, nil},
	"makes a mirror of two drives":                    {"POST", systemURI + "/Storage/DE00A000/Volumes", object{"RAIDType": "RAID1"}, nil},
	"has the array make one at the next start": {"PATCH", arraySettings, object{"DataGuard": "Disabled", "LogicalDrives": []any{
		object{"Raid": "Raid1", "LogicalDriveName": "root", "DataDrives": []any{"1I:1:1", "1I:1:2"}}}}, nil},
}

func (s *scenario) registerILO(sc *godog.ScenarioContext) {
	sc.Step(`^a rack of (\d+) servers? with the profile "([^"]*)"$`, func(n int, profile string) error { return s.start(profile, n) })
	sc.Step(`^a client of its iLO (.*)$`, func(what string) error {
		if what == "does nothing" {
			return nil
		}
		r, ok := iloRequests[what]
		if !ok {
			return fmt.Errorf("no client %q", what)
		}
		return s.request(1, r)
	})
	sc.Step(`^the iLO's array comes to have the volume "([^"]*)"$`, func(name string) error {
		for range 300 {
			a, err := s.get(systemURI + "/SmartStorageConfig")
			if err != nil {
				return err
			}
			all, _ := a.at("LogicalDrives").([]any)
			if len(all) == 1 {
				if d, _ := all[0].(map[string]any); d["LogicalDriveName"] == name {
					return nil
				}
			}
			s.advance(1, "seconds")
		}
		return fmt.Errorf("there is no volume %q: %s", name, s.response)
	})
}
