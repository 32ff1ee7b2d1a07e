package file_test

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

var update = flag.Bool("update", false, "write testdata/keys.txt")

// hooked is a base with something in the lists that files add to, and a hook.
var hooked = func() *dialect.Record {
	r := generic.Record
	r.Name = "hooked"
	r.Presentation.URIMappings = []dialect.URIMapping{{From: "/redfish/v1/Chassis/{chassis}", To: "/redfish/v1/Chassis/Base"}}
	r.Presentation.Transforms = []dialect.Transform{{ResourceType: "Chassis", Remove: []string{"SKU"}}}
	r.Presentation.Hidden = []string{"/redfish/v1/JobService"}
	r.OEM.Resources = []dialect.Resource{{
		URI: "/redfish/v1/Oem/Base", Type: "Base.v1_0_0.Base", Name: "Base", Read: func(dialect.HookContext) map[string]any { return nil },
	}}
	return &r
}()

var bases = map[string]*dialect.Record{"generic": &generic.Record, "hooked": hooked}

const acme = `name: acme
base: hooked
quirks: [power-settle-409 for=30s]
vendor: Acme
systemID: Self
resetTypes: [On, ForceOff]
bmc:
  slots: [{id: CD1, name: Virtual CD, types: [CD]}]
  sessionTimeout: 10m
  accounts: {most: 9, policy: {minPassword: 8}}
  network: {https: {on: true, port: 8443}}
protocol:
  registries: {Base: 1.8.1}
  messages: {SessionLimitExceeded: {registry: ACME, version: 1.0.0, key: Full, text: no room, status: 503}}
  advertisedQueries: {select: true}
  etags: {format: weak, ifMatchRequired: [ComputerSystem]}
ipmi: {cipherSuites: [17], manufacturer: 0x1234, oemCommands: [{netFn: 0x2e, cmd: 1, name: x, privilege: 2, prefix: [1, 2], minLength: 2, maxLength: -1, response: [{bytes: [0, 255]}]}]}
presentation:
  uriMappings:
  - {from: "/redfish/v1/Systems/{system}/VirtualMedia", to: "/redfish/v1/Managers/{manager}/VirtualMedia"}
  transforms:
  - resourceType: ComputerSystem
    remove: [HostName]
    set:
    - {path: Oem/Acme, value: {a: 1, b: [x, null, 1.5, true, "1"]}}
    - {path: PowerState, from: PowerState, map: {PoweringOn: Off}, otherwise: as it is}
  rejectRules:
  - {resourceType: ComputerSystem, method: PATCH, sendsAny: [Boot], oneOf: {Boot/X: [a]}, while: after off, for: 30s, status: 409, message: {registry: Base, version: 1.8.1, key: K, text: T}}
  hidden: [/redfish/v1/TelemetryService]
  errors: {singleObject: true, success: {registry: Base, version: 1.8.1, key: Success, text: Done.}}
oem:
  resources: [{uri: /redfish/v1/Oem/Acme, type: Acme.v1_0_0.Acme, name: Acme, set: [{path: A, value: 1}]}]
`

func TestParseAppliesTheFileToItsBase(t *testing.T) {
	before := generic.Record
	f, err := file.Parse("acme.yaml", []byte(acme), bases)
	if err != nil {
		t.Fatal(err)
	}
	r := f.WithoutQuirks
	if r.Vendor != "Acme" || r.SystemID != "Self" || r.ManagerID != "1" || r.BMC.SessionTimeout != 10*time.Minute || r.BMC.Accounts.Most != 9 ||
		r.BMC.Accounts.Policy.MinPassword != 8 || r.BMC.Accounts.NameMax != 32 || r.IPMI.Manufacturer != 0x1234 || !r.BMC.Network.DHCP {
		t.Errorf("fields are %+v", r)
	}
	if d := cmp.Diff([]machine.ResetKind{machine.ResetOn, machine.ForceOff}, r.ResetTypes); d != "" {
		t.Error(d)
	}
	presentation := dialect.Presentation{
		URIMappings: []dialect.URIMapping{
			{From: "/redfish/v1/Systems/{system}/VirtualMedia", To: "/redfish/v1/Managers/{manager}/VirtualMedia"},
			{From: "/redfish/v1/Chassis/{chassis}", To: "/redfish/v1/Chassis/Base"},
		},
		Transforms: []dialect.Transform{
			{ResourceType: "Chassis", Remove: []string{"SKU"}},
			{ResourceType: "ComputerSystem", Remove: []string{"HostName"}, Set: []dialect.PropertyRule{
				{Path: "Oem/Acme", Value: map[string]any{"a": 1, "b": []any{"x", nil, 1.5, true, "1"}}},
				{Path: "PowerState", From: "PowerState", Map: map[string]any{"PoweringOn": "Off"}, Otherwise: dialect.LeaveUnchanged},
			}},
		},
		RejectRules: []dialect.RejectRule{{
			ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot"}, OneOf: map[string][]string{"Boot/X": {"a"}}, While: dialect.AfterOff,
			For: 30 * time.Second, Status: 409, Message: dialect.VendorMessage{Registry: "Base", Version: "1.8.1", Key: "K", Text: "T"},
		}},
		Hidden: []string{"/redfish/v1/JobService", "/redfish/v1/TelemetryService"},
		Errors: dialect.ErrorFormat{SingleObject: true, Success: &dialect.VendorMessage{Registry: "Base", Version: "1.8.1", Key: "Success", Text: "Done."}},
	}
	if d := cmp.Diff(presentation, r.Presentation); d != "" {
		t.Errorf("Presentation (-want +got):\n%s", d)
	}
	if len(r.OEM.Resources) != 2 || r.OEM.Resources[0].Name != "Acme" || r.Hooks() != 1 {
		t.Errorf("OEM.Resources = %+v", r.OEM.Resources)
	}
	full, err := f.Record()
	if err != nil {
		t.Fatal(err)
	}
	if len(full.Presentation.RejectRules) <= len(r.Presentation.RejectRules) {
		t.Error("the quirk did nothing")
	}
	if !reflect.DeepEqual(before, generic.Record) || len(hooked.Presentation.URIMappings) != 1 {
		t.Error("the base was changed")
	}
}

func TestFormatIsReadBack(t *testing.T) {
	f, err := file.Parse("acme.yaml", []byte(acme), bases)
	if err != nil {
		t.Fatal(err)
	}
	same(t, f)
}

func same(t *testing.T, f *file.File) {
	t.Helper()
	b, err := file.Format(f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := file.Parse("again.yaml", b, bases)
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	c, err := file.Format(again)
	if err != nil || string(c) != string(b) {
		t.Fatalf("written again (%v):\n%s\nwas\n%s", err, c, b)
	}
	f.WithoutQuirks.OEM, again.WithoutQuirks.OEM = dialect.OEM{}, dialect.OEM{} // functions do not compare
	if d := cmp.Diff(f.WithoutQuirks, again.WithoutQuirks); d != "" {
		t.Fatalf("read again (-want +got):\n%s\n%s", d, b)
	}
}

func TestParseNamesFileLineAndField(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no base", "name: a\n", `base: "": there is no such dialect`},
		{"another base", "name: a\nbase: b\n", `base: "b": there is no such dialect`},
		{"no name", "base: generic\n", `name: "": must be`},
		{"a field", "name: a\nbase: generic\nsystemId: x\n", "a.yaml:3: systemId: there is no such field: use one of name, product"},
		{"a field below", "name: a\nbase: generic\npresentation:\n  rejectRules:\n  - {resourceType: X, whlie: in POST}\n", "a.yaml:5: presentation.rejectRules[0].whlie: there is no such field: use one of resourceType, uri"},
		{"a hook", "name: a\nbase: generic\noem:\n  resources: [{read: x}]\n", "oem.resources[0].read: there is no such field"},
		{"a duration", "name: a\nbase: generic\nbmc: {sessionTimeout: 10}\n", `bmc.sessionTimeout: "10": must be a duration, such as 90s`},
		{"a number", "name: a\nbase: generic\nbmc: {sessions: many}\n", `bmc.sessions: "many": must be an integer`},
		{"a byte", "name: a\nbase: generic\nipmi: {cipherSuites: [300]}\n", `ipmi.cipherSuites[0]: "300": must be an integer from 0 to 255`},
		{"a flag", "name: a\nbase: generic\nmedia: {insertByPatch: yes please}\n", `media.insertByPatch: "yes please": must be true or false`},
		{"a list", "name: a\nbase: generic\nresetTypes: On\n", `resetTypes: "On": must be a list`},
		{"a value of a list", "name: a\nbase: generic\nresetTypes: [Explode]\n", `a.yaml:3: resetTypes[0]: "Explode": must be one of [On ForceOff`},
		{"a mapping", "name: a\nbase: generic\nbmc: [1]\n", "bmc: must be a mapping"},
		{"null", "name: a\nbase: generic\nproduct: null\n", "product: must not be null"},
		{"twice", "name: a\nbase: generic\nproduct: a\nproduct: b\n", "a.yaml:4: product: is there already in line 3"},
		{"a quirk", "name: a\nbase: generic\nquirks: [nonsense]\n", "a.yaml:3: quirks[0]: nonsense: there is no such quirk"},
		{"a quirk's parameter", "name: a\nbase: generic\nquirks: [power-settle-409 for=soon]\n", `"soon": must be a duration`},
		{"two documents", "name: a\nbase: generic\n---\nname: b\n", "more than one document"},
		{"a pattern", "name: a\nbase: generic\npresentation: {hidden: [/x]}\n", `a.yaml:3: presentation.hidden[0]: "/x" must begin with /redfish/v1`},
		{"a bomb", bomb(), "too large"},
		{"endless", "name: a\nbase: generic\noem: &a\n  resources: [{uri: /x, type: T, set: [{path: A, value: *a}]}]\n", "more than 60 deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := file.Parse("a.yaml", []byte(tt.text), bases)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// bomb returns a small file whose aliases stand for very many values.
func bomb() string {
	var b strings.Builder
	b.WriteString("name: a\nbase: generic\npresentation:\n  transforms:\n  - resourceType: X\n    set:\n    - {path: a, value: &a [1,1,1,1,1,1,1,1]}\n")
	for c := byte('b'); c < 'l'; c++ {
		p := "*" + string(c-1)
		b.WriteString("    - {path: " + string(c) + ", value: &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat(p+",", 8), ",") + "]}\n")
	}
	return b.String()
}

// TestKeysChangeOnPurpose compares the keys of dialect files with a list. The keys
// follow the names of Go fields: whoever renames a field sees here that users' files
// change, and puts the old key into renamedKeys.
func TestKeysChangeOnPurpose(t *testing.T) {
	var lines []string
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()) {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			if key := yamlfile.Key(of.Field(i)); key != "" {
				lines = append(lines, of.String()+" "+key+"\n")
				walk(of.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[dialect.Record]())
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("testdata/keys.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("keys of dialect files (-want +got): put old keys into renamedKeys, then run with -update\n%s", d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(acme))
	f.Add([]byte("name: a\nbase: generic\n"))
	f.Add([]byte(bomb()))
	f.Add([]byte("name: a\nbase: generic\noem: &a\n  resources: [*a]\n"))
	f.Add([]byte("name: a\nbase: hooked\nresetTypes: []\npresentation: {transforms: [{resourceType: A, set: [{path: x, value: 0x10}]}]}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parsed, err := file.Parse("fuzz.yaml", b, bases)
		if err != nil {
			return
		}
		same(t, parsed)
	})
}

func TestParseRefusesOldKeysAndNamesTheNewOnes(t *testing.T) {
	const old = `name: a
base: generic
redundant: accept
face:
  rules:
  - {of: ComputerSystem, says: {key: K}}
ipmi: {faults: {padded: true}}
protocol: {thin: [Boot]}
shifts: true
`
	_, err := file.Parse("a.yaml", []byte(old), bases)
	if err == nil {
		t.Fatal("a file with old keys is accepted")
	}
	want := []string{
		"a.yaml:3: redundant: is now called redundantReset",
		"a.yaml:4: face: is now called presentation",
		"a.yaml:5: face.rules: is now called rejectRules",
		"a.yaml:6: face.rules[0].of: is now called resourceType",
		"a.yaml:6: face.rules[0].says: is now called message",
		"a.yaml:7: ipmi.faults.padded: is now called paddedKeys",
		"a.yaml:8: protocol.thin: is now called expandOmits",
		"a.yaml:9: shifts: is now called nicsRenumberAtBoot",
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Parse error lacks %q:\n%v", w, err)
		}
	}
}
