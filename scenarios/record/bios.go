package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/fixtures"
)

var (
	registryID = regexp.MustCompile(`^([A-Za-z0-9]+)\.v?([0-9]+)[._]([0-9]+)[._]([0-9]+)$`)
)

// flatAttributes returns the settings of a BMC that has them beside the other properties of
// Bios, as iLO 4 does: those that its registry names.
func (d *deriver) flatAttributes(bios resource) resource {
	all := resource{}
	for _, at := range d.capture.OfType("AttributeRegistry") {
		entries := d.resource(at).sub("RegistryEntries")
		for _, x := range entries.objects("Attributes") {
			name := x.str("AttributeName")
			if v, there := bios[name]; there {
				all[name] = v
			}
		}
	}
	return all
}

// registry derives the registry of BIOS attributes from the one that the BMC
// serves, or, if it serves none, from the present settings. It returns nil if
// there are no settings.
func (d *deriver) registry(p *machine.Profile) *firmware.Registry {
	bios := d.resource(d.link(d.system, "Bios"))
	current := bios.sub("Attributes")
	if len(current) == 0 {
		current = d.flatAttributes(bios)
	}
	if len(current) == 0 {
		return nil
	}
	id, version := "BiosAttributeRegistry.v1_0_0", "1.0.0"
	if m := registryID.FindStringSubmatch(bios.str("AttributeRegistry")); m != nil {
		id, version = fmt.Sprintf("%s.v%s_%s_%s", m[1], m[2], m[3], m[4]), fmt.Sprintf("%s.%s.%s", m[2], m[3], m[4])
	}
	registries := d.capture.OfType("AttributeRegistry") // the first is read
	if len(registries) > 0 {                            // its URI tells whether the ID has this form or 1.2.3
		if m := registryID.FindStringSubmatch(strings.TrimSuffix(last(registries[0]), ".json")); m != nil {
			id = m[0]
		}
	}
	r := &firmware.Registry{ID: id, Name: "BIOS Attribute Registry", Version: version, Language: "en", Owner: cmp.Or(p.Manufacturer, "Unknown")}
	var entries resource
	if len(registries) > 0 {
		x := d.resource(registries[0])
		entries = x.sub("RegistryEntries")
		r.Name, r.Language, r.Owner = cmp.Or(x.str("Name"), r.Name), cmp.Or(x.str("Language"), r.Language), cmp.Or(x.str("OwningEntity"), r.Owner)
	}
	paths := map[string]bool{}
	for _, m := range entries.objects("Menus") {
		path := m.str("MenuPath")
		if strings.HasPrefix(path, "./") && !paths[path] && m.str("MenuName") != "" {
			paths[path] = true
			r.Menus = append(r.Menus, firmware.Menu{Name: m.str("MenuName"), Path: path, Display: cmp.Or(m.str("DisplayName"), m.str("MenuName")), Order: m.int("DisplayOrder")})
		}
	}
	left := 0
	known := map[string]bool{}
	for _, x := range entries.objects("Attributes") {
		a, ok := d.attribute(p, x, current[x.str("AttributeName")])
		if !ok || known[a.Name] || !valid(r, a) {
			left++
			continue
		}
		known[a.Name] = true
		if !paths[a.Menu] {
			a.Menu = ""
		}
		r.Attributes = append(r.Attributes, a)
	}
	for _, name := range slices.Sorted(maps.Keys(current)) {
		if known[name] || entries != nil {
			continue
		}
		if a, ok := guessAttribute(name, current[name]); ok && valid(r, a) {
			r.Attributes = append(r.Attributes, a)
		}
	}
	if left > 0 {
		d.note("BIOS: left out %d attributes: the emulator cannot represent their registry entries", left)
	}
	for i, a := range r.Attributes {
		if a.Order == i+1 {
			r.Attributes[i].Order = 0 // the place in the list implies it
		}
	}
	for i, m := range r.Menus {
		if m.Order == i+1 {
			r.Menus[i].Order = 0
		}
	}
	d.dependencies(r, entries)
	effects(r, p)
	return r
}

// attribute converts an entry of an attribute registry. It returns false if
// the emulator cannot represent it.
func (d *deriver) attribute(p *machine.Profile, x resource, is any) (firmware.Attribute, bool) {
	flag := func(name string) bool { b, _ := x[name].(bool); return b }
	a := firmware.Attribute{
		Name: x.str("AttributeName"), Type: firmware.Type(x.str("Type")), Display: cmp.Or(x.str("DisplayName"), x.str("AttributeName")),
		Help: x.str("HelpText"), Warning: x.str("WarningText"), Menu: x.str("MenuPath"), Order: x.int("DisplayOrder"),
		Step: int64(x.int("ScalarIncrement")), ReadOnly: flag("ReadOnly"), Immutable: flag("Immutable"), Hidden: flag("Hidden"),
		GrayOut: flag("GrayOut"), Unique: flag("IsSystemUniqueProperty"), ResetRequired: flag("ResetRequired"),
	}
	a.Pattern, _ = x["ValueExpression"].(string)
	integer := func(name string) *int64 {
		if v, ok := x[name].(float64); ok {
			n := int64(v)
			return &n
		}
		return nil
	}
	a.Lower, a.Upper, a.MinLength, a.MaxLength = integer("LowerBound"), integer("UpperBound"), integer("MinLength"), integer("MaxLength")
	for _, v := range x.objects("Value") {
		if name := v.str("ValueName"); name != "" {
			a.Values = append(a.Values, firmware.Choice{Name: name, Display: cmp.Or(v.str("ValueDisplayName"), name)})
		}
	}
	if a.Fact = d.fact(p, a, is); a.Fact != "" {
		a.ReadOnly = true
		return a, true
	}
	def := x["DefaultValue"]
	if def == nil && a.Type != firmware.PasswordType {
		def = is // the registry has no default: the present value is taken
	}
	var ok bool
	a.Default, ok = firmware.ValueOf(def)
	return a, ok
}

// fact returns the name of the machine's property that a read-only attribute
// shows; "" if it shows none.
func (d *deriver) fact(p *machine.Profile, a firmware.Attribute, is any) string {
	text := fmt.Sprint(is)
	if !a.ReadOnly || is == nil || text == "" {
		return ""
	}
	s := d.resource(d.system)
	for _, f := range []struct{ fact, value string }{
		{"serial", s.str("SerialNumber")}, {"uuid", s.str("UUID")}, {"biosVersion", p.BIOS.Version}, {"model", p.Model}, {"manufacturer", p.Manufacturer},
		{"processorModel", p.Processors.Model}, {"memoryMiB", fmt.Sprint(p.MemoryMiB)},
	} {
		if f.value != "" && strings.EqualFold(text, f.value) && (a.Type == firmware.IntegerType) == (f.fact == "memoryMiB") {
			return f.fact
		}
	}
	if a.Type == firmware.IntegerType && a.Immutable && strings.Contains(strings.ToLower(a.Name), "processor") && text == fmt.Sprint(p.Processors.Sockets) {
		return "processors"
	}
	return ""
}

// guessAttribute derives an attribute from its value alone, for a BMC without
// a registry.
func guessAttribute(name string, is any) (firmware.Attribute, bool) {
	a := firmware.Attribute{Name: name, Display: name, ResetRequired: true, Type: firmware.StringType}
	v, ok := firmware.ValueOf(is)
	if !ok {
		return a, false
	}
	a.Default = v
	switch x := is.(type) {
	case bool:
		a.Type = firmware.BooleanType
	case float64:
		a.Type = firmware.IntegerType
		low, high := int64(min(0, x)), int64(max(1<<31-1, x))
		a.Lower, a.Upper, a.Step = &low, &high, 1
	case nil:
		a.Type = firmware.PasswordType
	default:
		low, high := int64(0), int64(255)
		a.MinLength, a.MaxLength = &low, &high
	}
	return a, true
}

// valid reports whether a registry accepts an attribute.
func valid(r *firmware.Registry, a firmware.Attribute) bool {
	a.Menu = ""
	one := firmware.Registry{ID: r.ID, Name: r.Name, Version: r.Version, Language: r.Language, Owner: r.Owner, Attributes: []firmware.Attribute{a}}
	return parses(&one)
}

// parses reports whether the emulator reads a registry without an error.
func parses(r *firmware.Registry) bool {
	b, err := yamlfile.Write(r)
	if err != nil {
		return false
	}
	_, err = firmware.ParseRegistry("registry.yaml", b, nil)
	return err == nil
}

// dependencies adds the dependencies that the registry accepts.
func (d *deriver) dependencies(r *firmware.Registry, entries resource) {
	var all []firmware.Dependency
	for _, x := range entries.objects("Dependencies") {
		m := x.sub("Dependency")
		to, ok := firmware.ValueOf(m["MapToValue"])
		dep := firmware.Dependency{For: x.str("DependencyFor"), Set: firmware.Target{Attribute: m.str("MapToAttribute"), Property: firmware.Property(m.str("MapToProperty")), Value: to}}
		if x.str("Type") != "Map" || !ok {
			continue
		}
		for _, f := range m.objects("MapFrom") {
			v, ok := firmware.ValueOf(f["MapFromValue"])
			if !ok {
				dep.If = nil
				break
			}
			dep.If = append(dep.If, firmware.Condition{
				Term: firmware.Term(f.str("MapTerms")), Attribute: f.str("MapFromAttribute"), Property: firmware.Property(f.str("MapFromProperty")),
				Is: firmware.Relation(f.str("MapFromCondition")), Value: v,
			})
		}
		if len(dep.If) > 0 {
			dep.If[0].Term = ""
			all = append(all, dep)
		}
	}
	before := len(all)
	r.Dependencies = acceptedDependencies(r, nil, all)
	if n := before - len(r.Dependencies); n > 0 {
		d.note("BIOS: left out %d dependencies: the emulator cannot represent them", n)
	}
}

// acceptedDependencies returns have and those of more that the registry
// accepts beside it. It bisects, so that a few wrong ones cost little.
func acceptedDependencies(r *firmware.Registry, have, more []firmware.Dependency) []firmware.Dependency {
	if len(more) == 0 {
		return have
	}
	try := *r
	try.Dependencies = slices.Concat(have, more)
	if parses(&try) {
		return try.Dependencies
	}
	if len(more) == 1 {
		return have
	}
	half := len(more) / 2
	return acceptedDependencies(r, acceptedDependencies(r, have, more[:half]), more[half:])
}

// namedEffects lists vendors' names of settings that change a server, with the
// value and its effect.
var namedEffects = []struct {
	name, value *regexp.Regexp
	does        firmware.Does
	as          string
}{
	{regexp.MustCompile(`(?i)^(boot_?mode|bootmode)$`), regexp.MustCompile(`(?i)^uefi`), firmware.BootMode, "UEFI"},
	{regexp.MustCompile(`(?i)^(boot_?mode|bootmode)$`), regexp.MustCompile(`(?i)^(bios|legacy|legacybios)`), firmware.BootMode, "Legacy"},
	{regexp.MustCompile(`(?i)^(logicalproc|proc_?hyper_?threading|hyperthreading|processors_hyperthreading)$`), regexp.MustCompile(`(?i)^disabled?$`), firmware.OneThread, ""},
	{regexp.MustCompile(`(?i)^(procvirtualization|proc_?vt|vtforcpu|intel_?vt|processors_vt|svm(_?mode)?)$`), regexp.MustCompile(`(?i)^disabled?$`), firmware.NoVirtual, ""},
	{regexp.MustCompile(`(?i)^(sriovglobalenable|sriov)$`), regexp.MustCompile(`(?i)^disabled?$`), firmware.NoSRIOV, ""},
}

// effects adds the effects of settings: those that a built-in registry has for
// a setting of the same name, else those of namedEffects.
func effects(r *firmware.Registry, p *machine.Profile) {
	byName := map[string]firmware.Attribute{}
	for _, a := range r.Attributes {
		byName[a.Name] = a
	}
	acts, done := map[firmware.Does]bool{}, map[firmware.Effect]bool{}
	add := func(e firmware.Effect) {
		a, ok := byName[e.Attribute]
		one := firmware.Registry{
			ID: r.ID, Name: r.Name, Version: r.Version, Language: r.Language, Owner: r.Owner,
			Attributes: []firmware.Attribute{a}, Effects: []firmware.Effect{e},
		}
		one.Attributes[0].Menu = ""
		if ok && !a.ReadOnly && !done[e] && parses(&one) {
			done[e], acts[e.Does] = true, true
			r.Effects = append(r.Effects, e)
		}
	}
	for _, e := range builtInEffects(p) {
		add(e)
	}
	for _, a := range r.Attributes {
		for _, d := range namedEffects {
			if a.Type != firmware.Enumeration || acts[d.does] || !d.name.MatchString(a.Name) {
				continue
			}
			for _, v := range a.Values {
				if d.value.MatchString(v.Name) {
					r.Effects = append(r.Effects, firmware.Effect{Attribute: a.Name, Value: firmware.Text(v.Name), Does: d.does, As: d.as})
				}
			}
		}
	}
}

// builtInEffects returns the effects in all built-in registries, for the parts
// of a model.
func builtInEffects(p *machine.Profile) []firmware.Effect {
	files, err := fs.Glob(fixtures.Profiles, "registries/*.yaml")
	if err != nil {
		return nil
	}
	parts := map[string]int{"nic": len(p.NICs), "controller": len(p.Storage), "socket": p.Processors.Sockets, "module": p.Memory.Modules}
	var out []firmware.Effect
	for _, name := range files {
		raw, err := fs.ReadFile(fixtures.Profiles, name)
		if err != nil {
			continue
		}
		var doc struct {
			Effects []map[string]any `yaml:"effects"`
		}
		if yaml.Unmarshal(raw, &doc) != nil {
			continue
		}
		raw, err = json.Marshal(doc.Effects)
		var all []firmware.Effect
		if err != nil || json.Unmarshal(raw, &all) != nil {
			continue
		}
		for _, e := range all {
			count := 1
			if e.Each != "" {
				count = parts[e.Each]
			}
			for n := range count {
				one, number := e, fmt.Sprint(n+1)
				one.Attribute, one.On, one.Each = strings.ReplaceAll(e.Attribute, "{n}", number), strings.ReplaceAll(e.On, "{n}", number), ""
				out = append(out, one)
			}
		}
	}
	return out
}
