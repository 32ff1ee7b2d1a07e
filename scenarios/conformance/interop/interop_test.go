package interop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// service has a root, a system with an action and settings, and an absent drive.
func service(t *testing.T) *Service {
	t.Helper()
	document := func(uri, body string, allow []string, parents ...string) Document {
		d := Document{URI: uri, Allow: allow, Parents: parents}
		if err := json.Unmarshal([]byte(body), &d.Body); err != nil {
			t.Fatal(err)
		}
		return d
	}
	return &Service{Documents: []Document{
		document("/redfish/v1/", `{"@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot", "RedfishVersion": "1.9.0", "ProtocolFeaturesSupported": {"OnlyMemberQuery": true, "ExpandQuery": {}}}`, nil),
		document("/redfish/v1/Systems/1", `{"@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem", "Name": "x", "Boot": {"Target": "Pxe", "Target@Redfish.AllowableValues": ["Pxe"]},
			"Bios": {"@odata.id": "/redfish/v1/Systems/1/Bios"}, "Count": 4, "List": [null, 1], "Sensors": [{"At": "Intake"}, {"At": "CPU"}],
			"Actions": {"#ComputerSystem.Reset": {"ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}}}`, []string{"GET", "PATCH"}, "ServiceRoot", "ComputerSystemCollection"),
		document("/redfish/v1/Systems/1/Bios", `{"@odata.type": "#Bios.v1_1_0.Bios", "@Redfish.Settings": {"SettingsObject": {"@odata.id": "/redfish/v1/Systems/1/Bios/Settings"}}}`, []string{"GET"}, "ServiceRoot", "ComputerSystemCollection", "ComputerSystem"),
		document("/redfish/v1/Systems/1/Bios/Settings", `{"@odata.type": "#Bios.v1_1_0.Bios"}`, []string{"GET"}),
		document("/redfish/v1/Systems/1/Drives/1", `{"@odata.type": "#Drive.v1_1_0.Drive", "Status": {"State": "Absent"}}`, []string{"GET"}),
	}}
}

// Each row has requirements on the system and the violations that they have.
func TestRequirements(t *testing.T) {
	for name, tt := range map[string]struct{ resources, want string }{
		"a property that exists":               {`"ComputerSystem": {"PropertyRequirements": {"Name": {}}}`, ""},
		"a property that is absent":            {`"ComputerSystem": {"PropertyRequirements": {"UUID": {}}}`, "mandatory ComputerSystem/UUID: is absent"},
		"a recommended one":                    {`"ComputerSystem": {"PropertyRequirements": {"UUID": {"ReadRequirement": "Recommended"}}}`, "recommended ComputerSystem/UUID: is absent"},
		"one that need not be there":           {`"ComputerSystem": {"PropertyRequirements": {"UUID": {"ReadRequirement": "IfImplemented", "Comparison": "Equal", "Values": ["x"]}}}`, ""},
		"one that is there and wrong":          {`"ComputerSystem": {"PropertyRequirements": {"Name": {"ReadRequirement": "IfImplemented", "Comparison": "Equal", "Values": ["y"]}}}`, "mandatory ComputerSystem/Name: x is not Equal [y]"},
		"one that must not be there":           {`"ComputerSystem": {"PropertyRequirements": {"Name": {"ReadRequirement": "Excluded"}}}`, "mandatory ComputerSystem/Name: exists"},
		"a replaced one":                       {`"ComputerSystem": {"PropertyRequirements": {"UUID": {"ReplacedByProperty": "Name"}}}`, ""},
		"nested":                               {`"ComputerSystem": {"PropertyRequirements": {"Boot": {"PropertyRequirements": {"Mode": {}}}}}`, "mandatory ComputerSystem/Boot/Mode: is absent"},
		"values that are supported":            {`"ComputerSystem": {"PropertyRequirements": {"Boot": {"PropertyRequirements": {"Target": {"WriteRequirement": "Mandatory", "MinSupportValues": ["Pxe"]}}}}}`, ""},
		"values that are not":                  {`"ComputerSystem": {"PropertyRequirements": {"Boot": {"PropertyRequirements": {"Target": {"MinSupportValues": ["Pxe", "Cd"]}}}}}`, "mandatory ComputerSystem/Boot/Target: allowable values lack [Cd]"},
		"values that nobody lists":             {`"ComputerSystem": {"PropertyRequirements": {"Name": {"MinSupportValues": ["Cd"]}}}`, "recommended ComputerSystem/Name: whether [Cd] are supported is unknown: there is no Name@Redfish.AllowableValues"},
		"a write without PATCH":                {`"Bios": {"PropertyRequirements": {"@Redfish.Settings": {"WriteRequirement": "Mandatory"}}}`, "mandatory Bios/@Redfish.Settings: PATCH is not in Allow: GET"},
		"a settings resource is no instance":   {`"Bios": {"PropertyRequirements": {"@Redfish.Settings": {}}}`, ""},
		"a link":                               {`"ComputerSystem": {"PropertyRequirements": {"Bios": {"Comparison": "LinkToResource", "Values": ["Bios"]}}}`, ""},
		"a link elsewhere":                     {`"ComputerSystem": {"PropertyRequirements": {"Bios": {"Comparison": "LinkToResource", "Values": ["SecureBoot"]}}}`, "mandatory ComputerSystem/Bios: leads to a Bios, not to one of [SecureBoot]"},
		"a number":                             {`"ComputerSystem": {"PropertyRequirements": {"Count": {"Comparison": "Range", "Values": [1, 3]}}}`, "mandatory ComputerSystem/Count: 4 is not Range [1 3]"},
		"a count without nulls":                {`"ComputerSystem": {"PropertyRequirements": {"List": {"MinCount": 2}}}`, "mandatory ComputerSystem/List: has 1 elements, not 2"},
		"all of the elements together":         {`"ComputerSystem": {"PropertyRequirements": {"Sensors": {"PropertyRequirements": {"At": {"Comparison": "AllOf", "Values": ["CPU", "Intake"]}}}}}`, ""},
		"not all of the elements":              {`"ComputerSystem": {"PropertyRequirements": {"Sensors": {"PropertyRequirements": {"At": {"Comparison": "AllOf", "Values": ["CPU", "Exhaust"]}}}}}`, "mandatory ComputerSystem/Sensors/At: [Intake CPU] are not all of [CPU Exhaust]"},
		"a condition that is false":            {`"ComputerSystem": {"PropertyRequirements": {"UUID": {"ReadRequirement": "None", "ConditionalRequirements": [{"CompareProperty": "Name", "CompareType": "Equal", "CompareValues": ["y"], "ReadRequirement": "Mandatory"}]}}}`, ""},
		"a condition that is true":             {`"ComputerSystem": {"PropertyRequirements": {"UUID": {"ReadRequirement": "None", "ConditionalRequirements": [{"CompareProperty": "Name", "CompareType": "Equal", "CompareValues": ["x"], "ReadRequirement": "Mandatory"}]}}}`, "mandatory ComputerSystem/UUID: is absent"},
		"a condition of the way":               {`"ComputerSystem": {"PropertyRequirements": {"UUID": {"ReadRequirement": "None", "ConditionalRequirements": [{"SubordinateToResource": ["ServiceRoot", "ComputerSystemCollection"], "ReadRequirement": "Mandatory"}]}}}`, "mandatory ComputerSystem/UUID: is absent"},
		"a resource that does not exist":       {`"Memory": {}`, "mandatory Memory: no resource of this type exists"},
		"a resource of a use case":             {`"ComputerSystem": {"UseCases": [{"UseCaseTitle": "big", "UseCaseKeyProperty": "Count", "UseCaseComparison": "GreaterThan", "UseCaseKeyValues": [9]}]}`, "mandatory ComputerSystem (big): no resource of this type exists"},
		"hardware that is absent has nothing":  {`"Drive": {"PropertyRequirements": {"Model": {}}}`, ""},
		"a newer version":                      {`"ComputerSystem": {"MinVersion": "1.11.0"}`, "mandatory ComputerSystem: #ComputerSystem.v1_10_0.ComputerSystem is older than 1.11.0"},
		"no newer version":                     {`"ComputerSystem": {"MinVersion": "1.9.0"}`, ""},
		"an action with values":                {`"ComputerSystem": {"ActionRequirements": {"Reset": {"Parameters": {"ResetType": {"ParameterValues": ["On"], "RecommendedValues": ["Nmi"]}}}}}`, "recommended ComputerSystem/Actions/Reset/ResetType: allowable values lack Nmi"},
		"an action that is absent":             {`"ComputerSystem": {"ActionRequirements": {"Decommission": {}}}`, "mandatory ComputerSystem/Actions/Decommission: is absent"},
		"a resource of a URI that is not ours": {`"ComputerSystem": {"URIs": ["/redfish/v1/Nodes/{Id}"]}`, "mandatory ComputerSystem: no resource of this type exists"},
		"a resource of a URI":                  {`"ComputerSystem": {"URIs": ["/redfish/v1/Systems/{Id}"]}`, ""},
	} {
		p, err := Parse(fmt.Appendf(nil, `{"ProfileName": "P", "Resources": {%s}}`, tt.resources), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		e := p.Evaluate(service(t))
		for _, v := range e.Violations {
			got += fmt.Sprintf("%s %s: %s", v.Severity, v.What, v.Text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
		if tt.want != "" && e.Checked == 0 {
			t.Errorf("%s: no requirement was counted", name)
		}
	}
}

func TestProtocolRequirements(t *testing.T) {
	p, err := Parse([]byte(`{"ProfileName": "P", "Resources": {}, "Protocol": {"MinVersion": "1.10.0", "OnlyQuery": "Mandatory", "ExpandQuery": "Recommended"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range p.Evaluate(service(t)).Violations {
		got = append(got, string(v.Severity)+" "+v.String())
	}
	want := []string{`mandatory /redfish/v1/: RedfishVersion: "1.9.0" is older than 1.10.0`, "recommended /redfish/v1/: ProtocolFeaturesSupported/ExpandQuery: is not supported"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Evaluate (-want +got):\n%s", diff)
	}
}

func TestProfilesThatAreRequired(t *testing.T) {
	find := func(name string) ([]byte, error) {
		return fmt.Appendf(nil, `{"ProfileName": %q, "Resources": {"Memory": {}}}`, name), nil
	}
	p, err := Parse([]byte(`{"ProfileName": "P", "RequiredProfiles": {"Base": {}}, "Resources": {}}`), find)
	if err != nil {
		t.Fatal(err)
	}
	found := p.Evaluate(service(t)).Violations
	if len(found) != 1 || found[0].Profile != "Base" {
		t.Errorf("Evaluate = %v, want the violation of Base", found)
	}
	for name, bad := range map[string]string{"no JSON": `{`, "another document": `{"a": 1}`, "a loop": `{"ProfileName": "L", "RequiredProfiles": {"L": {}}}`, "not there": `{"ProfileName": "L", "RequiredProfiles": {"M": {}}}`} {
		self := func(string) ([]byte, error) { return []byte(bad), nil }
		if name == "not there" {
			self = nil
		}
		if _, err := Parse([]byte(bad), self); err == nil {
			t.Errorf("Parse of %s succeeds", name)
		}
	}
}

// Each row has requirements beside those on resources, what they find, and what nobody
// evaluates.
func TestRegistriesAndWhatIsNotEvaluated(t *testing.T) {
	base := MessageRegistry{Prefix: "Base", Version: "1.18", Messages: map[string]bool{"Success": true}}
	for name, tt := range map[string]struct {
		requirements string
		found, not   []string
	}{
		"a registry that exists":       {`"Registries": {"Base": {"MinVersion": "1.2.0", "Messages": {"Success": {}}}}`, nil, nil},
		"one that does not":            {`"Registries": {"Heartbeat": {}}`, []string{"mandatory Registries/Heartbeat: the service names no such registry"}, nil},
		"one that need not exist":      {`"Registries": {"Heartbeat": {"ReadRequirement": "IfImplemented", "Messages": {"x": {}}}}`, nil, nil},
		"one that is recommended":      {`"Registries": {"Heartbeat": {"ReadRequirement": "Recommended"}}`, []string{"recommended Registries/Heartbeat: the service names no such registry"}, nil},
		"one that must not be there":   {`"Registries": {"Base": {"ReadRequirement": "Excluded"}}`, []string{"mandatory Registries/Base: exists"}, nil},
		"an old version":               {`"Registries": {"Base": {"MinVersion": "1.19.0"}}`, []string{"mandatory Registries/Base: version 1.18 is older than 1.19.0"}, nil},
		"a message that is not there":  {`"Registries": {"Base": {"Messages": {"NoOperation": {"ReadRequirement": "Recommended"}}}}`, []string{"recommended Registries/Base/NoOperation: the registry has no such message"}, nil},
		"a registry that nobody reads": {`"Registries": {"Far": {"Messages": {"x": {}}}}`, nil, []string{"Registries/Far/Messages: the service does not serve the registry"}},
		"features":                     {`"Registries": {"Base": {"SupportedFeatures": {"x": {}}}}`, nil, []string{"Registries/Base/SupportedFeatures: registries of features are not read"}},
		"SSDP":                         {`"Protocol": {"Discovery": "Mandatory", "HostInterface": "None"}`, nil, []string{"Protocol/Discovery: SSDP is not listened for"}},
		"a use case of another resource": {
			`"Resources": {"Sensor": {"UseCases": [{"UseCaseTitle": "rack", "UseCaseType": "ChassisType"}]}}`, nil,
			[]string{"Sensor (rack): use cases of the type ChassisType are about another resource"},
		},
		"a resource of another profile": {
			`"Resources": {"ComputerSystem": {"RequiredResourceProfile": {"Name": "Base"}}}`, nil,
			[]string{"ComputerSystem/RequiredResourceProfile: the requirements of Base are not read"},
		},
	} {
		text := `{"ProfileName": "P", ` + tt.requirements
		if !strings.Contains(text, `"Resources"`) {
			text += `, "Resources": {}`
		}
		p, err := Parse([]byte(text+"}"), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := service(t)
		s.Registries = []MessageRegistry{base, {Prefix: "Far", Version: "1.0.0"}}
		e := p.Evaluate(s)
		var got []string
		for _, v := range e.Violations {
			got = append(got, string(v.Severity)+" "+v.String())
		}
		if diff := cmp.Diff(tt.found, got); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.not, e.NotEvaluated); diff != "" {
			t.Errorf("%s: not evaluated (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever a service answers, an evaluation ends.
func FuzzEvaluate(f *testing.F) {
	f.Add(`{"@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem", "Boot": [{"Target": null}], "Actions": 7}`)
	p, err := Parse([]byte(`{"ProfileName": "P", "Resources": {"ComputerSystem": {"MinVersion": "1.2.0", "PropertyRequirements": {"Boot": {"MinCount": 1, "PropertyRequirements": {"Target": {"Comparison": "AllOf", "Values": ["x"]}}}}, "ActionRequirements": {"Reset": {"Parameters": {"ResetType": {"ParameterValues": ["On"]}}}}}}}`), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, body string) {
		d := Document{URI: "/redfish/v1/Systems/1"}
		if json.Unmarshal([]byte(body), &d.Body) != nil {
			return
		}
		p.Evaluate(&Service{Documents: []Document{d}})
	})
}
