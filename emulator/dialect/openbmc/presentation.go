package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	systems  = "/redfish/v1/Systems/{system}"
	managers = "/redfish/v1/Managers/{manager}"
	chassis  = "/redfish/v1/Chassis/{chassis}"
	updates  = "/redfish/v1/UpdateService"
	slots    = managers + "/VirtualMedia"
)

func uriMappings() []dialect.URIMapping {
	return []dialect.URIMapping{
		// [V] virtual_media.hpp: only the manager has virtual media.
		{From: systems + "/VirtualMedia", To: slots},
		// [V] pcie.hpp: only the system has PCIe devices.
		{From: chassis + "/PCIeDevices", To: systems + "/PCIeDevices"},
		// [V] update_service.hpp.
		{From: updates + "/Upload", To: updates + "/update"},
		{From: updates + "/MultipartUpload", To: updates + "/update-multipart"},
	}
}

// hidden returns the URIs for which bmcweb has no route [V].
func hidden() []string {
	return []string{
		"/redfish/v1/JobService",
		"/redfish/v1/ComponentIntegrity",
		"/redfish/v1/AccountService/Accounts/{account}/Certificates",
		"/redfish/v1/EventService/Subscriptions/{subscription}/Certificates",
		updates + "/SoftwareInventory",
		// systems.hpp: a system links to processors, memory, storage, logs and its BIOS,
		// and of its network ports only to fabric adapters.
		systems + "/BootOptions",
		systems + "/Boot/Certificates",
		systems + "/SecureBoot",
		systems + "/EthernetInterfaces",
		systems + "/NetworkInterfaces",
		systems + "/Actions/ComputerSystem.SetDefaultBootOrder",
		systems + "/VirtualMedia/{slot}/Certificates",
		// The first slot belongs to the browser: clients can only eject it.
		systems + "/VirtualMedia/Slot_0/Actions/VirtualMedia.InsertMedia",
		systems + "/VirtualMedia/Slot_0/InsertMediaActionInfo",
		// virtual_media.hpp has no ActionInfo.
		systems + "/VirtualMedia/Slot_1/InsertMediaActionInfo",
		// bios.hpp: ResetBios and nothing else.
		systems + "/Bios/Settings",
		systems + "/Bios/Actions/Bios.ChangePassword",
		systems + "/Bios/ChangePasswordActionInfo",
		"/redfish/v1/Registries/" + registry,
		// storage.hpp only reads.
		systems + "/Storage/{storage}/Volumes",
		systems + "/Storage/{storage}/Actions",
		systems + "/Storage/{storage}/ResetToDefaultsActionInfo",
		systems + "/Storage/{storage}/Drives/{drive}/Actions",
		systems + "/Storage/{storage}/Drives/{drive}/Metrics",
		systems + "/Storage/{storage}/Controllers/{controller}/Metrics",
		// log_services.hpp: the journal has entries alone. Of the ActionInfos there are those
		// of resets.
		managers + "/LogServices/{log}/Actions",
		managers + "/LogServices/{log}/ClearLogActionInfo",
		managers + "/LogServices/{log}/CollectDiagnosticDataActionInfo",
		systems + "/LogServices/{log}/ClearLogActionInfo",
		updates + "/SimpleUpdateActionInfo",
		"/redfish/v1/CertificateService/GenerateCSRActionInfo",
		"/redfish/v1/CertificateService/ReplaceCertificateActionInfo",
		managers + "/NetworkProtocol/HTTPS/Certificates/{certificate}/Actions",
		managers + "/NetworkProtocol/HTTPS/Certificates/{certificate}/RekeyActionInfo",
		"/redfish/v1/AccountService/Accounts/{account}/Actions",
		"/redfish/v1/AccountService/Accounts/{account}/ChangePasswordActionInfo",
		"/redfish/v1/EventService/Actions/EventService.TestEventSubscription",
		"/redfish/v1/EventService/Subscriptions/{subscription}/Actions",
		"/redfish/v1/EventService/SubmitTestEventActionInfo",
		"/redfish/v1/TelemetryService/MetricDefinitions",
		"/redfish/v1/TelemetryService/Actions",
		"/redfish/v1/TelemetryService/SubmitTestMetricReportActionInfo",
		systems + "/Memory/{memory}/EnvironmentMetrics",
		chassis + "/EnvironmentMetrics/Actions",
		chassis + "/PowerSubsystem/PowerSupplies/{supply}/Metrics",
		managers + "/HostInterfaces",
		chassis + "/Controls",
		chassis + "/NetworkAdapters",
		chassis + "/TrustedComponents",
	}
}

// registry is the URI of the BIOS attribute registry, which is hidden.
const registry = "BiosAttributeRegistryOpenBMC.v1_0_0"

func transforms() []dialect.Transform {
	return append([]dialect.Transform{
		// [V] service_root.hpp: there is neither Vendor nor Product.
		{ResourceType: "ServiceRoot", Remove: []string{"Vendor", "Product"}},
		{
			ResourceType: "ComputerSystem",
			Remove: []string{
				// [V] systems.hpp: Boot has the override, the retries and StopBootOnFault
				// alone.
				"Boot/BootOrder", "Boot/BootOrder@Redfish.AllowableValues", "Boot/BootOptions", "Boot/BootNext", "Boot/BootOrderPropertySelection",
				"Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/HttpBootUri", "Boot/Certificates",
				"Boot/UefiTargetBootSourceOverride", "Boot/BootSourceOverrideEnabled@Redfish.AllowableValues",
				// [V] only the ActionInfo lists the reset types.
				"Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues",
				"HostName", "HostingRoles", "PowerOnDelaySeconds", "PowerCycleDelaySeconds", "TrustedModules", "Links/TrustedComponents",
				"Links/TrustedComponents@odata.count", "VirtualMedia",
			},
			Set: []dialect.PropertyRule{
				{Path: "Name", Value: "{system}"}, {Path: "Description", Value: "Computer System"},
				// [V] systems.hpp: the serial console is reached by SSH as well.
				{Path: "SerialConsole/SSH", Value: map[string]any{"ServiceEnabled": true, "Port": 2200, "HotKeySequenceDisplay": "Press ~. to exit console"}},
				{Path: "SerialConsole/MaxConcurrentSessions", Value: 15},
			},
		},
		// [V] ethernet.hpp: DHCP gives neither a gateway to choose nor rapid commit.
		{ResourceType: "EthernetInterface", Remove: []string{"DHCPv4/UseGateway", "DHCPv6/UseRapidCommit"}},
		// [V] bios.hpp: Bios has no attributes.
		{ResourceType: "Bios", Remove: []string{"Attributes", "AttributeRegistry", "@Redfish.Settings", "ResetBiosToDefaultsPending"}, Set: []dialect.PropertyRule{
			{Path: "Name", Value: "BIOS Configuration"}, {Path: "Description", Value: "BIOS Configuration Service"},
			{Path: "Id", Value: "BIOS"}, // against DSP0266, "Id": the URI ends with Bios
		}},
		{ResourceType: "Manager", Set: []dialect.PropertyRule{
			{Path: "Name", Value: "OpenBmc Manager"}, {Path: "Description", Value: "Baseboard Management Controller"},
			{Path: "GraphicalConsole", Value: map[string]any{"ServiceEnabled": true, "MaxConcurrentSessions": 4, "ConnectTypesSupported": []any{"KVMIP"}}},
		}, Remove: []string{"Actions/#Manager.ResetToDefaults/@Redfish.ActionInfo"}}, // [V] managers.hpp: only this action has allowable values inline
		{ResourceType: "Manager", Set: []dialect.PropertyRule{{Path: "Actions/#Manager.ResetToDefaults/ResetType@Redfish.AllowableValues", Value: []any{"ResetAll"}}}},
		{
			ResourceType: "VirtualMedia",
			// [V] virtual_media.hpp: a slot has no other properties.
			Remove: []string{
				"Password", "UserName", "VerifyCertificate", "EjectPolicy", "Status", "TransferMethod@Redfish.AllowableValues",
				"TransferProtocolType@Redfish.AllowableValues", "Actions/#VirtualMedia.InsertMedia/TransferMethod@Redfish.AllowableValues",
				"Actions/#VirtualMedia.InsertMedia/TransferProtocolType@Redfish.AllowableValues",
			},
			Set: []dialect.PropertyRule{
				{Path: "TransferMethod", Value: "Stream"},
				{Path: "WriteProtected", From: "WriteProtected", Map: map[string]any{"false": false}, Value: true},
				{Path: "Oem/OpenBMC", Value: map[string]any{"@odata.type": "#OpenBMCVirtualMedia.v1_0_0.VirtualMedia"}},
			},
		},
		{ResourceType: "VirtualMedia", URI: systems + "/VirtualMedia/Slot_0", Set: []dialect.PropertyRule{
			{Path: "TransferProtocolType", Value: "OEM"}, {Path: "Oem/OpenBMC/WebSocketEndpoint", Value: "/nbd/0"},
		}},
		// [V] task.hpp: the oldest of a hundred tasks is removed; there is no timeout.
		{ResourceType: "TaskService", Remove: []string{"TaskAutoDeleteTimeoutMinutes", "TaskMonitorAutoExpirySeconds", "Actions/#TaskService.DeleteAllCompletedTasks"}},
		{ResourceType: "Storage", Remove: []string{"@Redfish.OperationApplyTimeSupport", "HotspareActivationPolicy"}},
		{ResourceType: "UpdateService", Remove: []string{
			"HttpPushUriOptionsBusy", "HttpPushUriTargetsBusy", "HttpPushUriTargets", "HttpPushUriOptions/ForceUpdate", "VerifyRemoteServerCertificate",
			"Actions/#UpdateService.StartUpdate", "SupportedUpdateImageFormats",
		}},
	}, absent()...)
}
