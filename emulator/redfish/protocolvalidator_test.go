package redfish

import (
	"os"
	"strings"
	"testing"
)

// untested lists the assertions that DMTF's Protocol Validator (1.2.9) does not test on a
// BMC of the generic dialect, with the reason and the test of this package that shows
// what they assert.
var untested = []struct{ assertion, why, file, test string }{
	{
		"PROTO_REDIRECT_ENFORCES_TARGET_PRIVS", "nothing is redirected but HTTP to HTTPS, where it is a request like any other",
		"redirect_test.go", "TestHTTPRedirectsToHTTPS",
	},
	{
		"REQ_DATA_MOD_ERRORS", "it sends no POST that is refused",
		"account_test.go", "TestInvalidAccountPropertyIsRejected",
	},
	{
		"RESP_STATUS_INTERNAL_SERVER_ERROR", "nothing that a client sends is answered 500",
		"errors_test.go", "TestHostFailureReturns500AndIsLogged",
	},
	{
		"SERV_SSE_JSON_METRIC_REPORT_FORMAT", "it opens no stream of reports",
		"sse_test.go", "TestSSEDeliversMetricReports",
	},
	// The validator searches on the network device of the default route. A rack
	// responds with --ssdp only, on the device of that name: a search there finds the
	// BMC, and all seven pass.
	{"SERV_SSDP_CAN_BE_DISABLED", "nobody is asked", "../rack/internal_test.go", "TestSSDPOffHidesABMC"},
	{"SERV_SSDP_MSEARCH_RESPONDS_TO_REDFISH_OR_ALL", "nobody is asked", "../rack/ssdp/ssdp_test.go", "TestSearchFindsServices"},
	{"SERV_SSDP_M_SEARCH_RESPONSE_FORMAT", "nobody is asked", "../rack/ssdp/ssdp_test.go", "TestSearchFindsServices"},
	{"SERV_SSDP_ST_HEADER_FORMAT", "nobody is asked", "../rack/ssdp/ssdp_test.go", "TestSearchFindsServices"},
	{"SERV_SSDP_AL_HEADER_POINTS_TO_SERVICE_ROOT", "nobody is asked", "../rack/discovery_test.go", "TestSSDPSearchFindsBMCs"},
	{"SERV_SSDP_USN_MATCHES_SERVICE_ROOT_UUID", "nobody is asked", "../rack/discovery_test.go", "TestSSDPSearchFindsBMCs"},
	{"SERV_SSDP_UUID_IN_CANONICAL_FORMAT", "nobody is asked", "../rack/ssdp/ssdp_test.go", "TestSearchFindsServices"},
}

func TestProtocolValidatorGapsAreCovered(t *testing.T) {
	for _, u := range untested {
		text, err := os.ReadFile(u.file)
		must(t, err)
		if !strings.Contains(string(text), "func "+u.test+"(t *testing.T)") {
			t.Errorf("%s: there is no %s in %s", u.assertion, u.test, u.file)
		}
	}
}
