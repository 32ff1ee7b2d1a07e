package ilo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const docs4 = "github.com/HewlettPackard/ilo-rest-api-docs"

func TestILO4ShowsOlderResources(t *testing.T) {
	b := serve(t, "hpe-dl360-gen9")
	image := images(t)
	const settings = system + "/Bios/Settings/"
	b.shows(map[string]any{
		"/redfish/v1/#Name": "HP RESTful Root Service", "/redfish/v1/#Vendor": nil, "/redfish/v1/#RedfishVersion": "1.0.0", "/redfish/v1/#Systems/@odata.id": "/redfish/v1/Systems/",
		"/rest/v1/Systems/1/#Oem/Hp/PostState": "PowerOff", "/redfish/v1/Managers/1/#Model": "iLO 4", "/redfish/v1/Managers/1/#FirmwareVersion": "iLO 4 v2.82",
		system + "/#@odata.id": system + "/", system + "/#Bios/@odata.id": system + "/Bios/", system + "/#Storage": nil,
		// Attributes stand in the resource itself.
		system + "/Bios/#ProcVirtualization": "Enabled", system + "/Bios/#Attributes": nil,
		system + "/SmartStorage/ArrayControllers/DE07B000/DiskDrives/#Members@odata.count": 4,
		cd + "/#Actions": nil, cd + "/#Image": "",
		"/redfish/v1/AccountService/Accounts/1/#Oem/Hp/Privileges/LoginPriv": true, "/redfish/v1/AccountService/Accounts/1/#RoleId": nil,
		"/redfish/v1/Managers/1/NetworkService/#HTTPS/Port": b.get("/redfish/v1/Managers/1/NetworkService/", "HTTPS/Port"),
	})
	b.behaves(
		row{table, "PATCH", cd + "/", `{"Image":"` + image + `","Oem":{"Hp":{"BootOnNextServerReset":true}}}`, 200, "Success"},
		row{docs4, "PATCH", settings, `{"ProcVirtualization":"Disabled"}`, 200, "SystemResetRequired"},
		row{docs4, "PATCH", settings, `{"NoSuchThing":"Disabled"}`, 400, "PropertyUnknown"},
		row{table, "GET", system + "/Storage/", "", 404, ""},
		row{docs4, "GET", "/redfish/v1/UpdateService/", "", 404, ""},
		row{docs4, "GET", "/redfish/v1/Managers/1/UpdateService/", "", 200, ""},
		row{docs4, "POST", "/redfish/v1/Managers/1/UpdateService/Actions/HpiLOFirmwareUpdate.InstallFromURI/", `{}`, 400, "ActionParameterMissing"},
		row{"github.com/goldyfruit/ansible-ilo/issues/1", "POST", reset + "/", `{"ResetType":"ForceRestart"}`, 400, "InvalidOperationForSystemState"},
		row{table, "POST", reset + "/", `{"ResetType":"GracefulShutdown"}`, 400, ""},
		row{table, "POST", reset + "/", `{"ResetType":"On"}`, 200, "Success"},
	)
	if a := b.call("POST", reset, `{"ResetType":"On"}`); !strings.Contains(a.text, "iLO.0.10.") || strings.Contains(a.text, "Hpe") {
		t.Errorf("a second On: %s", a.text)
	}
	b.shows(map[string]any{cd + "/#Inserted": true, cd + "/#Oem/Hp/BootOnNextServerReset": true})
	b.until(system+"/Bios/", "ProcVirtualization", "Disabled")
	b.until(system+"/", "Oem/Hp/PostState", "InPostDiscoveryComplete")
	b.behaves(row{docs4, "POST", cd + "/Actions/Oem/Hp/HpiLOVirtualMedia.EjectVirtualMedia/", `{}`, 200, "Success"})
	b.shows(map[string]any{cd + "/#Inserted": false})
	b.l.Advance(time.Second)
	if at := fmt.Sprint(b.get(system+"/", "Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues")); at != "[On ForceOff ForceRestart Nmi PushPowerButton]" {
		t.Errorf("resets are %s", at)
	}
}
