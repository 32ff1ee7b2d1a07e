package megarac

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	settings = system + "/SD"

	keptMedia = "RemoteMedia"
	mediaOff  = "Disabled"
)

// own is what only a MegaRAC has.
var own = dialect.Own{
	Resources: []dialect.Resource{{
		// The system as it will be: boots are set here as well as there [V: mockup;
		// libredfish, set_boot_order]. What is set is so at once, and counts at the
		// next start.
		At: settings, Type: "ComputerSystem.v1_17_0.ComputerSystem", Name: "System Settings", Needs: "ConfigureComponents",
		Set: []dialect.Datum{
			{Path: "Boot", From: system + "#Boot"}, {Path: "AssetTag", From: system + "#AssetTag"},
		},
		Drop: []string{
			"Boot/BootOptions", "Boot/Certificates", "Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues",
			"Boot/RemainingAutomaticRetryAttempts",
		},
		Changes: []string{"AssetTag"},
	}},
	Actions: []dialect.Action{{
		// [V: mockup; scripts, which put it on before they insert an image]
		On: manager, Name: "AMIVirtualMedia.EnableRMedia", Inputs: []dialect.Input{{Name: "RMediaState", Required: true, Values: []string{"Enable", "Disable"}}},
		Does: []dialect.Effect{
			{When: map[string][]string{"RMediaState": {"Enable"}}, Keep: map[string]any{keptMedia: nil}},
			{When: map[string][]string{"RMediaState": {"Disable"}}, Keep: map[string]any{keptMedia: mediaOff}},
		},
	}},
	Writes: []dialect.Write{
		{Of: "ComputerSystem", At: settings, Path: "Boot", Type: dialect.ObjectInput, Does: []dialect.Effect{{Steps: []dialect.Step{
			{Method: "PATCH", At: system, Body: map[string]any{"Boot": "$"}}}}}},
		{Of: "ComputerSystem", At: settings, Path: "AssetTag", Does: []dialect.Effect{{Steps: []dialect.Step{
			{Method: "PATCH", At: system, Body: map[string]any{"AssetTag": "$"}}}}}},
	},
}
