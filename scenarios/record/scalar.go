package record

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// change is one thing that a record can say of a BMC.
type change struct {
	what string
	to   func(r *dialect.Record)
}

// scalars makes of a record what the capture tells of all but addresses and
// bodies, where that differs from what was shown with it. What a record may not
// say is left as the base has it. It says whether anything has changed.
func (d *deriver) scalars(r *dialect.Record, shown *deriver) bool {
	shown.landmarks()
	base := *r
	told := shown.changes()
	for i, c := range d.changes() {
		is, was, try := base, base, *r
		c.to(&is)
		told[i].to(&was)
		if reflect.DeepEqual(is, was) {
			continue
		}
		c.to(&try)
		if err := try.Validate(); err != nil {
			d.note("%s: as %s has it: %v", c.what, r.Name, err)
			continue
		}
		*r = try
	}
	return !reflect.DeepEqual(*r, base)
}

// changes are all that a record can say so.
func (d *deriver) changes() []change {
	root, m, s := d.page(capture.Root), d.page(d.manager), d.page(d.system)
	text := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	return []change{
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
			a := d.page(d.places["/redfish/v1/AccountService"])
			p := &r.BMC.Accounts.Policy
			number := func(to *int, name string) {
				if n := a.int(name); n > 0 {
					*to = n
				}
			}
			number(&p.MinPassword, "MinPasswordLength")
			number(&p.MaxPassword, "MaxPasswordLength")
			number(&p.LockoutThreshold, "AccountLockoutThreshold")
			span(&p.LockoutDuration, a, "AccountLockoutDuration")
			span(&p.LockoutCounterResetAfter, a, "AccountLockoutCounterResetAfter")
		}},
		{"sessions", func(r *dialect.Record) {
			span(&r.BMC.SessionTimeout, d.page(d.places["/redfish/v1/SessionService"]), "SessionTimeout")
		}},
		{"images", func(r *dialect.Record) {
			if n := int64(d.page(d.places["/redfish/v1/UpdateService"]).num("MaxImageSizeBytes")); n > 0 {
				r.MaxImageBytes = n
			}
		}},
		{"logs", func(r *dialect.Record) {
			if all := d.members(s, "LogServices"); len(all) > 0 {
				r.Logs.System = prefer(all, r.Logs.System)
			}
			if all := d.members(m, "LogServices"); len(all) > 0 {
				r.Logs.Manager = prefer(all, r.Logs.Manager)
			}
		}},
		{"ETags", func(r *dialect.Record) {
			switch d.c.Habits.ETag {
			case capture.WeakETag:
				r.Protocol.ETags.Format = dialect.Weak
			case capture.TwiceETag:
				r.Protocol.ETags.Format = dialect.DoubleQuoted
			case capture.StrongETag:
				r.Protocol.ETags.Format = dialect.Strong
			}
		}},
		{"queries", d.queries},
		{"the protocol", func(r *dialect.Record) {
			h := d.c.Habits
			if len(h.Queries) > 0 { // it was probed
				r.Protocol.Gzip, r.Protocol.CloseAfterResponse, r.Presentation.TrailingSlash, r.Presentation.IgnoreURICase = h.Gzip, h.Close, h.Slash, h.Fold
				r.Presentation.Errors.SingleObject, r.Presentation.Errors.IDsOnly = h.Error.One, h.Error.Terse
				if h.Error.Code != "" || strings.Count(r.Presentation.Errors.Code, ".") < 2 { // else it is a message, as is usual
					r.Presentation.Errors.Code = h.Error.Code
				}
			}
		}},
	}
}

// prefer is the last segment of that address which has this one, else of the
// first.
func prefer(all []string, id string) string {
	for _, at := range all {
		if last(at) == id {
			return id
		}
	}
	return last(all[0])
}

func span(to *time.Duration, p page, name string) {
	if n := p.num(name); n > 0 {
		*to = time.Duration(n) * time.Second
	}
}

func (d *deriver) resets(s page, usual []machine.ResetKind) []machine.ResetKind {
	var out []machine.ResetKind
	for _, t := range d.allowable(s, "#ComputerSystem.Reset", "ResetType") {
		k := machine.ResetKind(t)
		if !slices.Contains(machine.ResetKinds, k) {
			return usual // the vendor has words of his own
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

func (d *deriver) media(r *dialect.Record) {
	var slots []bmc.SlotSpec
	patched := true
	for _, at := range d.c.Members(d.places["/redfish/v1/Systems/{system}/VirtualMedia"]) {
		x := d.page(at)
		types := x.texts("MediaTypes")
		if len(types) == 0 {
			types = []string{"CD", "DVD"}
		}
		slots = append(slots, bmc.SlotSpec{ID: last(at), Name: or(x.str("Name"), last(at)), Types: types})
		_, acts := x.sub("Actions")["#VirtualMedia.InsertMedia"]
		patched = patched && !acts
	}
	if len(slots) > 0 {
		r.BMC.Slots, r.Media.InsertByPatch = slots, patched
	}
}

func (d *deriver) queries(r *dialect.Record) {
	q := &r.Protocol.Queries
	for name, to := range map[string][]*bool{
		"$select": {&q.Select}, "$top": {&q.TopSkip}, "$filter": {&q.Filter}, "only": {&q.Only},
	} {
		if how, tried := d.c.Habits.Queries[name]; tried {
			for _, t := range to {
				*t = how == "works"
			}
		}
	}
	if how, tried := d.c.Habits.Queries["$expand"]; tried && how != "works" {
		q.ExpandAll, q.ExpandLinks, q.ExpandRest, q.MaxLevels = false, false, false, 0
	}
	switch how := d.c.Habits.Queries["$nonsense"]; {
	case how == "ignored":
		q.Unknown = dialect.Ignored
	case how == "501":
		q.Unknown = dialect.NotImplemented
	case strings.HasPrefix(how, "4"):
		q.Unknown = dialect.BadRequest
	}
}
