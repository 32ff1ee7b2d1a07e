package record

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// dialect returns the file of a dialect with the differences of the BMC from a
// built-in dialect; nil when there are none. It serves the model twice: first to
// find resources with other URIs, then to compare bodies.
func (d *deriver) dialect(ctx context.Context, p *machine.Profile, of *Recording, base *dialect.Record) (*file.File, error) {
	says := *base
	says.Name = of.Name
	f := &file.File{Name: of.Name, Base: base, WithoutQuirks: &says}
	on := d.page(d.system).str("PowerState") != "Off"
	shown, err := render(ctx, p, of.Registry, f, on)
	if err != nil {
		return nil, err
	}
	if d.scalars(&says, newDeriver(shown)) {
		if shown, err = render(ctx, p, of.Registry, f, on); err != nil {
			return nil, err
		}
	}
	if moves := d.uriMappings(shown, &says); len(moves) > 0 {
		says.Presentation.URIMappings = append(moves, base.Presentation.URIMappings...)
		if shown, err = render(ctx, p, of.Registry, f, on); err != nil {
			return nil, err
		}
	}
	c := &comparison{deriver: d, shown: shown, r: &says}
	if d.c.Cut == "" {
		says.Presentation.Hidden = append(slices.Clone(base.Presentation.Hidden), c.hidden()...)
	}
	says.Presentation.Transforms = append(slices.Clone(base.Presentation.Transforms), c.transforms()...)
	says.OEM.Resources = append(c.oemResources(), base.OEM.Resources...)
	same := says
	same.Name = base.Name
	if alike(&same, base) {
		return nil, nil
	}
	return f, nil
}

// alike reports whether two records with the same functions are equal.
func alike(a, b *dialect.Record) bool {
	x, y := *a, *b
	if len(x.OEM.Resources) != len(y.OEM.Resources) {
		return false
	}
	x.OEM, y.OEM = dialect.OEM{}, dialect.OEM{}
	return reflect.DeepEqual(tidy(x), tidy(y))
}

// tidy returns a record whose empty lists are nil.
func tidy(r dialect.Record) dialect.Record {
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
			if under(at, m.from) && len(m.from) > len(longest.from) {
				longest = m
			}
		}
		return longest.to + strings.TrimPrefix(at, longest.from)
	}
	var out []dialect.URIMapping
	trees := slices.SortedFunc(maps.Keys(d.places), func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), capture.Natural(a, b))
	})
	for _, tree := range trees {
		is, was := d.places[tree], there.places[tree]
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
	for _, at := range slices.Sorted(maps.Keys(c.shown.Pages)) {
		status, refused := c.c.Refused[at]
		if c.c.Pages[at] != nil || refused && status != 404 || at == "" || strings.Contains(at, "{") {
			continue
		}
		tree := inTree(c.r, at)
		if !slices.ContainsFunc(out, func(s string) bool { return under(tree, s) }) {
			out = append(out, tree)
		}
	}
	return out
}

// maxOEMResources is how many resources that the tree has not a dialect may keep.
const maxOEMResources = 3000

// oemResources returns the resources that only the BMC has, with their bodies.
func (c *comparison) oemResources() []dialect.Resource {
	var out []dialect.Resource
	for _, at := range slices.SortedFunc(maps.Keys(c.c.Pages), capture.Natural) {
		body := c.c.Pages[at]
		kind, _ := body["@odata.type"].(string)
		if _, file := body["RegistryEntries"]; file || c.shown.Pages[at] != nil || kind == "" || strings.ContainsAny(at, "{}") || len(out) == maxOEMResources {
			continue
		}
		o := dialect.Resource{URI: at, Type: strings.TrimPrefix(kind, "#"), Name: or(page(body).str("Name"), last(at))}
		for _, name := range slices.Sorted(maps.Keys(body)) {
			if silent[name] || name == "@odata.type" || name == "Name" || strings.Contains(name, "/") {
				continue
			}
			o.Set = append(o.Set, dialect.PropertyRule{Path: name, Value: c.inTree(body[name])})
		}
		out = append(out, o)
	}
	return out
}

// silent are properties that are no one's to say.
var silent = map[string]bool{"@odata.id": true, "@odata.etag": true, "@odata.context": true}

// live are properties whose values are the model's: what is, not what it is
// like.
var live = regexp.MustCompile(`(?i)^(` + strings.Join([]string{
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

// anonymous are texts that stand for what was taken out.
var anonymous = regexp.MustCompile(`ANON\d{6}|00000000-0000-4000-8000-\d{12}|02[:-]00[:-]00[:-]00[:-]|0200000000|30[:-]00[:-]00[:-]00|192\.0\.2\.|anon-(host|tag|person)-\d|2001:db8::|3000000000|removed`)

// fluid are collections whose members come and go.
var fluid = regexp.MustCompile(`^(LogEntry|Session|Task|Job|EventDestination|ManagerAccount|Volume|Certificate|MetricReport|Signature|JsonSchemaFile|MessageRegistryFile|License)Collection$`)

// difference is one way in which resources differ.
type difference struct {
	kind, path string
	drop       bool
	value      any
	text       string // the value, to be compared
	at         []string
}

// transforms returns how the resources differ that both show.
func (c *comparison) transforms() []dialect.Transform {
	var all []*difference
	byText := map[string]*difference{}
	total := map[string]int{}
	for _, at := range slices.SortedFunc(maps.Keys(c.shown.Pages), capture.Natural) {
		was, is := c.shown.Pages[at], c.c.Pages[at]
		kind := capture.Type(was)
		if kind == "" || strings.HasSuffix(kind, "Metrics") || kind == "MetricReport" || // what was measured
			at != capture.Root && at == "" {
			continue
		}
		total[kind]++
		if is == nil {
			total[kind]-- // it is shut
			continue
		}
		c.compare(kind, "", is, was, func(d difference) {
			raw, _ := json.Marshal(d.value)
			d.kind, d.text = kind, string(raw)
			key := kind + "\x00" + d.path + "\x00" + d.text
			if d.drop {
				key += "\x00drop"
			}
			if byText[key] == nil {
				byText[key] = &d
				all = append(all, &d)
			}
			byText[key].at = append(byText[key].at, inTree(c.r, at))
		})
	}
	// One shape for each type, and each address that is unlike the others.
	byShape := map[string]int{}
	var out []dialect.Transform
	for _, d := range all {
		places := d.at
		if len(d.at) == total[d.kind] {
			places = []string{""}
		}
		for _, at := range places {
			key := d.kind + " " + at
			i, ok := byShape[key]
			if !ok {
				i = len(out)
				byShape[key] = i
				out = append(out, dialect.Transform{ResourceType: d.kind, URI: at})
			}
			if d.drop {
				out[i].Remove = append(out[i].Remove, d.path)
			} else {
				out[i].Set = append(out[i].Set, dialect.PropertyRule{Path: d.path, Value: d.value})
			}
		}
	}
	return out
}

// compare reports the differences of two bodies.
func (c *comparison) compare(kind, path string, is, was map[string]any, tell func(difference)) {
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
		case silent[n] || strings.Contains(n, "/"):
		case !has:
			tell(difference{path: at, drop: true})
		case n == "Members" && (fluid.MatchString(kind) || sameSet(a, b)):
		case !had:
			tell(difference{path: at, value: c.inTree(a)})
		case live.MatchString(n):
		case isObject && wasObject:
			c.compare(kind, at, x, y, tell)
		case !equal(a, b):
			tell(difference{path: at, value: c.inTree(a)})
		}
	}
}

// sameSet reports whether two lists have the same members in any order: the order
// is the lab's.
func sameSet(a, b any) bool {
	keys := func(v any) []string {
		var out []string
		for _, m := range list(v) {
			o, _ := m.(map[string]any)
			out = append(out, strings.TrimRight(page(o).str("@odata.id"), "/"))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(keys(a), keys(b))
}

// equal reports whether two values are equal, except for live values and for what
// was taken out of them.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for n := range y {
			if _, has := x[n]; !has && !silent[n] {
				return false
			}
		}
		for n := range x {
			if silent[n] && n != "@odata.id" {
				continue
			}
			if v, has := y[n]; !has || !live.MatchString(n) && !equal(x[n], v) {
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
		if ok && (anonymous.MatchString(x) || anonymous.MatchString(y)) {
			return true
		}
		return ok && strings.TrimRight(x, "/") == strings.TrimRight(y, "/")
	}
	return reflect.DeepEqual(a, b)
}

// inTree returns a value with standard URIs in place of the BMC's.
func (c *comparison) inTree(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for n, below := range x {
			if !silent[n] || n == "@odata.id" {
				out[n] = c.inTree(below)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = c.inTree(x[i])
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
		return inTree(c.r, strings.TrimRight(at, "/")) + tail
	case float64:
		if x == float64(int(x)) {
			return int(x)
		}
	}
	return v
}
