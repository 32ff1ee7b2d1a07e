package record

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/natural"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// dialect returns the file of a dialect with the differences of the BMC from a
// built-in dialect; nil when there are none. It serves the model twice: first to
// find resources with other URIs, then to compare bodies.
func (d *deriver) dialect(ctx context.Context, p *machine.Profile, of *Recording, base *dialect.Record) (*file.File, error) {
	derived := *base
	derived.Name = of.Name
	f := &file.File{Name: of.Name, Base: base, WithoutQuirks: &derived}
	on := d.resource(d.system).str("PowerState") != "Off"
	shown, err := render(ctx, p, of.Registry, f, on)
	if err != nil {
		return nil, err
	}
	if d.applyFields(&derived, newDeriver(shown)) {
		if shown, err = render(ctx, p, of.Registry, f, on); err != nil {
			return nil, err
		}
	}
	if mappings := d.uriMappings(shown, &derived); len(mappings) > 0 {
		derived.Presentation.URIMappings = append(mappings, base.Presentation.URIMappings...)
		if shown, err = render(ctx, p, of.Registry, f, on); err != nil {
			return nil, err
		}
	}
	c := &comparison{deriver: d, shown: shown, r: &derived}
	if d.capture.Incomplete == "" {
		derived.Presentation.Hidden = append(slices.Clone(base.Presentation.Hidden), c.hidden()...)
	}
	derived.Presentation.Transforms = append(slices.Clone(base.Presentation.Transforms), c.transforms()...)
	derived.OEM.Resources = append(c.oemResources(), base.OEM.Resources...)
	same := derived
	same.Name = base.Name
	if equalData(&same, base) {
		return nil, nil
	}
	return f, nil
}

// equalData reports whether two records with the same functions are equal.
func equalData(a, b *dialect.Record) bool {
	x, y := *a, *b
	if len(x.OEM.Resources) != len(y.OEM.Resources) {
		return false
	}
	x.OEM, y.OEM = dialect.OEM{}, dialect.OEM{}
	return reflect.DeepEqual(withNilLists(x), withNilLists(y))
}

// withNilLists returns a record whose empty lists are nil.
func withNilLists(r dialect.Record) dialect.Record {
	if len(r.Presentation.URIMappings) == 0 {
		r.Presentation.URIMappings = nil
	}
	if len(r.Presentation.Transforms) == 0 {
		r.Presentation.Transforms = nil
	}
	if len(r.Presentation.Hidden) == 0 {
		r.Presentation.Hidden = nil
	}
	return r
}

// uriMappings returns the mappings of standard URIs to those of the BMC.
func (d *deriver) uriMappings(shown *capture.Capture, r *dialect.Record) []dialect.URIMapping {
	there := newDeriver(shown)
	if _, err := there.profile(); err != nil {
		return nil
	}
	type move struct{ from, to string } // addresses
	var done []move
	moved := func(at string) string {
		longest := move{}
		for _, m := range done {
			if isUnder(at, m.from) && len(m.from) > len(longest.from) {
				longest = m
			}
		}
		return longest.to + strings.TrimPrefix(at, longest.from)
	}
	var out []dialect.URIMapping
	trees := slices.SortedFunc(maps.Keys(d.locations), func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), natural.Compare(a, b))
	})
	for _, tree := range trees {
		is, was := d.locations[tree], there.locations[tree]
		if was == "" || moved(was) == is || strings.ContainsAny(is, "{}") {
			continue
		}
		done = append(done, move{was, is})
		out = append(out, dialect.URIMapping{From: tree, To: is})
	}
	slices.Reverse(out) // those below others first
	return out
}

// comparison compares what the BMC shows with what the lab shows in its place.
type comparison struct {
	*deriver
	shown *capture.Capture
	r     *dialect.Record
}

// hidden returns the URIs that the BMC lacks.
func (c *comparison) hidden() []string {
	var out []string
	for _, at := range slices.Sorted(maps.Keys(c.shown.Resources)) {
		status, refused := c.capture.Refused[at]
		if c.capture.Resources[at] != nil || refused && status != 404 || at == "" || strings.Contains(at, "{") {
			continue
		}
		tree := toStandardURI(c.r, at)
		if !slices.ContainsFunc(out, func(s string) bool { return isUnder(tree, s) }) {
			out = append(out, tree)
		}
	}
	return out
}

// maxOEMResources bounds the resources outside the standard tree that a
// dialect stores.
const maxOEMResources = 3000

// oemResources returns the resources that only the BMC has, with their bodies.
func (c *comparison) oemResources() []dialect.Resource {
	var out []dialect.Resource
	for _, at := range slices.SortedFunc(maps.Keys(c.capture.Resources), natural.Compare) {
		body := c.capture.Resources[at]
		kind, _ := body["@odata.type"].(string)
		if _, file := body["RegistryEntries"]; file || c.shown.Resources[at] != nil || kind == "" || strings.ContainsAny(at, "{}") || len(out) == maxOEMResources {
			continue
		}
		o := dialect.Resource{URI: at, Type: strings.TrimPrefix(kind, "#"), Name: cmp.Or(resource(body).str("Name"), last(at))}
		for _, name := range slices.Sorted(maps.Keys(body)) {
			if ignoredProperties[name] || name == "@odata.type" || name == "Name" || strings.Contains(name, "/") {
				continue
			}
			o.Set = append(o.Set, dialect.PropertyRule{Path: name, Value: c.toStandardURIs(body[name])})
		}
		out = append(out, o)
	}
	return out
}

// ignoredProperties are properties that a dialect does not set.
var ignoredProperties = map[string]bool{"@odata.id": true, "@odata.etag": true, "@odata.context": true}

// liveProperty matches properties whose values are state of the model, which a
// dialect does not fix.
var liveProperty = regexp.MustCompile(`(?i)^(` + strings.Join([]string{
	"powerstate", "health", "healthrollup", "state", "bootsourceoverride(enabled|target|mode)", "bootnext", "uefitargetbootsourceoverride", "httpbooturi",
	"reading(celsius|volts|rpm)?", "reading", "speedrpm", "readingtime", "peakreading.*", "lowestreading.*", "averagereading", "lifetimereading", "apparentva", "powerfactor",
	"datetime(localoffset)?", "lastreset(time|cause)", "poweredontime.*", "attributes", "image", "imagename", "inserted", "connectedvia", "writeprotected", "transfer(method|protocoltype)",
	"linkstatus", "linkstate", "currentspeedgbps", "speedmbps", "signaldetected", "activewidth", "indicatorled", "locationindicatoractive", "bootprogress",
	"laststate.*", "oemlaststate", "operations", "members@odata\\.count", "timestamp", "created", "modified", "lastused.*", "percentcomplete", "volumes", "volumes@odata\\.count",
	"bootorder", "aliasbootorder", "secureboot(currentboot|enable|mode)", "powerconsumedwatts", "powermetrics", "averageconsumedwatts", "m(ax|in)consumedwatts", "intervalinmin",
	"allocation", "validnotafter", "validnotbefore", "hotsparetype", "statusindicator", "encryptionstatus", "hostwatchdogtimer", "ipmi", "port", "address(origin)?", "subnetmask", "gateway",
	"powerlimit(in)?watts", "limitinwatts", "setpoint", "statechangetime", "energykwh", "powerwatts", "temperaturecelsius", "fanspeedspercent", "metrics?", "poweronhours", "measurements?",
	"(last|line)?(power)?(in|out)put(power)?(watts|voltage|frequencyhz|energykwh|currentamps)?", "powerrequestedwatts", "poweravailablewatts", "predictedmedialifeleftpercent",
}, "|") + `)$`)

// placeholder matches the placeholders of capture.Scrub.
var placeholder = regexp.MustCompile(`ANON\d{6}|00000000-0000-4000-8000-\d{12}|02[:-]00[:-]00[:-]00[:-]|0200000000|30[:-]00[:-]00[:-]00|192\.0\.2\.|anon-(host|tag|person)-\d|2001:db8::|3000000000|removed`)

// volatileCollection matches collections whose members come and go.
var volatileCollection = regexp.MustCompile(`^(LogEntry|Session|Task|Job|EventDestination|ManagerAccount|Volume|Certificate|MetricReport|Signature|JsonSchemaFile|MessageRegistryFile|License)Collection$`)

// difference is one difference of resources of one type.
type difference struct {
	kind, path string
	remove     bool
	value      any
	text       string // the value, to be compared
	at         []string
}

// transforms returns the differences of the resources that both show.
func (c *comparison) transforms() []dialect.Transform {
	var all []*difference
	byText := map[string]*difference{}
	total := map[string]int{}
	for _, at := range slices.SortedFunc(maps.Keys(c.shown.Resources), natural.Compare) {
		was, is := c.shown.Resources[at], c.capture.Resources[at]
		kind := capture.Type(was)
		if kind == "" || strings.HasSuffix(kind, "Metrics") || kind == "MetricReport" || // measurements
			at != capture.Root && at == "" {
			continue
		}
		total[kind]++
		if is == nil {
			total[kind]-- // it is hidden
			continue
		}
		c.compare(kind, "", is, was, func(d difference) {
			raw, _ := json.Marshal(d.value)
			d.kind, d.text = kind, string(raw)
			key := fmt.Sprintf("%s\x00%s\x00%s\x00%t", kind, d.path, d.text, d.remove) // null is a value
			if byText[key] == nil {
				byText[key] = &d
				all = append(all, &d)
			}
			byText[key].at = append(byText[key].at, toStandardURI(c.r, at))
		})
	}
	// One transform for each type, and one for each URI that differs from the
	// others of its type.
	index := map[string]int{}
	var out []dialect.Transform
	for _, d := range all {
		places := d.at
		if len(d.at) == total[d.kind] {
			places = []string{""}
		}
		for _, at := range places {
			key := d.kind + " " + at
			i, ok := index[key]
			if !ok {
				i = len(out)
				index[key] = i
				out = append(out, dialect.Transform{ResourceType: d.kind, URI: at})
			}
			if d.remove {
				out[i].Remove = append(out[i].Remove, d.path)
			} else {
				out[i].Set = append(out[i].Set, dialect.PropertyRule{Path: d.path, Value: d.value})
			}
		}
	}
	return out
}

// compare reports the differences of two bodies.
func (c *comparison) compare(kind, path string, is, was map[string]any, report func(difference)) {
	names := map[string]bool{}
	for n := range is {
		names[n] = true
	}
	for n := range was {
		names[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		a, has := is[n]
		b, had := was[n]
		at := strings.TrimPrefix(path+"/"+n, "/")
		x, isObject := a.(map[string]any)
		y, wasObject := b.(map[string]any)
		switch {
		case ignoredProperties[n] || strings.Contains(n, "/"):
		case !has:
			report(difference{path: at, remove: true})
		case n == "Members" && (volatileCollection.MatchString(kind) || sameSet(a, b)):
		case !had:
			report(difference{path: at, value: c.toStandardURIs(a)})
		case liveProperty.MatchString(n):
		case isObject && wasObject:
			c.compare(kind, at, x, y, report)
		case !equal(a, b):
			report(difference{path: at, value: c.toStandardURIs(a)})
		}
	}
}

// sameSet reports whether two lists have the same members in any order: the
// lab has its own order.
func sameSet(a, b any) bool {
	keys := func(v any) []string {
		var out []string
		for _, m := range list(v) {
			o, _ := m.(map[string]any)
			out = append(out, strings.TrimRight(resource(o).str("@odata.id"), "/"))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(keys(a), keys(b))
}

// equal reports whether two values are equal, apart from live properties and
// placeholders.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for n := range y {
			if _, has := x[n]; !has && !ignoredProperties[n] {
				return false
			}
		}
		for n := range x {
			if ignoredProperties[n] && n != "@odata.id" {
				continue
			}
			if v, has := y[n]; !has || !liveProperty.MatchString(n) && !equal(x[n], v) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		if ok && (placeholder.MatchString(x) || placeholder.MatchString(y)) {
			return true
		}
		return ok && strings.TrimRight(x, "/") == strings.TrimRight(y, "/")
	}
	return reflect.DeepEqual(a, b)
}

// toStandardURIs returns a value with standard URIs in place of the BMC's.
func (c *comparison) toStandardURIs(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for n, below := range x {
			if !ignoredProperties[n] || n == "@odata.id" {
				out[n] = c.toStandardURIs(below)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = c.toStandardURIs(x[i])
		}
		return out
	case string:
		if !strings.HasPrefix(x, capture.Root) {
			return x
		}
		at, tail := x, ""
		if i := strings.IndexAny(at, "?#"); i >= 0 {
			at, tail = at[:i], at[i:]
		}
		return toStandardURI(c.r, strings.TrimRight(at, "/")) + tail
	case float64:
		if x == float64(int(x)) {
			return int(x)
		}
	}
	return v
}
