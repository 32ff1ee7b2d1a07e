package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// extensions returns the URIs that bmcweb adds.
func extensions() dialect.OEM {
	return dialect.OEM{
		// [V] storage.hpp: the Storage collection is below the service root as well,
		// where Redfish 1.9 allows it.
		URIAliases: []dialect.URIMapping{{From: "/redfish/v1/Storage", To: systems + "/Storage"}},
	}
}
