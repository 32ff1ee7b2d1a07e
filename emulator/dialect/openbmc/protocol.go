package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// protocol returns bmcweb's implementation of the protocol: [V]
// redfish-core/include/utils/query_param.hpp and http/http_response.hpp.
func protocol() dialect.Protocol {
	return dialect.Protocol{
		Registries: map[string]string{"Base": "1.19.0"}, // [V] redfish-core/include/registries/base_message_registry.hpp
		// [V] $expand is a build option that is off by default
		// (insecure-enable-redfish-query); only, $top, $skip, $select and $filter are
		// implemented.
		Queries: dialect.Queries{TopSkip: true, Select: true, Filter: true, Only: true, Unknown: dialect.NotImplemented},
		// [V] ETags are strong and computed from the body; If-Match is compared, and never
		// required.
		ETags: dialect.ETags{},
		Gzip:  true,
	}
}
