package record

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// derivedField sets fields of a dialect's record that belong together.
type derivedField struct {
	name string
	set  func(r *dialect.Record)
}

// applyFields sets the fields of a dialect's record in which the capture differs
// from the capture of the model that was served with the record. A value that the
// record's validation refuses stays as in the base. URIs and bodies are compared
// elsewhere. It reports whether the record has changed.
func (d *deriver) applyFields(r *dialect.Record, shown *deriver) bool {
	shown.locateLinkedResources()
	base := *r
	shownFields := shown.derivedFields()
	for i, c := range d.derivedFields() {
		is, was, try := base, base, *r
		c.set(&is)
		shownFields[i].set(&was)
		if reflect.DeepEqual(is, was) {
			continue
		}
		c.set(&try)
		if err := try.Validate(); err != nil {
			d.note("%s: kept as in dialect %s: %v", c.name, r.Name, err)
			continue
		}
		*r = try
	}
	return !reflect.DeepEqual(*r, base)
}

// derivedFields lists the fields of a record that a capture tells.
func (d *deriver) derivedFields() []derivedField {
	root, m, s := d.resource(capture.Root), d.resource(d.manager), d.resource(d.system)
	text := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	return []derivedField{
		{"the service", func(r *dialect.Record) {
			text(&r.Product, root.str("Product"))
			text(&r.Vendor, root.str("Vendor"))
			text(&r.RedfishVersion, root.str("RedfishVersion"))
			text(&r.ManagerModel, m.str("Model"))
		}},
		{"the IDs", func(r *dialect.Record) {
			text(&r.SystemID, last(d.system))
			text(&r.ManagerID, last(d.manager))
			text(&r.ChassisID, last(d.chassis))
		}},
		{"reset types", func(r *dialect.Record) { r.ResetTypes = d.resets(s, r.ResetTypes) }},
		{"boot targets", func(r *dialect.Record) {
			var all []machine.SourceKind
			for _, t := range s.texts("Boot/BootSourceOverrideTarget@Redfish.AllowableValues") {
				if k := machine.SourceKind(t); slices.Contains(machine.SourceKinds, k) && !slices.Contains(all, k) {
					all = append(all, k)
				}
			}
			if len(all) > 0 {
				r.BootTargets = all
			}
		}},
		{"virtual media", d.media},
		{"accounts", func(r *dialect.Record) {
			a := d.resource(d.locations["/redfish/v1/AccountService"])
			p := &r.BMC.Accounts.Policy
			number := func(to *int, name string) {
				if n := a.int(name); n > 0 {
					*to = n
				}
			}
			number(&p.MinPassword, "MinPasswordLength")
			number(&p.MaxPassword, "MaxPasswordLength")
			number(&p.LockoutThreshold, "AccountLockoutThreshold")
			setSeconds(&p.LockoutDuration, a, "AccountLockoutDuration")
			setSeconds(&p.LockoutCounterResetAfter, a, "AccountLockoutCounterResetAfter")
		}},
		{"sessions", func(r *dialect.Record) {
			setSeconds(&r.BMC.SessionTimeout, d.resource(d.locations["/redfish/v1/SessionService"]), "SessionTimeout")
		}},
		{"images", func(r *dialect.Record) {
			if n := int64(d.resource(d.locations["/redfish/v1/UpdateService"]).num("MaxImageSizeBytes")); n > 0 {
				r.MaxImageBytes = n
			}
		}},
		{"logs", func(r *dialect.Record) {
			if all := d.members(s, "LogServices"); len(all) > 0 {
				r.Logs.System = preferredID(all, r.Logs.System)
			}
			if all := d.members(m, "LogServices"); len(all) > 0 {
				r.Logs.Manager = preferredID(all, r.Logs.Manager)
			}
		}},
		{"ETags", func(r *dialect.Record) {
			switch d.capture.Habits.ETag {
			case capture.WeakETag:
				r.Protocol.ETags.Format = dialect.Weak
			case capture.DoubleQuotedETag:
				r.Protocol.ETags.Format = dialect.DoubleQuoted
			case capture.StrongETag:
				r.Protocol.ETags.Format = dialect.Strong
			}
		}},
		{"queries", d.queries},
		{"the protocol", func(r *dialect.Record) {
			h := d.capture.Habits
			if len(h.Queries) > 0 { // the behavior was probed
				r.Protocol.Gzip, r.Protocol.CloseAfterResponse, r.Presentation.TrailingSlash, r.Presentation.IgnoreURICase = h.Gzip, h.ClosesConnection, h.TrailingSlash, h.IgnoresCase
				r.Presentation.Errors.SingleObject, r.Presentation.Errors.IDsOnly = h.Error.SingleObject, h.Error.IDsOnly
				if h.Error.Code != "" || strings.Count(r.Presentation.Errors.Code, ".") < 2 { // otherwise it is a MessageId, as DSP0266 says
					r.Presentation.Errors.Code = h.Error.Code
				}
			}
		}},
	}
}

// preferredID returns id if one of the URIs ends with it, else the last
// segment of the first URI.
func preferredID(all []string, id string) string {
	for _, at := range all {
		if last(at) == id {
			return id
		}
	}
	return last(all[0])
}

// setSeconds sets a duration from a property in seconds, if the property is
// positive.
func setSeconds(to *time.Duration, p resource, name string) {
	if n := p.num(name); n > 0 {
		*to = time.Duration(n) * time.Second
	}
}

// resets returns the allowable values of ComputerSystem.Reset, or usual where
// the BMC has none or values that are not Redfish's.
func (d *deriver) resets(s resource, usual []machine.ResetKind) []machine.ResetKind {
	var out []machine.ResetKind
	for _, t := range d.allowable(s, "#ComputerSystem.Reset", "ResetType") {
		k := machine.ResetKind(t)
		if !slices.Contains(machine.ResetKinds, k) {
			return usual // the vendor uses reset types that Redfish does not define
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return usual
	}
	return out
}

// media sets the slots of virtual media, and whether media is inserted by
// PATCH.
func (d *deriver) media(r *dialect.Record) {
	var slots []bmc.SlotSpec
	patched := true
	for _, at := range d.capture.Members(d.locations["/redfish/v1/Systems/{system}/VirtualMedia"]) {
		x := d.resource(at)
		types := x.texts("MediaTypes")
		if len(types) == 0 {
			types = []string{"CD", "DVD"}
		}
		slots = append(slots, bmc.SlotSpec{ID: last(at), Name: cmp.Or(x.str("Name"), last(at)), Types: types})
		_, acts := x.sub("Actions")["#VirtualMedia.InsertMedia"]
		patched = patched && !acts
	}
	if len(slots) > 0 {
		r.BMC.Slots, r.Media.InsertByPatch = slots, patched
	}
}

// queries sets the query parameters that were found to work.
func (d *deriver) queries(r *dialect.Record) {
	q := &r.Protocol.Queries
	for name, to := range map[string][]*bool{
		"$select": {&q.Select}, "$top": {&q.TopSkip}, "$filter": {&q.Filter}, "only": {&q.Only},
	} {
		if how, tried := d.capture.Habits.Queries[name]; tried {
			for _, t := range to {
				*t = how == "works"
			}
		}
	}
	if how, tried := d.capture.Habits.Queries["$expand"]; tried && how != "works" {
		q.ExpandAll, q.ExpandLinks, q.ExpandRest, q.MaxLevels = false, false, false, 0
	}
	switch how := d.capture.Habits.Queries["$nonsense"]; {
	case how == "ignored":
		q.Unknown = dialect.Ignored
	case how == "501":
		q.Unknown = dialect.NotImplemented
	case strings.HasPrefix(how, "4"):
		q.Unknown = dialect.BadRequest
	}
}
