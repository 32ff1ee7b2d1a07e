package redfish

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// model is a server model with the dialect of its BMC.
type model struct {
	record  *dialect.Record
	profile string
}

// everyModel returns the models of all dialects.
func everyModel() []model {
	all := []model{{&generic.Record, "generic"}, {&generic.Record, "raid"}}
	for _, v := range vendors {
		for _, profile := range v.profiles {
			all = append(all, model{v.record, profile})
		}
	}
	return all
}

// bodyRules are rules for the bodies of every model.
var bodyRules = map[string]func(t *testing.T, m model, uri string, body map[string]any){
	"allowable values": checkAllowableValues,
	"foreign OEM":      checkForeignOEM,
}

// TestBodiesOfEveryModel reads every resource of a server of every model that is in use.
func TestBodiesOfEveryModel(t *testing.T) {
	for _, m := range everyModel() {
		if raced && m.profile != "generic" { // the models differ in data only
			continue
		}
		s, h := newVendorHost(t, m.record, m.profile)
		for _, state := range states {
			if state.name == "running, all set" || state.name == "tasks" {
				state.make(t, h)
			}
		}
		inUse(t, h, m.record)
		bodies := bodiesOf(t, s)
		for _, name := range slices.Sorted(maps.Keys(bodyRules)) {
			t.Run(m.record.Name+" "+m.profile+" "+name, func(t *testing.T) {
				for _, uri := range slices.Sorted(maps.Keys(bodies)) {
					bodyRules[name](t, m, uri, bodies[uri])
				}
			})
		}
	}
}

// bodiesOf reads the service root and all resources that links lead to. It returns their
// bodies by URI.
func bodiesOf(t *testing.T, s *Service) map[string]map[string]any {
	t.Helper()
	bodies, todo := map[string]map[string]any{}, []string{"/redfish/v1/"}
	for len(todo) > 0 {
		uri, _, _ := strings.Cut(todo[0], "#")
		todo = todo[1:]
		if _, seen := bodies[uri]; seen {
			continue
		}
		w := call(t, s, "admin", "GET", uri, "")
		if w.Code != http.StatusOK && w.Code != http.StatusAccepted { // the state of a task, where Location names it
			t.Errorf("%s", shape("GET", uri, "", w))
			bodies[uri] = nil
			continue
		}
		bodies[uri] = decoded(t, w)
		resources, _ := links(bodies[uri])
		todo = append(todo, resources...)
	}
	return bodies
}

// eachObject calls a function with every object in a value and its path: "Boot", "Members/0".
func eachObject(value any, path string, visit func(path string, o map[string]any)) {
	below := func(name string) string { return strings.TrimPrefix(path+"/"+name, "/") }
	switch x := value.(type) {
	case []any:
		for i, y := range x {
			eachObject(y, below(fmt.Sprint(i)), visit)
		}
	case map[string]any:
		visit(path, x)
		for name, y := range x {
			eachObject(y, below(name), visit)
		}
	}
}

// checkAllowableValues checks that only strings have lists of allowable values: they are
// lists of strings, which clients compare with the value that they send (DSP2046,
// ActionInfo.AllowableValues; DSP0266, "Allowable values"). Ansible's redfish_command sends
// no true where ["true"] is listed.
func checkAllowableValues(t *testing.T, _ model, uri string, body map[string]any) {
	parameters, _ := body["Parameters"].([]any)
	for _, p := range parameters {
		p, _ := p.(map[string]any)
		if of, _ := p["DataType"].(string); p["AllowableValues"] != nil && of != "String" && of != "StringArray" {
			t.Errorf("%s: parameter %v of type %s has AllowableValues %v", uri, p["Name"], of, p["AllowableValues"])
		}
	}
	eachObject(body, "", func(path string, o map[string]any) {
		for name, values := range o {
			property, annotated := strings.CutSuffix(name, "@Redfish.AllowableValues")
			if !annotated {
				continue
			}
			for _, v := range values.([]any) {
				if _, ok := v.(string); !ok {
					t.Errorf("%s: %s/%s has the value %v, which is no string", uri, path, name, v)
				}
			}
			switch o[property].(type) {
			case nil, string, []any:
			default:
				t.Errorf("%s: %s/%s is %v, no string, and has allowable values", uri, path, property, o[property])
			}
		}
	})
}

// oemNames has the names that vendors give their objects in Oem, and the beginnings of the
// names of their types, actions and message registries, by the beginnings of the names of
// their dialects.
var oemNames = map[string][]string{
	"generic": {"Metalab"}, "openbmc": {"OpenBmc", "OpenBMC"}, "irmc-s5": {"ts_fujitsu", "FTS", "iRMC"}, "irmc-s6": {"Fsas", "iRMC"},
	"idrac": {"Dell", "IDRAC", "EID_674_", "OemManager"}, "ibmc": {"Huawei", "iBMC"}, "xcc": {"Lenovo"},
	"supermicro": {"Supermicro", "Smc", "IsoConfig", "LicenseManager"}, "megarac": {"Ami", "AMI"},
	"ilo4": {"Hp", "iLO"}, "ilo5": {"Hpe", "iLO", "SmartStorage"}, "ilo6": {"Hpe", "iLO"}, "ilo7": {"Hpe", "iLO"},
}

// checkForeignOEM checks that the vendors' names in a body are those of the model's
// vendor: the names of objects in Oem, types, actions, message registries, and segments of
// URIs.
func checkForeignOEM(t *testing.T, m model, uri string, body map[string]any) {
	var vendor []string
	for dialect, names := range oemNames {
		if strings.HasPrefix(m.record.Name, dialect) {
			vendor = append(vendor, names...)
		}
	}
	check := func(where, name string, inOEM bool) {
		longest, belongs := "", false
		for _, names := range oemNames {
			for _, n := range names {
				if strings.HasPrefix(strings.ToLower(name), strings.ToLower(n)) && len(n) > len(longest) {
					longest = n
				}
			}
		}
		belongs = slices.ContainsFunc(vendor, func(n string) bool { return strings.EqualFold(n, longest) })
		if !belongs && (longest != "" || inOEM) {
			t.Errorf("%s: %s: %s is no name of %s's", uri, where, name, m.record.Name)
		}
	}
	checkText := func(where, text string) {
		if strings.HasPrefix(text, "/") {
			for segment := range strings.SplitSeq(text, "/") {
				check(where, segment, false)
			}
		}
	}
	checkText("URI", uri)
	eachObject(body, "", func(path string, o map[string]any) {
		inOEM := path == "Oem" || strings.HasSuffix(path, "/Oem")
		isActions := path == "Actions" || strings.HasSuffix(path, "Actions/Oem")
		for name, value := range o {
			text, _ := value.(string)
			where := path + "/" + name
			switch {
			case isActions:
				if name != "Oem" {
					check(where, strings.TrimPrefix(name, "#"), false)
				}
			case inOEM:
				check(where, name, true)
			}
			switch name {
			case "@odata.type", "MessageId":
				check(where, strings.TrimPrefix(text, "#"), false)
			default:
				checkText(where, text)
			}
		}
	})
}

// TestNoVendorHasNamesOfAnother checks that no record has the name, product, model or
// manufacturer of the generic dialect, which is a product, too, or of another vendor.
func TestNoVendorHasNamesOfAnother(t *testing.T) {
	of := map[string]string{} // the beginning of the dialect's name, by name
	for _, m := range everyModel() {
		r := m.record
		family, _, _ := strings.Cut(r.Name, "-")
		family = strings.TrimRight(family, "0123456789")
		for _, name := range []string{"vendor " + r.Vendor, "product " + r.Product, "model " + r.ManagerModel, fmt.Sprint("manufacturer ", r.IPMI.Manufacturer)} {
			if _, value, _ := strings.Cut(name, " "); value == "" {
				continue
			}
			if other, taken := of[name]; taken && other != family {
				t.Errorf("%s: %s is also that of %s", r.Name, name, other)
			}
			of[name] = family
		}
	}
}

// TestSupportedApplyTimesAreAccepted sends each apply time that a resource offers for its
// settings: a service that refuses apply times offers none (DSP0266, "Settings resource").
func TestSupportedApplyTimesAreAccepted(t *testing.T) {
	for _, m := range everyModel() {
		s, h := newVendorHost(t, m.record, m.profile)
		for uri, body := range bodiesOf(t, s) {
			settings, _ := body["@Redfish.Settings"].(map[string]any)
			times, _ := settings["SupportedApplyTimes"].([]any)
			for _, time := range times {
				object := settings["SettingsObject"].(map[string]any)["@odata.id"].(string)
				change := map[string]any{"@Redfish.SettingsApplyTime": map[string]any{"ApplyTime": time}}
				if strings.Contains(fmt.Sprint(time), "MaintenanceWindow") {
					maps.Copy(change["@Redfish.SettingsApplyTime"].(map[string]any), map[string]any{
						"MaintenanceWindowStartTime": "2026-03-01T14:00:00Z", "MaintenanceWindowDurationInSeconds": 600,
					})
				}
				if name, value := changedSetting(h, time == "Immediate"); body["Attributes"] != nil {
					change["Attributes"] = map[string]any{name: value}
				} else { // settings of the system
					order := bodiesOf(t, s)[object]["Boot"].(map[string]any)["BootOrder"].([]any)
					slices.Reverse(order)
					change["Boot"] = map[string]any{"BootOrder": order}
				}
				w := call(t, s, "admin", "PATCH", object, string(resource.Encode(change)), "If-Match", "*")
				if w.Code >= 300 && !strings.Contains(w.Body.String(), "SYS011") { // iDRAC: the settings before these still wait
					t.Errorf("%s: %s offers %v, but %s", m.record.Name, uri, time, shape("PATCH", object, fmt.Sprint(change), w))
				}
			}
		}
	}
}

// changedSetting returns a BIOS setting with a value that it does not have; one that can be
// applied at once, or any.
func changedSetting(h *host, atOnce bool) (name, value string) {
	of := h.machine.View().Profile.Firmware.Model
	if of == nil {
		return "", ""
	}
	for _, a := range of.Registry().Attributes {
		for _, v := range a.Values {
			if !a.ReadOnly && v.Name != fmt.Sprint(a.Default) && (!atOnce || !a.ResetRequired) {
				return a.Name, v.Name
			}
		}
	}
	return "", ""
}
