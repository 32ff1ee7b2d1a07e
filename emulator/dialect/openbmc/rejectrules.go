package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

func baseMessage(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: "1.19.0", Key: key, Text: text, Resolution: "Change the request and send it again."}
}

const (
	insert        = "VirtualMedia.InsertMedia"
	multipartPush = "MultipartHttpPushUri"
)

// rejectRules returns the requests that bmcweb rejects although the standard allows
// them.
func rejectRules() []dialect.RejectRule {
	unknown := baseMessage("PropertyUnknown", "The property %1 is not known.")
	rules := []dialect.RejectRule{
		// [V] virtual_media.hpp, validateParams, in its order.
		{ResourceType: "VirtualMedia", Method: insert, OneOf: map[string][]string{"Inserted": {"false"}},
			Message: baseMessage("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
		{ResourceType: "VirtualMedia", Method: insert, NotOneOf: map[string][]string{"TransferMethod": {"Stream"}},
			Message: baseMessage("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
		{ResourceType: "VirtualMedia", Method: insert, HasPrefix: map[string][]string{"Image": {"http://", "nfs://", "ftp://", "sftp://", "scp://", "tftp://", "cifs://"}},
			Message: baseMessage("ResourceAtUriInUnknownFormat", "The resource at %2 is in a format that the service does not know.")},
		{ResourceType: "VirtualMedia", Method: insert, NotOneOf: map[string][]string{"TransferProtocolType": {"CIFS", "HTTPS"}},
			Message: baseMessage("PropertyValueNotInList", "The value %2 of the property %1 is not one of those that it can have.")},
		// [V] update_service.hpp: processUpdateParameters and convertApplyTime.
		{ResourceType: "UpdateService", Method: multipartPush, SendsAny: []string{"ExcludeTargets", "ForceUpdate", "Stage", "Oem", "@Redfish.MaintenanceWindow"},
			Message: unknown},
		{ResourceType: "UpdateService", Method: multipartPush, NotOneOf: map[string][]string{"@Redfish.OperationApplyTime": {"Immediate", "OnReset"}},
			Message: baseMessage("PropertyValueNotInList", "The value %2 of the property %1 is not one of those that it can have.")},
		// [V] systems.hpp, handleComputerSystemPatch: it rejects these properties.
		{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{
			"HostName", "PowerOnDelaySeconds", "PowerCycleDelaySeconds", "Boot/BootOrder", "Boot/BootNext", "Boot/HttpBootUri", "Boot/AliasBootOrder",
			"Boot/UefiTargetBootSourceOverride", "Boot/BootOrderPropertySelection",
		}, Message: unknown},
		// [V] event_service.hpp, the POST and the PATCH of subscriptions.
		{ResourceType: "EventDestinationCollection", Method: "POST", SendsAny: []string{
			"Id", "Name", "Description", "EventTypes", "ExcludeMessageIds", "ExcludeRegistryPrefixes", "Severities", "SubordinateResources", "IncludeOriginOfCondition",
		}, Message: unknown},
		// [V] ethernet.hpp, parseDHCPConfiguration and handleEthernetInterfacePatch.
		{ResourceType: "EthernetInterface", Method: "PATCH", SendsAny: []string{"DHCPv4/UseGateway", "DHCPv6/UseRapidCommit"},
			Message: unknown},
		// [V] managers.hpp: ResetAll is the only reset type.
		{ResourceType: "Manager", Method: "Manager.ResetToDefaults", NotOneOf: map[string][]string{"ResetType": {"ResetAll"}},
			Message: baseMessage("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
	}
	rules = append(rules, notRouted()...)
	// [V] json_utils.hpp, readJsonPatch: a PATCH of a property that the handler does not name.
	for _, t := range absent() {
		rules = append(rules, dialect.RejectRule{ResourceType: t.ResourceType, Method: "PATCH", SendsAny: t.Remove, Message: unknown})
	}
	return rules
}

// notRouted returns the methods of the standard for which bmcweb has no route [V]: those of
// all its routes are in emulator/rack/testdata/bmcwebroutes.txt (7debb89). Behind a type
// stands the file that makes its resources.
func notRouted() (rules []dialect.RejectRule) {
	for _, r := range []dialect.RejectRule{
		{ResourceType: "VirtualMedia", Method: "PATCH"},      // virtual_media.hpp
		{ResourceType: "Bios", Method: "PATCH"},              // bios.hpp
		{ResourceType: "Storage", Method: "PATCH"},           // storage.hpp
		{ResourceType: "Drive", Method: "PATCH"},             // storage.hpp
		{ResourceType: "StorageController", Method: "PATCH"}, // storage_controller.hpp
		{ResourceType: "Sensor", Method: "PATCH"},            // sensors.hpp
		{ResourceType: "LogService", Method: "PATCH"},        // log_services.hpp
		{ResourceType: "LogEntry", Method: "PATCH", URI: journal},
		{ResourceType: "LogEntry", Method: "DELETE", URI: journal}, // manager_logservices_journal.hpp
		{ResourceType: "TaskService", Method: "PATCH"},             // task.hpp
		{ResourceType: "Task", Method: "DELETE"},                   // task.hpp
		{Method: "DELETE", URI: "/redfish/v1/TaskService/TaskMonitors/{task}"},
		{ResourceType: "TelemetryService", Method: "PATCH"}, // telemetry_service.hpp
		{ResourceType: "UpdateService", Method: "PATCH"},    // update_service.hpp
		{ResourceType: "RoleCollection", Method: "POST"},    // roles.hpp
		{ResourceType: "Role", Method: "PATCH"},
		{ResourceType: "Role", Method: "DELETE"},
	} {
		r.Status, r.Message = 405, baseMessage("OperationNotAllowed", "The method of the request is not allowed here.")
		rules = append(rules, r)
	}
	return rules
}

const journal = managers + "/LogServices/{log}/Entries/{entry}"
