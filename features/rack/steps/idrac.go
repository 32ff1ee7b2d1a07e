package steps

import (
	"fmt"

	"github.com/cucumber/godog"
)

const (
	idracSystem = root + "/Systems/System.Embedded.1"
	idracAt     = root + "/Managers/iDRAC.Embedded.1"
)

// idracProfile has a server boot from virtual media.
const idracProfile = `<SystemConfiguration><Component FQDD="iDRAC.Embedded.1"><Attribute Name="ServerBoot.1#BootOnce">Enabled</Attribute>` +
	`<Attribute Name="ServerBoot.1#FirstBootDevice">VCD-DVD</Attribute></Component></SystemConfiguration>`

// idracRequests are what clients send to an iDRAC.
var idracRequests = map[string]request{
	"changes the BIOS":                   {"PATCH", idracSystem + "/Bios/Settings", object{"Attributes": object{"LogicalProc": "Disabled"}}, nil},
	"changes the BIOS again":             {"PATCH", idracSystem + "/Bios/Settings", object{"Attributes": object{"NumLock": "Off"}}, nil},
	"changes the BIOS at the next reset": {"PATCH", idracSystem + "/Bios/Settings", object{"Attributes": object{"NumLock": "Off"}, "@Redfish.SettingsApplyTime": object{"ApplyTime": "OnReset"}}, nil},
	"makes a job of settings":            {"POST", idracAt + "/Jobs", object{"TargetSettingsURI": idracSystem + "/Bios/Settings"}, nil},
	"clears the queue of jobs":           {"POST", idracAt + "/Oem/Dell/DellJobService/Actions/DellJobService.DeleteJobQueue", object{"JobID": "JID_CLEARALL"}, nil},
	"imports a profile that boots the virtual CD": {"POST", idracAt + "/Actions/Oem/OemManager.ImportSystemConfiguration",
		object{"ImportBuffer": idracProfile, "ShareParameters": object{"Target": []any{"ALL"}}}, nil},
	"inserts an image":                insertion(idracSystem + "/VirtualMedia/1/Actions/VirtualMedia.InsertMedia"),
	"inserts an image at the manager": insertion(idracAt + "/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia"),
	"ejects":                          {"POST", idracSystem + "/VirtualMedia/1/Actions/VirtualMedia.EjectMedia", object{}, nil},
	"ejects with the ETag":            {"POST", idracSystem + "/VirtualMedia/1/Actions/VirtualMedia.EjectMedia", object{}, []string{"If-Match", "*"}},
	"makes an account":                {"POST", root + "/AccountService/Accounts", object{"UserName": "ops", "Password": "ops-password", "RoleId": "Operator"}, nil},
	"changes an account that is free": {"PATCH", root + "/AccountService/Accounts/3", object{"UserName": "ops", "Password": "ops-password", "RoleId": "Operator"}, nil},
	"opens a session":                 {"POST", root + "/Sessions", object{"UserName": "admin", "Password": "admin-password"}, nil},
	"resets the BIOS without a body":  {"POST", idracSystem + "/Bios/Actions/Bios.ResetBios", nil, nil},
	"resets the BIOS":                 {"POST", idracSystem + "/Bios/Actions/Bios.ResetBios", object{}, nil},
	"switches on":                     {"POST", idracSystem + "/Actions/ComputerSystem.Reset", object{"ResetType": "On"}, nil},
	"boots the network once":          {"PATCH", idracSystem, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, nil},
	"boots the network once by the settings, with the ETag": {"PATCH", idracSystem + "/Settings",
		object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, []string{"If-Match", "ETAG"}},
}

// insertion is the insertion of an image.
func insertion(at string) request { return request{"POST", at, object{"Image": "IMAGE"}, nil} }

func (s *scenario) registerIDRAC(sc *godog.ScenarioContext) {
	sc.Step(`^iDRAC's job (\d+) is "([^"]*)" with "([^"]*)"$`, func(n int, state, text string) error {
		a, err := s.get(fmt.Sprintf("%s/Jobs/JID_%012d", idracAt, n))
		if err != nil {
			return err
		}
		if err := equal("the job", fmt.Sprint(a.at("JobState")), state); err != nil {
			return err
		}
		return equal("its message", fmt.Sprint(a.at("Message")), text)
	})
	sc.Step(`^the iDRAC's server boots "([^"]*)" for "([^"]*)"$`, func(target, enabled string) error {
		a, err := s.get(idracSystem)
		if err != nil {
			return err
		}
		if err := equal("the target", fmt.Sprint(a.at("Boot/BootSourceOverrideTarget")), target); err != nil {
			return err
		}
		return equal("how long", fmt.Sprint(a.at("Boot/BootSourceOverrideEnabled")), enabled)
	})
}
