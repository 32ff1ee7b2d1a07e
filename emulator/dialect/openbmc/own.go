package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// own is what only bmcweb has.
func own() dialect.Own {
	return dialect.Own{
		// [V] storage.hpp: the collection of storage is at the root as well, and
		// Redfish 1.9 allows it there.
		Also: []dialect.Move{{From: "/redfish/v1/Storage", To: systems + "/Storage"}},
	}
}
