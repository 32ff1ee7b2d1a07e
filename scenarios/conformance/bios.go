package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// biosChecks are the checks of BIOS settings.
var biosChecks = []Check{
	{
		ID: "BIOS-001", Title: "Bios has Attributes, and its registry covers all of them", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "HostFirmwareSettings has no schema", Remedy: "set the attributes without a schema",
		After: []string{"SYS-001"}, Run: attributesCovered,
	},
	{
		ID: "BIOS-002", Title: "the settings object and its apply times", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "settings cannot be written", Remedy: "configure the BIOS by hand",
		After: []string{"BIOS-001"}, Run: settingsFound,
	},
	{
		ID: "BIOS-003", Title: "a harmless change is staged and cleared", Level: Reversible, Protocol: Redfish, Step: Prepare,
		Predicts: "a pending change blocks the next", Remedy: "clear pending jobs in the BMC's own interface",
		After: []string{"BIOS-002"}, Run: changeStaged,
	},
	{
		ID: "BIOS-004", Title: "a change is applied by a reset, and reported", Level: Disruptive, Protocol: Redfish, Step: Prepare,
		Predicts: "preparing never ends", Remedy: "configure the BIOS by hand",
		After: []string{"BIOS-003", "PWR-003"}, Run: changeApplied,
	},
	{
		ID: "BIOS-005", Title: "an invalid name or value is answered 400 with RelatedProperties", Level: Reversible, Protocol: Redfish, Step: Prepare,
		Predicts: "wrong settings get stuck", Remedy: "check settings before they are sent",
		After: []string{"BIOS-002"}, Run: wrongSettingRefused,
	},
	{
		ID: "BIOS-006", Title: "a read-only attribute is refused", Level: Reversible, Protocol: Redfish, Step: Prepare,
		Predicts: "wrong settings get stuck", Remedy: "check settings before they are sent",
		After: []string{"BIOS-002"}, Run: readOnlyRefused,
	},
	{
		ID: "BIOS-007", Title: "ResetBios restores the defaults", Level: Destructive, Protocol: Redfish, Step: Prepare,
		Predicts: "cleaning fails", Remedy: "restore the defaults by hand",
		After: []string{"BIOS-004"}, Run: defaultsRestored,
	},
}

// bios is the BIOS of the system with its settings object.
type bios struct {
	uri        string
	value      Value
	attributes Value
	settings   string
	applyTimes []string
}

// bios reads the BIOS of the system.
func (r *Run) bios(ctx context.Context) (*bios, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	link := place.System.At("Bios")
	if !link.Exists() {
		return nil, NothingThere("the system has no Bios")
	}
	b := new(bios)
	if b.uri, err = link.Link(); err != nil {
		return nil, err
	}
	if b.value, err = r.Page(ctx, b.uri); err != nil {
		return nil, err
	}
	b.attributes = b.value.At("Attributes")
	s := b.value.At("@Redfish.Settings")
	b.settings = s.At("SettingsObject").LinkOr("")
	b.applyTimes, _ = s.At("SupportedApplyTimes").Texts() // absent: the BMC's own
	return b, nil
}

// biosSettings reads the BIOS, which must have a settings object.
func (r *Run) biosSettings(ctx context.Context) (*bios, error) {
	b, err := r.bios(ctx)
	if err == nil && b.settings == "" {
		err = NothingThere(b.uri + " has no settings object")
	}
	return b, err
}

// proposal reads the BIOS, and finds a change of its settings.
func (r *Run) proposal(ctx context.Context) (*bios, *proposal, error) {
	b, err := r.biosSettings(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.propose(ctx, b)
	return b, p, err
}

// attribute is a row of the attribute registry.
type attribute struct {
	name, kind string
	readOnly   bool
	values     []string
	lower      float64
}

// registry reads the BIOS attribute registry by its name.
func (r *Run) registry(ctx context.Context, name string) ([]attribute, error) {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return nil, err
	}
	uri, err := root.At("Registries").Link()
	if err != nil {
		return nil, NothingThere("the service root has no Registries")
	}
	files, err := r.Members(ctx, uri)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		// The URI ends with the registry's name, where it is worth reading first.
		if !strings.Contains(strings.ToLower(f), strings.ToLower(strings.SplitN(name, ".", 2)[0])) {
			continue
		}
		return r.registryFile(ctx, f)
	}
	for _, f := range files[:min(len(files), 100)] {
		v, err := r.Page(ctx, f)
		if err != nil {
			return nil, err
		}
		if of := v.At("Registry").TextOr(""); of != "" && strings.HasPrefix(name, of) {
			return r.registryFile(ctx, f)
		}
	}
	return nil, Findingf("Registries has no %s, which Bios names", name)
}

func (r *Run) registryFile(ctx context.Context, file string) ([]attribute, error) {
	v, err := r.Page(ctx, file)
	if err != nil {
		return nil, err
	}
	locations, err := v.At("Location").List()
	if err != nil {
		return nil, err
	}
	for _, l := range locations {
		document := l.At("Uri").TextOr(l.At("Uri", "extref").TextOr(""))
		if !strings.HasPrefix(document, "/") {
			continue
		}
		r.Use(Connections{Gzip: true}) // some BMCs send registries with gzip only
		page, err := r.Page(ctx, document)
		if err != nil {
			return nil, err
		}
		rows, err := page.At("RegistryEntries", "Attributes").List()
		if err != nil {
			return nil, err
		}
		var all []attribute
		for _, row := range rows {
			a := attribute{name: row.At("AttributeName").TextOr(""), kind: row.At("Type").TextOr("")}
			a.readOnly, _ = row.At("ReadOnly").Bool()
			if gray, err := row.At("GrayOut").Bool(); err == nil && gray {
				a.readOnly = true
			}
			a.lower, _ = row.At("LowerBound").Number()
			values, _ := row.At("Value").List()
			for _, value := range values {
				a.values = append(a.values, value.At("ValueName").TextOr(""))
			}
			all = append(all, a)
		}
		return all, nil
	}
	return nil, Findingf("%s has no Location with a Uri", v.Path())
}

// attributesCovered compares the attributes with their registry.
func attributesCovered(ctx context.Context, r *Run) Outcome {
	b, err := r.bios(ctx)
	if err != nil {
		return Judge(err)
	}
	names, err := b.attributes.Names()
	if err != nil {
		return Judge(err)
	}
	if len(names) == 0 {
		return Failed("%s has no attribute", b.attributes.Path())
	}
	name, err := b.value.At("AttributeRegistry").Text()
	if err != nil {
		return Judge(err)
	}
	rows, err := r.registry(ctx, name)
	if err != nil {
		return Judge(err)
	}
	var missing []string
	for _, n := range names {
		if !slices.ContainsFunc(rows, func(a attribute) bool { return a.name == n }) {
			missing = append(missing, n)
		}
	}
	slices.Sort(missing)
	o := Passed("").With("attributes", "%d", len(names)).With("registry", "%s", name)
	if len(missing) > 0 {
		o.Verdict, o.Reason = Fail, fmt.Sprintf("the registry %s lacks %d of %d attributes: %s", name, len(missing), len(names), strings.Join(missing[:min(len(missing), 5)], ", "))
	}
	return o
}

// settingsFound looks at the settings object.
func settingsFound(ctx context.Context, r *Run) Outcome {
	b, err := r.bios(ctx)
	if err != nil {
		return Judge(err)
	}
	if b.settings == "" {
		return Failed("%s has no @Redfish.Settings with a SettingsObject", b.uri)
	}
	settings, err := r.Page(ctx, b.settings)
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("settings", "%s", b.settings).With("apply times", "%s", strings.Join(b.applyTimes, " "))
	switch {
	case !settings.At("Attributes").Exists():
		o.Verdict, o.Reason = Warn, b.settings+" has no Attributes while nothing is pending"
		return o.Quirky("bios-registry-lag")
	case len(b.applyTimes) == 0:
		o.Verdict, o.Reason = Warn, b.uri+" has no SupportedApplyTimes"
	}
	return o
}

// harmless are words of attributes whose change does no harm, the most harmless
// first.
var harmless = []string{"numlock", "assettag", "adminname", "bootmessage", "errorprompt", "setupprompt", "serialterminal", "f1prompt", "quietboot", "logo"}

// proposal is a change of an attribute: to another value and back.
type proposal struct {
	name     string
	was, new any
	all      []attribute
}

// propose finds a harmless attribute and another value of it.
func (r *Run) propose(ctx context.Context, b *bios) (*proposal, error) {
	name, err := b.value.At("AttributeRegistry").Text()
	if err != nil {
		return nil, err
	}
	rows, err := r.registry(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, word := range harmless {
		for _, a := range rows {
			was := b.attributes.At(a.name)
			if a.readOnly || was.Null() || !strings.Contains(strings.ToLower(a.name), word) {
				continue
			}
			p := &proposal{name: a.name, was: was.Raw(), all: rows}
			switch a.kind {
			case "Enumeration":
				for _, v := range a.values {
					if v != was.TextOr("") && v != "" {
						p.new = v
						return p, nil
					}
				}
			case "String":
				p.new = "labctl"
				return p, nil
			}
		}
	}
	return nil, NothingThere("no attribute is known to be harmless")
}

// stage writes attributes to the settings object.
func (r *Run) stage(ctx context.Context, b *bios, level Level, attributes map[string]any, undo []Undo) (*Response, error) {
	body := map[string]any{"Attributes": attributes}
	if slices.Contains(b.applyTimes, "OnReset") {
		body["@Redfish.SettingsApplyTime"] = map[string]any{"@odata.type": "#Settings.v1_0_0.PreferredApplyTime", "ApplyTime": "OnReset"}
	}
	return r.patch(ctx, Change{Level: level, Request: Request{URI: b.settings, Body: body}, Undo: undo})
}

// clear returns what takes a staged change back: the old value again. A BMC that
// compares it with the present one then has nothing pending.
func (b *bios) clear(p *proposal) []Undo {
	body := jsonBody(map[string]any{"Attributes": map[string]any{p.name: p.was}})
	return []Undo{{Method: http.MethodPatch, URI: b.settings, Match: true, Body: body}}
}

// changeStaged stages a change and clears it.
func changeStaged(ctx context.Context, r *Run) Outcome {
	b, p, err := r.proposal(ctx)
	if err != nil {
		return Judge(err)
	}
	resp, err := r.stage(ctx, b, Reversible, map[string]any{p.name: p.new}, b.clear(p))
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("PATCH of %s: %s", p.name, resp.Problem())
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	pending, _, err := r.Get(ctx, b.settings)
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("attribute", "%s", p.name)
	if now := pending.At("Attributes", p.name).Raw(); now != p.new {
		o = Failed("%s is pending as %s after it was set to %v", p.name, abbreviate(now), p.new)
	}
	// A second change, while the first waits.
	resp, err = r.stage(ctx, b, Reversible, map[string]any{p.name: p.was}, nil)
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("a second change while one is pending: %s", resp.Problem()).Quirky("jobs-blocked")
	}
	return o
}

// changeApplied applies a change by a restart, and takes it back by another.
func changeApplied(ctx context.Context, r *Run) Outcome {
	b, p, err := r.proposal(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("attribute", "%s", p.name)
	for i, value := range []any{p.new, p.was} {
		var undo []Undo
		if i == 0 {
			undo = b.clear(p)
		}
		resp, err := r.stage(ctx, b, Disruptive, map[string]any{p.name: value}, undo)
		if err != nil {
			return Judge(err)
		}
		if resp.Status/100 != 2 {
			return Failed("PATCH of %s: %s", p.name, resp.Problem())
		}
		if err := r.restart(ctx); err != nil {
			return Judge(err)
		}
		if r.bmc.dry != nil {
			continue
		}
		states, err := r.finishTask(ctx, resp, "the change")
		if err != nil {
			return Judge(err)
		}
		if len(states) > 0 {
			o = o.With("task", "%s", strings.Join(states, " "))
		}
		var now any
		applied, err := r.Poll(ctx, powerInterval, powerLimit, func() (bool, error) {
			v, _, err := r.Get(ctx, b.uri)
			now = v.At("Attributes", p.name).Raw()
			return now == value, err
		})
		if err != nil {
			return Judge(err)
		}
		if !applied {
			return Failed("%s is %s after a restart that applies %v", p.name, abbreviate(now), value).Quirky("bios-registry-lag")
		}
	}
	return o
}

// wrongSettingRefused writes an attribute that does not exist, and a value.
func wrongSettingRefused(ctx context.Context, r *Run) Outcome {
	b, p, err := r.proposal(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Passed("")
	wrong := []map[string]any{{"LabctlNoSuchAttribute": "Enabled"}}
	if i := slices.IndexFunc(p.all, func(a attribute) bool {
		return a.kind == "Enumeration" && !a.readOnly && !b.attributes.At(a.name).Null()
	}); i >= 0 {
		wrong = append(wrong, map[string]any{p.all[i].name: "LabctlNoSuchValue"})
	}
	for _, w := range wrong {
		resp, err := r.stage(ctx, b, Reversible, w, b.clear(p))
		if err != nil {
			return Judge(err)
		}
		switch {
		case r.bmc.dry != nil:
		case resp.Status/100 == 2:
			return Failed("a PATCH of %v is answered %d", w, resp.Status)
		case resp.Status >= 500:
			return Failed("a PATCH of %v: %s", w, resp.Problem())
		case !bytesContain(resp.Body, "RelatedProperties"):
			o = Warned("the error of a wrong setting has no RelatedProperties")
		}
	}
	return o
}

func bytesContain(b []byte, text string) bool { return strings.Contains(string(b), text) }

// readOnlyRefused writes a read-only attribute.
func readOnlyRefused(ctx context.Context, r *Run) Outcome {
	b, err := r.biosSettings(ctx)
	if err != nil {
		return Judge(err)
	}
	name, err := b.value.At("AttributeRegistry").Text()
	if err != nil {
		return Judge(err)
	}
	rows, err := r.registry(ctx, name)
	if err != nil {
		return Judge(err)
	}
	for _, a := range rows {
		was := b.attributes.At(a.name)
		if !a.readOnly || a.kind != "String" || was.Null() {
			continue
		}
		p := &proposal{name: a.name, was: was.Raw()}
		resp, err := r.stage(ctx, b, Reversible, map[string]any{a.name: "labctl"}, b.clear(p))
		if err != nil {
			return Judge(err)
		}
		if resp.Status/100 == 2 && r.bmc.dry == nil {
			return Failed("a PATCH of the read-only attribute %s is answered %d", a.name, resp.Status)
		}
		if resp.Status >= 500 {
			return Failed("a PATCH of the read-only attribute %s: %s", a.name, resp.Problem())
		}
		return Passed("").With("attribute", "%s", a.name)
	}
	return Skipped("no text attribute is read-only")
}

// defaultsRestored changes an attribute, resets the BIOS and compares. The run's
// restore cannot bring back the settings that the reset loses.
func defaultsRestored(ctx context.Context, r *Run) Outcome {
	b, err := r.bios(ctx)
	if err != nil {
		return Judge(err)
	}
	action := b.value.At("Actions", "#Bios.ResetBios", "target")
	target, err := action.Text()
	if err != nil {
		return Skipped("the BIOS has no ResetBios")
	}
	resp, err := r.Change(ctx, Change{Level: Destructive, Request: Request{Method: http.MethodPost, URI: target, Body: json.RawMessage("{}")}})
	if err != nil {
		return Judge(err)
	}
	ok, problem, err := resp.Status/100 == 2, resp.Problem(), error(nil)
	if !ok {
		return Failed("ResetBios: %s", problem)
	}
	if err = r.restart(ctx); err != nil {
		return Judge(err)
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	if _, err := r.finishTask(ctx, resp, "ResetBios"); err != nil {
		return Judge(err)
	}
	v, _, err := r.Get(ctx, b.uri)
	if err != nil {
		return Judge(err)
	}
	if pending, err := v.At("ResetBiosToDefaultsPending").Bool(); err == nil && pending {
		return Failed("ResetBiosToDefaultsPending is true after the restart")
	}
	return Passed("")
}
