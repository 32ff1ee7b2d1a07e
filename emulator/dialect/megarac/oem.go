package megarac

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	settings = system + "/SD"

	storedMedia = "RemoteMedia"
	mediaOff    = "Disabled"
)

// extensions returns the OEM resources and properties of a MegaRAC.
var extensions = dialect.OEM{
	Resources: []dialect.Resource{{
		// The settings resource of the system, in which clients can set the boot override
		// and boot order too [V: mockup; libredfish, set_boot_order]. A PATCH takes effect
		// at once, and counts at the next start.
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
		// [V: mockup; scripts, which enable it before they insert an image]
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
