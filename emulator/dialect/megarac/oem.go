package megarac

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	settings = system + "/SD"

	storedMedia = "RemoteMedia"
	mediaOff    = "Disabled"
)

// extensions is what only a MegaRAC has.
var extensions = dialect.OEM{
	Resources: []dialect.Resource{{
		// The system as it will be: boots are set here as well as there [V: mockup;
		// libredfish, set_boot_order]. What is set is so at once, and counts at the
		// next start.
		URI: settings, Type: "ComputerSystem.v1_17_0.ComputerSystem", Name: "System Settings", Privilege: "ConfigureComponents",
		Set: []dialect.PropertyRule{
			{Path: "Boot", From: system + "#Boot"}, {Path: "AssetTag", From: system + "#AssetTag"},
		},
		Remove: []string{
			"Boot/BootOptions", "Boot/Certificates", "Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues",
			"Boot/RemainingAutomaticRetryAttempts",
		},
		Writable: []string{"AssetTag"},
	}},
	Actions: []dialect.Action{{
		// [V: mockup; scripts, which put it on before they insert an image]
		ResourceURI: manager, Name: "AMIVirtualMedia.EnableRMedia", Parameters: []dialect.Parameter{{Name: "RMediaState", Required: true, AllowableValues: []string{"Enable", "Disable"}}},
		Effects: []dialect.Effect{
			{When: map[string][]string{"RMediaState": {"Enable"}}, Store: map[string]any{storedMedia: nil}},
			{When: map[string][]string{"RMediaState": {"Disable"}}, Store: map[string]any{storedMedia: mediaOff}},
		},
	}},
	WritableProperties: []dialect.WritableProperty{
		{ResourceType: "ComputerSystem", URI: settings, Path: "Boot", Type: dialect.ObjectParameter, Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{
			{Method: "PATCH", URI: system, Body: map[string]any{"Boot": "$"}}}}}},
		{ResourceType: "ComputerSystem", URI: settings, Path: "AssetTag", Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{
			{Method: "PATCH", URI: system, Body: map[string]any{"AssetTag": "$"}}}}}},
	},
}
