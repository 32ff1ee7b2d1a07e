package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// extensions returns what only bmcweb has.
func extensions() dialect.OEM {
	return dialect.OEM{
		// [V] storage.hpp: the collection of storage is at the root as well, and
		// Redfish 1.9 allows it there.
		URIAliases: []dialect.URIMapping{{From: "/redfish/v1/Storage", To: systems + "/Storage"}},
	}
}
