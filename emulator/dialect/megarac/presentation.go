package megarac

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	system  = "/redfish/v1/Systems/{system}"
	manager = "/redfish/v1/Managers/{manager}"
)

var presentation = dialect.Presentation{
	URIMappings: []dialect.URIMapping{
		{From: "/redfish/v1/UpdateService/MultipartUpload", To: "/redfish/v1/UpdateService/upload"}, // [V: mockup]
		{From: system + "/Bios/Settings", To: system + "/Bios/SD"},                                  // [V: mockup; ansible #6434]
		{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"},                             // [V: mockup]
	},
	Transforms: []dialect.Transform{
		{ResourceType: "ServiceRoot", Set: []dialect.PropertyRule{{Path: "Oem/Ami", Value: map[string]any{"@odata.type": "#AMIServiceRoot.v1_0_0.AMIServiceRoot", "RtpVersion": "13.03"}}}}, // [V: mockup]
		{
			ResourceType: "ComputerSystem",
			// [V: mockup, which has neither of these]
			Remove: []string{"VirtualMedia", "Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues"},
			Set: []dialect.PropertyRule{{Path: "@Redfish.Settings", Value: map[string]any{ // [V: mockup]
				"@odata.type": "#Settings.v1_2_2.Settings", "SettingsObject": map[string]any{"@odata.id": settings},
			}}, {Path: "Oem/Ami", Value: map[string]any{"@odata.type": "#AMIBIOSInventoryCRC.v1_0_0.AMIBIOSInventoryCRC", "RtpVersion": "13.03"}}}, // [V: mockup]
		},
		{ResourceType: "ComputerSystem", URI: settings, Remove: []string{"@Redfish.Settings", "Oem"}}, // it is the settings resource
		{ResourceType: "Manager", Set: []dialect.PropertyRule{
			{Path: "Oem/Ami/@odata.type", Value: "#AMIManager.v1_0_0.AMIManager"}, // [V: mockup]
			{Path: "Oem/Ami/VirtualMedia/RMediaStatus", Value: "Enabled"},         // [V: scripts]
			{Path: "Oem/Ami/VirtualMedia/RMediaStatus", From: "=" + storedMedia},
		}}, // [V: mockup]
		{ResourceType: "EthernetInterface", URI: manager + "/EthernetInterfaces/{nic}", Remove: []string{ // [V: mockup, eth0]
			"DHCPv4/UseDNSServers", "DHCPv4/UseDomainName", "DHCPv4/UseNTPServers", "DHCPv4/UseGateway",
			"DHCPv6/UseDNSServers", "DHCPv6/UseDomainName", "DHCPv6/UseNTPServers", "DHCPv6/UseRapidCommit",
		}},
		{ResourceType: "SessionService", Set: []dialect.PropertyRule{{Path: "SessionTimeout", Value: 30}}}, // [V: mockup]
		{ResourceType: "UpdateService", Remove: []string{"HttpPushUri"}},                                   // [V: mockup]
		{ResourceType: "Bios", Remove: []string{"@Redfish.Settings/SupportedApplyTimes"}},                  // [V: mockup]
		{ResourceType: "VirtualMedia", Remove: []string{"VerifyCertificate", "Certificates"}},              // [K]
	},
	RejectRules: []dialect.RejectRule{
		// Remote media must be enabled [V: scripts; K for the message].
		{
			ResourceType: "VirtualMedia", Method: "VirtualMedia.InsertMedia", Stored: map[string][]string{storedMedia: {mediaOff}}, Status: 503,
			Message: dialect.VendorMessage{Registry: "Ami", Version: "1.0.0", Key: "RemoteMediaDisabled", Text: "Remote media support is disabled.", Resolution: "Enable it by the manager's action AMIVirtualMedia.EnableRMedia."},
		},
		// The transfer protocol is required [V: scripts; reference; sushy 4.3 looks for
		// this message of Base 1.5].
		{
			ResourceType: "VirtualMedia", Method: "VirtualMedia.InsertMedia", Missing: []string{"TransferProtocolType"},
			Message: dialect.VendorMessage{Registry: "Base", Version: "1.5.0", Key: "ActionParameterMissing", Text: "The action needs the parameter %1, which was not sent.", Resolution: "Send the parameter."},
		},
	},
	Hidden: []string{system + "/VirtualMedia/{slot}/Certificates"},
}

// oemTypes are the types of AMI's objects in standard resources [V: mockup].
var oemTypes = []dialect.OEMType{
	{
		Namespace: "AMIServiceRoot", Version: "v1_0_0", Name: "AMIServiceRoot",
		Properties: []dialect.OEMProperty{{Name: "RtpVersion", Type: dialect.EdmString, Description: "Version of the software that the service is built of."}},
	},
	{
		Namespace: "AMIBIOSInventoryCRC", Version: "v1_0_0", Name: "AMIBIOSInventoryCRC",
		Properties: []dialect.OEMProperty{{Name: "RtpVersion", Type: dialect.EdmString, Description: "Version of the software that the service is built of."}},
	},
	{Namespace: "AMIManager", Version: "v1_0_0", Name: "AMIManager", Properties: []dialect.OEMProperty{
		{Name: "VirtualMedia", Type: dialect.EdmObject, Description: "How virtual media are.", Properties: []dialect.OEMProperty{
			{Name: "RMediaStatus", Type: dialect.EdmString, Description: "Whether images on servers can be inserted."},
		}},
	}},
}
