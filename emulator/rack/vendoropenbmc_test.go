package rack_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestBootOptionParametersOfPhosphorHostIPMId reads and writes the boot option parameters 0 to
// 7 of IPMI 2.0, table 28-14: phosphor-host-ipmid has 0, 3, 4 and 5 (chassishandler.cpp).
// pyghmi and ironic write parameter 3 before each boot device.
func TestBootOptionParametersOfPhosphorHostIPMId(t *testing.T) {
	const notSupported = 0x80 // §28.12 and §28.13: parameter not supported
	r := rackfile.Default(1)
	r.Hosts[0].Profile = "openbmc-tiogapass"
	l := racktest.Start(t, rack.Config{Rack: &r})
	ask := func(cmd byte, data ...byte) byte {
		t.Helper()
		code, _, ok := l.First().InBand().Execute(t.Context(), 0, 0, cmd, data)
		if !ok {
			t.Fatalf("command %#x is not answered", cmd)
		}
		return code
	}
	writes := [][]byte{{0}, {1}, {1}, {8}, {1, 1}, {0x80, 4, 0, 0, 0}, make([]byte, 9), make([]byte, 17)}
	for n, want := range []byte{0, notSupported, notSupported, 0, 0, 0, notSupported, notSupported} {
		if got := ask(0x08, append([]byte{byte(n)}, writes[n]...)...); got != want {
			t.Errorf("Set System Boot Options of parameter %d = %#x, want %#x", n, got, want)
		}
		if got := ask(0x09, byte(n), 0, 0); got != want {
			t.Errorf("Get System Boot Options of parameter %d = %#x, want %#x", n, got, want)
		}
	}
}

// ofProtocol are names that bmcweb adds to any response or message, outside of the files that
// make resources.
var ofProtocol = []string{"MessageSeverity", "@odata.id", "@odata.type", "@odata.etag", "@odata.count", "@odata.context", "Members", "Members@odata.count", "Members@odata.nextLink"}

// notRouted are ends of URIs for which bmcweb has no route.
var notRouted = []string{
	"/JobService", "/SecureBoot", "/BootOptions", "/Volumes", "/Controls", "/MetricDefinitions", "/Memory/DIMM1/EnvironmentMetrics",
	"/Chassis/chassis/PCIeDevices", "/PowerSupplies/PSU1/Metrics", "/Journal/Actions/LogService.ClearLog", "/Actions/Certificate.Rekey",
	"/Actions/ManagerAccount.ChangePassword", "/Actions/EventService.TestEventSubscription",
}

// TestOpenBMCShowsNothingThatBmcwebLacks reads every resource of both models: no body has a
// property or a URI of another dialect that bmcweb does not have, and reads of the system's
// PCIe devices succeed (pcie.hpp).
func TestOpenBMCShowsNothingThatBmcwebLacks(t *testing.T) {
	if *bmcwebSource != "" {
		writeBmcwebNames(t, *bmcwebSource, *bmcwebCommit)
	}
	properties := bmcwebProperties(t)
	for _, model := range []string{"openbmc-tiogapass", "openbmc-mtjade"} {
		t.Run(model, func(t *testing.T) {
			r := rackfile.Default(1)
			r.Hosts[0].Profile = model
			l := racktest.Start(t, rack.Config{Rack: &r})
			use(t, l, l.First())
			read := map[string]bool{}
			todo := []string{"/redfish/v1/"}
			resourceType := ""
			var look func(uri, path string, value any, has map[string]bool)
			look = func(uri, path string, value any, has map[string]bool) {
				switch x := value.(type) {
				case map[string]any:
					for _, name := range slices.Sorted(maps.Keys(x)) {
						if !has[name] && !slices.Contains(ofProtocol, name) {
							t.Errorf("%s shows %s:%s/%s", uri, resourceType, path, name)
						}
						look(uri, path+"/"+name, x[name], has)
					}
				case []any:
					for _, element := range x {
						look(uri, path+"/*", element, has)
					}
				case string:
					to, _, _ := strings.Cut(x, "#")
					if !strings.HasPrefix(to, "/redfish/v1/") {
						return
					}
					for _, end := range notRouted {
						if strings.HasSuffix(to, end) {
							t.Errorf("%s shows %s = %s", uri, path, x)
						}
					}
					if strings.HasSuffix(to, "ActionInfo") && !strings.HasSuffix(to, "/ResetActionInfo") {
						t.Errorf("%s shows %s = %s", uri, path, x)
					}
					if strings.HasSuffix(path, "/@odata.id") || strings.HasSuffix(path, "@Redfish.ActionInfo") {
						todo = append(todo, to)
					}
				}
			}
			for len(todo) > 0 {
				uri := todo[0]
				todo = todo[1:]
				if read[uri] || uri == "/redfish/v1/EventService/SSE" {
					continue
				}
				read[uri] = true
				status, body := call(t, l, l.First(), "GET", uri, "")
				if status != 200 {
					t.Errorf("GET %s = %d", uri, status)
				}
				typed, _ := body["@odata.type"].(string)
				resourceType, _, _ = strings.Cut(strings.TrimPrefix(typed, "#"), ".")
				has := properties[resourceType]
				if has == nil {
					t.Errorf("%s has the type %s, which bmcweb does not make", uri, typed)
					continue
				}
				look(uri, "", body, has)
			}
			if !read["/redfish/v1/Systems/system/PCIeDevices/1/PCIeFunctions/0"] {
				t.Error("no PCIe function was read")
			}
			for _, row := range [][2]string{
				{"/redfish/v1/AccountService", `{"AuthFailureLoggingThreshold":3}`}, {"/redfish/v1/SessionService", `{"AbsoluteSessionTimeoutEnabled":true}`},
				{"/redfish/v1/Managers/bmc/NetworkProtocol", `{"SSDP":{"ProtocolEnabled":true}}`}, {"/redfish/v1/Systems/system", `{"HostWatchdogTimer":{"WarningAction":"None"}}`},
				{"/redfish/v1/AccountService/Accounts/1", `{"AccountExpiration":"2030-01-01T00:00:00Z"}`}, {"/redfish/v1/Managers/bmc/NetworkProtocol", `{"KVMIP":{"ProtocolEnabled":true}}`},
				{"/redfish/v1/EventService/Subscriptions/1", `{"IncludeOriginOfCondition":true}`},
				{"/redfish/v1/Managers/bmc", `{"SerialConsole":{"ServiceEnabled":true}}`},
			} {
				status, body := call(t, l, l.First(), "PATCH", row[0], row[1])
				if text, _ := json.Marshal(body); status != 400 || !strings.Contains(string(text), "PropertyUnknown") {
					t.Errorf("PATCH %s %s = %d %s, want 400 PropertyUnknown", row[0], row[1], status, text)
				}
			}
			for _, more := range []string{`"EventTypes":["Alert"]`, `"Severities":["OK"]`, `"Name":"x"`, `"IncludeOriginOfCondition":true`} {
				status, body := call(t, l, l.First(), "POST", "/redfish/v1/EventService/Subscriptions", `{"Destination":"https://192.0.2.2/","Protocol":"Redfish",`+more+`}`)
				if text, _ := json.Marshal(body); status != 400 || !strings.Contains(string(text), "PropertyUnknown") {
					t.Errorf("POST of a subscription with %s = %d %s, want 400 PropertyUnknown", more, status, text)
				}
			}
		})
	}
}
