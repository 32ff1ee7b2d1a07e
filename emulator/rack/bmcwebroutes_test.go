package rack_test

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// bmcwebRoutes lists the routes in bmcweb's source; writeBmcwebRoutes makes the list.
//
//go:embed testdata/bmcwebroutes.txt
var bmcwebRoutes []byte

var (
	bmcwebRoute  = regexp.MustCompile(`BMCWEB_ROUTE\(\s*app,\s*((?:"[^"]*"\s*)+)\)[^;]*?\.methods\(([^)]*)\)`)
	bmcwebMethod = regexp.MustCompile(`\bverb::(\w+)`)
)

// readBmcwebRoutes returns the methods of the routes in one file of bmcweb, by their URIs.
// Literals that stand behind each other are one URI.
func readBmcwebRoutes(source string) map[string][]string {
	out := map[string][]string{}
	for _, m := range bmcwebRoute.FindAllStringSubmatch(bmcwebComment.ReplaceAllString(source, ""), -1) {
		uri := ""
		for _, literal := range bmcwebLiteral.FindAllStringSubmatch(m[1], -1) {
			uri += literal[1]
		}
		uri = strings.TrimSuffix(uri, "/")
		for _, method := range bmcwebMethod.FindAllStringSubmatch(m[2], -1) {
			out[uri] = append(out[uri], strings.ToUpper(strings.TrimSuffix(method[1], "_")))
		}
	}
	return out
}

// writeBmcwebRoutes writes testdata/bmcwebroutes.txt from a checkout. A route that only some
// builds have is listed: the list has the methods that some build takes.
func writeBmcwebRoutes(t *testing.T, root, commit string) {
	t.Helper()
	routes := map[string]map[string]bool{}
	eachBmcwebSource(t, root, func(_, source string) {
		for uri, methods := range readBmcwebRoutes(source) {
			if routes[uri] == nil {
				routes[uri] = map[string]bool{}
			}
			for _, m := range methods {
				routes[uri][m] = true
			}
		}
	})
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Routes in the source of openbmc/bmcweb (Apache-2.0), %s.\n", commit)
	fmt.Fprintln(&out, "# go test ./emulator/rack -run TestOpenBMCAllowsWhatBmcwebRoutes -bmcweb CHECKOUT -bmcweb-commit 'COMMIT, DATE' writes this file.")
	for _, uri := range slices.Sorted(maps.Keys(routes)) {
		fmt.Fprintln(&out, uri, strings.Join(slices.Sorted(maps.Keys(routes[uri])), " "))
	}
	if err := os.WriteFile("testdata/bmcwebroutes.txt", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	bmcwebRoutes = out.Bytes()
}

// bmcwebMethods returns bmcweb's route of a URI and the methods that it takes; nil: it has no
// route. <str> is any segment; a route without variables comes first.
func bmcwebMethods(uri string) (route string, methods []string) {
	segments := strings.Split(uri, "/")
	fewest := len(segments) + 1
	for lines := bufio.NewScanner(bytes.NewReader(bmcwebRoutes)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		pattern := strings.Split(fields[0], "/")
		if fields[0] == "#" || len(pattern) != len(segments) {
			continue
		}
		variables := 0
		for i, s := range pattern {
			if s == "<str>" {
				variables++
			} else if s != segments[i] {
				variables = len(segments) + 1
			}
		}
		if variables < fewest {
			fewest, route, methods = variables, fields[0], fields[1:]
		}
	}
	return route, methods
}

// notModelled are methods that bmcweb takes and this service answers 405, by routes of
// bmcweb, with what they do.
var notModelled = map[string]string{
	"DELETE /redfish/v1/AccountService/Accounts/<str>":                    "this service keeps an administrator that is the last",
	"DELETE /redfish/v1/Managers/<str>/EthernetInterfaces/<str>":          "of a VLAN",
	"POST /redfish/v1/Managers/<str>/EthernetInterfaces":                  "adds a VLAN",
	"DELETE /redfish/v1/TelemetryService/Triggers/<str>":                  "triggers are those of the sensors' thresholds",
	"POST /redfish/v1/TelemetryService/Triggers":                          "the same",
	"PATCH /redfish/v1/Chassis/<str>/PowerSubsystem/PowerSupplies/<str>":  "LocationIndicatorActive",
	"PATCH /redfish/v1/Chassis/<str>/Thermal":                             "overrides readings, in builds for tests",
	"PATCH /redfish/v1/Chassis/<str>/ThermalSubsystem/Fans/<str>":         "LocationIndicatorActive",
	"PATCH /redfish/v1/Systems/<str>/Memory/<str>":                        "LocationIndicatorActive",
	"PATCH /redfish/v1/Systems/<str>/Processors/<str>":                    "LocationIndicatorActive, AppliedOperatingConfig",
	"PATCH /redfish/v1/Systems/<str>/Processors/<str>/EnvironmentMetrics": "PowerLimitWatts",
}

// TestOpenBMCAllowsWhatBmcwebRoutes compares the Allow header of every resource of a BMC in
// use, and the target of every action, with the routes in bmcweb's source: a method that has
// none is answered 405.
func TestOpenBMCAllowsWhatBmcwebRoutes(t *testing.T) {
	if *bmcwebSource != "" {
		writeBmcwebRoutes(t, *bmcwebSource, *bmcwebCommit)
	}
	if n := bytes.Count(bmcwebRoutes, []byte("\n")); n < 150 {
		t.Fatalf("testdata/bmcwebroutes.txt has %d lines, want more", n)
	}
	missing := map[string]bool{}
	for _, model := range []string{"openbmc-tiogapass", "openbmc-mtjade"} {
		t.Run(model, func(t *testing.T) {
			r := rackfile.Default(1)
			r.Hosts[0].Profile = model
			l := racktest.Start(t, rack.Config{Rack: &r})
			h := l.First()
			use(t, l, h)
			types := map[string]bool{}
			for _, uri := range append(walk(t, l), "/redfish/v1/TaskService/TaskMonitors/1") { // no link leads to a monitor
				_, body := call(t, l, h, "GET", uri, "")
				types[fmt.Sprint(body["@odata.type"])] = true
				uri = strings.TrimSuffix(uri, "/")
				route, routed := bmcwebMethods(uri)
				if routed == nil {
					t.Errorf("bmcweb has no route %s", uri)
					continue
				}
				allow := allowAt(t, l, h, uri)
				for _, method := range []string{http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodDelete} {
					switch allowed, has := slices.Contains(allow, method), slices.Contains(routed, method); {
					case allowed && !has:
						t.Errorf("%s: Allow is %v, bmcweb routes %v", uri, allow, routed)
					case has && !allowed:
						missing[method+" "+route] = true
					}
					if slices.Contains(routed, method) {
						continue
					}
					if status, body := call(t, l, h, method, uri, `{"Name":"x"}`); status != http.StatusMethodNotAllowed {
						t.Errorf("%s %s = %d %v, want 405", method, uri, status, body)
					}
				}
				for _, target := range actionTargets(body["Actions"]) {
					if _, routed := bmcwebMethods(target); !slices.Contains(routed, http.MethodPost) {
						t.Errorf("%s shows the action %s, for which bmcweb has no route", uri, target)
					}
				}
			}
			for _, name := range []string{"Session", "EventDestination", "Task", "LogEntry", "MetricReportDefinition", "ManagerAccount", "Role", "Certificate"} {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(types)), func(of string) bool { return strings.HasPrefix(of, "#"+name+".") }) {
					t.Errorf("there is no %s", name)
				}
			}
		})
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(notModelled)), slices.Sorted(maps.Keys(missing))); d != "" {
		t.Errorf("methods that bmcweb takes, and that are answered 405 (-notModelled +got):\n%s", d)
	}
}

// use makes resources that a BMC has only once it was used.
func use(t *testing.T, l *racktest.Rack, h *rack.Host) {
	t.Helper()
	user, password := l.Credentials(h)
	for _, r := range []struct{ uri, body string }{
		{"/redfish/v1/SessionService/Sessions", fmt.Sprintf(`{"UserName":%q,"Password":%q}`, user, password)},
		{"/redfish/v1/EventService/Subscriptions", `{"Destination":"https://192.0.2.1/","Protocol":"Redfish","Context":"x"}`},
		{"/redfish/v1/AccountService/Accounts", `{"UserName":"second","Password":"Secret-12","RoleId":"Operator"}`},
		{"/redfish/v1/TelemetryService/MetricReportDefinitions", `{"Id":"r","MetricReportDefinitionType":"OnRequest","ReportActions":["LogToMetricReportsCollection"],` +
			`"Metrics":[{"MetricProperties":["/redfish/v1/Chassis/chassis/Sensors/InletTemp/Reading"]}]}`},
		{"/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", `{"ImageURI":"http://192.0.2.1/none"}`},
		{"/redfish/v1/Systems/system/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`},
	} {
		if status, body := call(t, l, h, "POST", r.uri, r.body); status >= 300 {
			t.Fatalf("POST %s = %d %v", r.uri, status, body)
		}
	}
}

// actionTargets returns the targets of the actions in a body.
func actionTargets(actions any) (targets []string) {
	all, _ := actions.(map[string]any)
	for name, a := range all {
		action, _ := a.(map[string]any)
		if target, ok := action["target"].(string); ok {
			targets = append(targets, target)
		} else if name == "Oem" {
			targets = append(targets, actionTargets(a)...)
		}
	}
	return targets
}

// allowAt returns the methods in the Allow header of a GET.
func allowAt(t *testing.T, l *racktest.Rack, h *rack.Host, uri string) []string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(l.Credentials(h))
	response, err := l.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(response.Header.Get("Allow"), ", ")
}
