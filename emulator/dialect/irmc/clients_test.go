package irmc_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeAnIRMC reads both generations: identity, URIs, boot override, virtual media and OEM.
func TestClientsSeeAnIRMC(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"fujitsu-rx2540-m5": {
			{Source: "provider, collection irmc_redfish", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                                          "FUJITSU",
				"/redfish/v1#Product":                                                         "iRMC S5",
				"/redfish/v1#Oem/ts_fujitsu/@odata.type":                                      "#FTSServiceRoot.v1_0_0.FTSServiceRoot",
				"/redfish/v1/Systems#Members/0/@odata.id":                                     "/redfish/v1/Systems/0",
				"/redfish/v1/Managers#Members/0/@odata.id":                                    "/redfish/v1/Managers/iRMC",
				"/redfish/v1/Systems/0#Oem/ts_fujitsu/System/@odata.id":                       "/redfish/v1/Systems/0/Oem/ts_fujitsu/System",
				"/redfish/v1/Managers/iRMC#VirtualMedia/@odata.id":                            "/redfish/v1/Managers/iRMC/VirtualMedia",
				"/redfish/v1/Systems/0#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Cd Hdd BiosSetup]",
			}},
			{Source: "provider sends If-Match; gofish #174", Method: "PATCH", Path: "/redfish/v1/Systems/0", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 428},
			{Source: "provider sends If-Match; gofish #174", Method: "PATCH", Path: "/redfish/v1/Systems/0", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/0#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/0/Oem/ts_fujitsu/BootConfig#BootDevice": "Pxe", "/redfish/v1/Systems/0/Oem/ts_fujitsu/BootConfig#NextBootOnlyEnabled": true,
			}},
			{Source: "reference: media below the manager, with numbers", Method: "POST", Path: "/redfish/v1/Managers/iRMC/VirtualMedia/0/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Managers/iRMC/VirtualMedia/0#Inserted": true, "/redfish/v1/Managers/iRMC/VirtualMedia/0#Image": "IMAGE",
			}},
		},
		"fujitsu-rx2540-m7": {
			{Source: "provider, collection irmc_redfish", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                                          "Fsas Technologies",
				"/redfish/v1#Product":                                                         "iRMC S6",
				"/redfish/v1#Oem/Fsas/@odata.type":                                            "#FsasServiceRoot.v1_0_0.FsasServiceRoot",
				"/redfish/v1/Systems#Members/0/@odata.id":                                     "/redfish/v1/Systems/0",
				"/redfish/v1/Managers#Members/0/@odata.id":                                    "/redfish/v1/Managers/iRMC",
				"/redfish/v1/Systems/0#Oem/Fsas/System/@odata.id":                             "/redfish/v1/Systems/0/Oem/Fsas/System",
				"/redfish/v1/Managers/iRMC#VirtualMedia/@odata.id":                            "/redfish/v1/Managers/iRMC/VirtualMedia",
				"/redfish/v1/Systems/0#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Cd Hdd BiosSetup]",
			}},
			{Source: "provider sends If-Match; gofish #174", Method: "PATCH", Path: "/redfish/v1/Systems/0", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 428},
			{Source: "provider sends If-Match; gofish #174", Method: "PATCH", Path: "/redfish/v1/Systems/0", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/0#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/0/Oem/Fsas/BootConfig#BootDevice": "Pxe", "/redfish/v1/Systems/0/Oem/Fsas/BootConfig#NextBootOnlyEnabled": true,
			}},
			{Source: "reference: media below the manager, with numbers", Method: "POST", Path: "/redfish/v1/Managers/iRMC/VirtualMedia/0/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Managers/iRMC/VirtualMedia/0#Inserted": true, "/redfish/v1/Managers/iRMC/VirtualMedia/0#Image": "IMAGE",
			}},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
