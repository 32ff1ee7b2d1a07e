package redfish

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	faultkind "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/dialect/ibmc"
	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/dialect/ilo"
	"github.com/metalab-dev/metalab/emulator/dialect/irmc"
	"github.com/metalab-dev/metalab/emulator/dialect/megarac"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
	"github.com/metalab-dev/metalab/emulator/dialect/supermicro"
	"github.com/metalab-dev/metalab/emulator/dialect/xcc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
	"github.com/metalab-dev/metalab/fixtures"
)

// modelsOf is a dialect with the profiles of its servers.
type modelsOf struct {
	record   *dialect.Record
	profiles []string
}

// vendors lists the dialects of vendors. emulator/rack, which imports this package, has
// them, too: TestVendorsHaveEveryProfile fails when one is missing.
var vendors = withProfiles(
	&openbmc.Record, &irmc.S5, &irmc.S6, &idrac.Eight, &idrac.NineFive, &idrac.Nine, &idrac.Ten, &ibmc.Record, &xcc.First, &xcc.Second,
	&supermicro.X11, &supermicro.X13, &megarac.Record, &ilo.ILO4, &ilo.ILO5, &ilo.ILO6, &ilo.ILO7,
)

// withProfiles returns dialects with the built-in profiles that name them.
func withProfiles(records ...*dialect.Record) (all []modelsOf) {
	profiles := builtInProfiles()
	for _, r := range records {
		all = append(all, modelsOf{r, profiles[r.Name]})
	}
	return all
}

var dialectOfProfile = regexp.MustCompile(`(?m)^dialect: (\S+)`)

// builtInProfiles returns the names of the built-in profiles, sorted, by their dialects.
func builtInProfiles() map[string][]string {
	out := map[string][]string{}
	files, _ := fs.Glob(fixtures.Profiles, "profiles/*.yaml") // embedded
	for _, file := range files {
		text, _ := fs.ReadFile(fixtures.Profiles, file)
		if m := dialectOfProfile.FindSubmatch(text); m != nil {
			out[string(m[1])] = append(out[string(m[1])], strings.TrimSuffix(path.Base(file), ".yaml"))
		}
	}
	return out
}

func TestVendorsHaveEveryProfile(t *testing.T) {
	left := builtInProfiles()
	delete(left, generic.Record.Name)
	for _, v := range vendors {
		if len(v.profiles) == 0 {
			t.Errorf("no built-in profile names the dialect %s", v.record.Name)
		}
		delete(left, v.record.Name)
	}
	for name, profiles := range left {
		t.Errorf("vendors has no dialect %s, which %v name", name, profiles)
	}
}

// newVendorHost returns a service and its host, a server whose BMC has a vendor's dialect.
func newVendorHost(t testing.TB, d *dialect.Record, profile string) (*Service, *host) {
	t.Helper()
	if err := errors.Join(d.Validate(), vendor.Check(d)); err != nil {
		t.Fatal(err)
	}
	h := newHostOf(t, profile)
	h.d = d
	h.bmc = bmc.New(&d.BMC, accounts, nil)
	h.bmcChanged()
	return newService(t, h), h
}

// TestEveryDialectHasValidLinksAndSchemas follows every link of every vendor's tree. Each
// resource shows the URI at which it was read, no body has a URI that the presentation
// maps or hides, and bodies conform to DMTF's schemas except where the record says so.
func TestEveryDialectHasValidLinksAndSchemas(t *testing.T) {
	for _, vendor := range vendors {
		used, profiles := map[int]bool{}, vendor.profiles
		if raced { // walks take long with the race detector, and the models of a dialect differ in data only
			profiles = profiles[:1]
		}
		for _, profile := range profiles {
			t.Run(vendor.record.Name+" "+profile, func(t *testing.T) {
				s, h := newVendorHost(t, vendor.record, profile)
				if h.machine.View().Profile.Dialect != vendor.record.Name {
					t.Errorf("the profile's dialect is %s", h.machine.View().Profile.Dialect)
				}
				for _, state := range states {
					if state.name == "off" || state.name == "running, all set" || state.name == "tasks" {
						state.make(t, h)
					}
				}
				inUse(t, h, vendor.record)
				walkVendor(t, s, vendor.record, used)
			})
		}
		for i, b := range vendor.record.Deviations {
			if _, err := openBundle(); err == nil && !used[i] {
				t.Errorf("%s: the record says that %s/%s breaks the standard, and it does not", vendor.record.Name, b.ResourceType, b.Path)
			}
		}
	}
}

// inUse brings a BMC into the state of one in use: it has sessions, virtual media to boot
// from, a subscription, volumes, and pending settings.
func inUse(t *testing.T, h *host, d *dialect.Record) {
	t.Helper()
	for _, a := range accounts[:2] {
		_, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: a, Token: "hidden-9" + a.Name, From: "192.0.2.9"})
		must(t, err)
	}
	_, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: d.BMC.Slots[0].ID, Image: "https://images.test/a/live.iso"})
	must(t, err)
	_, err = h.ApplyBMC(t.Context(), bmc.Subscribe{Subscription: bmc.Subscription{Destination: "https://hooks.test/a", Context: "c"}})
	must(t, err)
	if slices.Contains(d.BootTargets, machine.Cd) {
		must(t, h.Apply(t.Context(), machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.UEFI}}))
	}
	for _, c := range h.machine.View().Storage.Controllers() {
		if c.RAID != nil {
			must(t, h.Apply(t.Context(), machine.Storage{Command: storage.CreateVolume{Controller: c.ID, Type: storage.RAID1}}))
		}
	}
	if model := h.machine.View().Profile.Firmware.Model; model != nil {
		for _, a := range model.Registry().Attributes {
			for _, v := range a.Values { // the first settable value
				c := setting(a.Name, v.Name)
				if !a.ReadOnly && c.Settings[0].Value != a.Default && h.Apply(t.Context(), machine.Firmware{Command: c}) == nil {
					return
				}
			}
		}
		t.Error("no setting can be changed")
	}
}

func walkVendor(t *testing.T, s *Service, d *dialect.Record, used map[int]bool) {
	t.Helper()
	var check *schemaSet
	if _, err := openBundle(); err == nil {
		check = newSchemas(t)
	} else {
		t.Logf("bodies are not checked against DMTF's schemas: %v", err)
	}
	todo, seen := []string{"/redfish/v1/"}, map[string]bool{}
	f := s.vendors.Of(d)
	allowed := func(of, path string) bool {
		i := slices.IndexFunc(d.Deviations, func(b dialect.Deviation) bool {
			return b.ResourceType == of && (path == b.Path || strings.HasPrefix(path, b.Path+"/"))
		})
		if i >= 0 {
			used[i] = true
		}
		return i >= 0
	}
	for len(todo) > 0 {
		at, _, _ := strings.Cut(todo[0], "#")
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		w := call(t, s, "admin", "GET", at, "")
		if w.Code != http.StatusOK && (w.Code != http.StatusAccepted || !d.Tasks.LocationIsTask) {
			t.Errorf("%s", shape("GET", at, "", w))
			continue
		}
		body := decoded(t, w)
		odata, _ := body["@odata.type"].(string)
		if odata == "" {
			continue // checkTypes compares its type with the links to it
		}
		schema := strings.TrimPrefix(odata[:max(0, strings.LastIndexByte(odata, '.'))], "#")
		of := resource.TypeName(schema)
		if body["@odata.id"] != at && !allowed(of, "@odata.id") {
			t.Errorf("%s: @odata.id = %v", at, body["@odata.id"])
		}
		last := strings.TrimSuffix(at, "/")[strings.LastIndexByte(strings.TrimSuffix(at, "/"), '/')+1:]
		if id, ok := body["Id"]; ok && id != last && at != "/redfish/v1/" && !allowed(of, "Id") {
			t.Errorf("%s: Id = %v, want %s", at, id, last)
		}
		if check != nil && check.has(schema) {
			for _, bad := range check.faults(t, schema, w.Body.Bytes()) {
				if !allowed(of, bad.path) {
					t.Errorf("%s: %s: %s", at, bad.path, bad.text)
				}
			}
		}
		vendor.MapTexts(body, func(text string) string {
			path, _, _ := strings.Cut(text, "#")
			if strings.HasPrefix(path, "/redfish/v1/") && !strings.Contains(path, "$metadata") {
				if away := strings.TrimRight(f.URI(path), "/") != strings.TrimRight(path, "/"); away && f.Route("GET", &url.URL{Path: path}) == nil {
					t.Errorf("%s leaks %s", at, text)
				}
			}
			return text
		})
		for _, text := range untypedOEM(body, "") {
			if !typeless[d.Name] {
				t.Errorf("%s: %s has no @odata.type (DSP0266, OEM property format and content)", at, text)
			}
		}
		if listsApplyTimes(body) && !offersOperations(w.Header().Get("Allow"), body) {
			t.Errorf("%s: lists apply times, and takes no operation that has one", at)
		}
		resources, targets := links(body)
		todo = append(todo, resources...)
		for _, target := range targets {
			if w := call(t, s, "admin", "OPTIONS", target, ""); w.Code >= 300 || !strings.Contains(w.Header().Get("Allow"), "POST") {
				t.Errorf("%s: its action's target is nothing: %s", at, shape("OPTIONS", target, "", w))
			}
		}
	}
	if check != nil {
		checkTypes(t, s, d, slices.Sorted(maps.Keys(seen)), allowed)
	}
}

// listsApplyTimes reports whether a resource, or an action, lists values of
// @Redfish.OperationApplyTime.
func listsApplyTimes(o resource.Object) bool {
	support, _ := o["@Redfish.OperationApplyTimeSupport"].(resource.Object)
	values, _ := support["SupportedValues"].([]any)
	return len(values) > 0
}

// offersOperations reports whether a resource takes an operation with an apply time: a
// create, a delete or an action (DSP0266, "Operation apply time").
func offersOperations(allow string, body resource.Object) bool {
	if strings.Contains(allow, "POST") || strings.Contains(allow, "DELETE") {
		return true
	}
	actions, _ := body["Actions"].(resource.Object)
	for _, a := range actions {
		if o, ok := a.(resource.Object); ok && listsApplyTimes(o) {
			return true
		}
	}
	return false
}

// typeless has the dialects of whose OEM objects no source shows the types.
var typeless = map[string]bool{"ibmc": true, "irmc-s5": true, "irmc-s6": true, "supermicro-x11": true}

// untypedOEM returns the paths of the vendors' objects in Oem that lack @odata.type.
func untypedOEM(value any, path string) []string {
	var all []string
	switch x := value.(type) {
	case resource.Object:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			at := strings.TrimPrefix(path+"/"+name, "/")
			all = append(all, untypedOEM(x[name], at)...)
			if name != "Oem" || strings.HasSuffix(path, "Actions") {
				continue
			}
			vendors, _ := x[name].(resource.Object)
			for _, vendor := range slices.Sorted(maps.Keys(vendors)) {
				if object, ok := vendors[vendor].(resource.Object); ok && object["@odata.type"] == nil {
					all = append(all, at+"/"+vendor)
				}
			}
		}
	case []any:
		for i, element := range x {
			all = append(all, untypedOEM(element, fmt.Sprint(path, "/", i))...)
		}
	}
	return all
}

// fault is a violation of a schema in a body.
type fault struct{ path, text string }

// has reports whether DMTF publishes a schema.
func (s *schemaSet) has(schema string) bool {
	return s.b.files[schemaFolder+schema+".json"] != nil
}

// faults returns the schema violations of a body.
func (s *schemaSet) faults(t testing.TB, schema string, body []byte) []fault {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.compiled[schema]
	if c == nil {
		var err error
		if c, err = s.compiler.Compile(resource.JSONSchema(schema)); err != nil {
			t.Fatalf("schema %s: %v", schema, err)
		}
		s.compiled[schema] = c
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	must(t, err)
	var out []fault
	var gather func(e *jsonschema.ValidationError)
	gather = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			text := fmt.Sprint(e.ErrorKind)
			at := strings.Join(e.InstanceLocation, "/")
			if extra, ok := e.ErrorKind.(*faultkind.AdditionalProperties); ok {
				for _, name := range extra.Properties {
					out = append(out, fault{strings.TrimPrefix(at+"/"+name, "/"), text})
				}
				return
			}
			out = append(out, fault{at, text})
		}
		for _, cause := range e.Causes {
			gather(cause)
		}
	}
	var invalid *jsonschema.ValidationError
	if errors.As(c.Validate(value), &invalid) {
		gather(invalid)
	}
	return out
}
