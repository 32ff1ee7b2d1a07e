package layering

// stillToRename lists the identifiers with private words that are yet to be
// renamed, by package. It may only become shorter: TestNoPrivateWords fails when
// an entry excuses nothing any longer.
var stillToRename = map[string][]string{
	"cmd/labctl": {
		"own",
	},
	"emulator/lab": {
		"TestDefaultPortIsKept", "keptUpdates", "whole",
	},
	"emulator/lab/network": {
		"ownAddresses",
	},
	"emulator/lab/rack": {
		"hurry", "own",
	},
	"emulator/machine": {
		"own", "tell", "whole",
	},
	"emulator/machine/firmware": {
		"TestImagesTellTheDefect", "kept", "own", "tell", "tells", "told",
	},
	"emulator/machine/storage": {
		"TestRulesAreKept", "Whole", "kept", "mend", "own", "tells", "told", "whole",
	},
	"emulator/machine/thermal": {
		"Tell", "TestEventsThatAreNotTold", "TestPolicyTellsAndNothingMore", "TestRearmTellsAgain", "own", "told",
	},
	"emulator/redfish": {
		"Whole", "faced", "kept", "own", "realm", "said", "tells", "told", "whole",
	},
	"scenarios/conformance/ipmi": {
		"lastSaid", "own", "said", "whole",
	},
	"scenarios/containers": {
		"troubles",
	},
	"scenarios/images": {
		"mend", "mendChecksums",
	},
	"scenarios/world": {
		"hurry",
	},
}
