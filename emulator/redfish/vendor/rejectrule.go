package vendor

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// rejectRule is a dialect.RejectRule with its pattern parsed.
type rejectRule struct {
	dialect.RejectRule
	uri pattern
}

// Rejected is the response to a request that a RejectRule rejects.
type Rejected struct {
	Status    int // HTTP status
	Message   message.Message
	PlainText bool // the body is the message's text, instead of JSON
}

// Reject returns the response of the first RejectRule that applies to a request with
// the body in, or nil.
func (v *Vendor) Reject(q Request, in resource.Document) *Rejected {
	if v.presentation == nil {
		return nil
	}
	for i := range v.presentation.rejectRules {
		r := &v.presentation.rejectRules[i]
		if !q.selects(r.ResourceType, r.Method, r.uri) || !r.stateMatches(q.Match, q.At) {
			continue
		}
		property, ok := r.bodyMatches(in, q.BodySize)
		if ok && len(r.SendsUnchanged) > 0 {
			property, ok = r.sentUnchanged(in, q.Match.Object(q.Match.View(q.At)))
		}
		if !ok {
			continue
		}
		value := ""
		if v, sent := in.Lookup(property); sent {
			value = fmt.Sprint(resource.Echo(v))
		}
		m := NewMessage(r.Message, property[strings.LastIndexByte(property, '/')+1:], value)
		if property != "" {
			m = m.About("#/" + property)
		}
		return &Rejected{cmp.Or(r.Status, http.StatusBadRequest), m, r.PlainText}
	}
	return nil
}

// Allow returns an Allow header without the methods that a RejectRule answers 405
// whatever the request holds and whatever state the server is in (RFC 9110, §15.5.6).
func (v *Vendor) Allow(m *resource.Match, header []string) []string {
	if v.presentation == nil || len(v.presentation.refusedMethods) == 0 || len(header) == 0 || m.Action != nil {
		return header
	}
	all := strings.Split(header[0], ", ")
	left := slices.DeleteFunc(slices.Clone(all), func(method string) bool { return v.refuses(m, method) })
	if len(left) == len(all) {
		return header
	}
	return []string{strings.Join(left, ", ")}
}

// refuses reports whether a RejectRule answers a method of a resource 405 always.
func (v *Vendor) refuses(m *resource.Match, method string) bool {
	return slices.ContainsFunc(v.presentation.refusedMethods, func(r rejectRule) bool {
		return r.Method == method && Request{Method: method, Match: m}.selects(r.ResourceType, r.Method, r.uri)
	})
}

// isUnconditional reports whether the rule rejects every request with its method.
func (r *rejectRule) isUnconditional() bool {
	return len(r.SendsAny)+len(r.SendsIncomplete)+len(r.Missing)+r.MaxProperties+len(r.NotOneOf)+len(r.OneOf)+len(r.HasPrefix)+len(r.SendsUnchanged)+len(r.Stored) == 0 &&
		!r.EmptyBody && r.While == dialect.Always
}

// bodyMatches reports whether the conditions of the rule on the request's body hold,
// except SendsUnchanged, and returns the path of the property that the message is
// about. size is the body's size in bytes.
func (r *rejectRule) bodyMatches(in resource.Document, size int64) (property string, ok bool) {
	sent := func(path string) bool { _, ok := in.Lookup(path); return ok }
	notSent := func(path string) bool { return !sent(path) }
	if i := slices.IndexFunc(r.SendsAny, sent); i >= 0 {
		property = r.SendsAny[i]
	} else if len(r.SendsAny) > 0 {
		return "", false
	}
	if r.EmptyBody && size > 0 {
		return "", false
	}
	if len(r.SendsIncomplete) > 0 {
		missing := slices.IndexFunc(r.SendsIncomplete, notSent)
		if missing < 0 || !slices.ContainsFunc(r.SendsIncomplete, sent) {
			return "", false
		}
		property = r.SendsIncomplete[missing]
	}
	if len(r.Missing) > 0 {
		missing := slices.IndexFunc(r.Missing, notSent)
		if missing < 0 {
			return "", false
		}
		property = r.Missing[missing]
	}
	if r.MaxProperties > 0 {
		object, _ := in.Lookup(r.SendsAny[0])
		if d, ok := object.(resource.Document); !ok || len(d.Fields) <= r.MaxProperties {
			return "", false
		}
	}
	if len(r.HasPrefix) > 0 {
		path, found := r.prefixed(in)
		if !found {
			return "", false
		}
		if len(r.Missing) == 0 { // otherwise the message is about the missing property
			property = path
		}
	}
	for _, condition := range []struct {
		values map[string][]string
		listed bool // the property must have one of the values, or none of them
	}{{r.NotOneOf, false}, {r.OneOf, true}} {
		if len(condition.values) == 0 {
			continue
		}
		paths := slices.Sorted(maps.Keys(condition.values))
		i := slices.IndexFunc(paths, func(path string) bool {
			v, ok := in.Lookup(path)
			return ok && slices.Contains(condition.values[path], fmt.Sprint(v)) == condition.listed
		})
		if i < 0 {
			return "", false
		}
		property = paths[i]
	}
	return property, true
}

// prefixed returns the first property of HasPrefix that begins with one of its texts.
func (r *rejectRule) prefixed(in resource.Document) (path string, found bool) {
	for _, path := range slices.Sorted(maps.Keys(r.HasPrefix)) {
		v, _ := in.Lookup(path)
		text, ok := v.(string)
		if ok && slices.ContainsFunc(r.HasPrefix[path], func(p string) bool { return strings.HasPrefix(text, p) }) {
			return path, true
		}
	}
	return "", false
}

// sentUnchanged returns the first property of SendsUnchanged that the request sends
// with the value that it has in the body of the resource.
func (r *rejectRule) sentUnchanged(in resource.Document, body resource.Object) (property string, ok bool) {
	for _, path := range r.SendsUnchanged {
		present, known := resource.ValueAt(body, path)
		sent, given := in.Lookup(path)
		if known && given && fmt.Sprint(present) == fmt.Sprint(sent) {
			return path, true
		}
	}
	return "", false
}

// stateMatches reports whether the rule's conditions on the state hold: Stored, While
// and For.
func (r *rejectRule) stateMatches(m *resource.Match, at *resource.Snapshot) bool {
	for name, values := range r.Stored {
		text := ""
		if value, ok := resource.OEMValueIn(at.BMC, name); ok {
			text = fmt.Sprint(value)
		}
		if !slices.Contains(values, text) {
			return false
		}
	}
	return conditionHolds(r.While, r.For, m, at)
}

// conditionHolds reports whether a condition holds. lasts is how long a condition
// that begins with "after" holds.
func conditionHolds(c dialect.Condition, lasts time.Duration, m *resource.Match, at *resource.Snapshot) bool {
	var started time.Time // last start of the BMC; zero: it has never been restarted
	if at.BMC.Life != nil {
		started = at.BMC.Life.Up
	}
	recent := func(since time.Time) bool { return !since.IsZero() && at.Now.Sub(since) < lasts }
	switch c {
	case dialect.InPOST, dialect.NotInPOST:
		phase := at.Machine.Phase
		inPOST := phase == machine.Starting || phase == machine.POST || phase == machine.Selecting
		return inPOST == (c == dialect.InPOST)
	case dialect.SystemOn:
		return at.Machine.Power == machine.PowerOn
	case dialect.SystemOff:
		return at.Machine.Power == machine.PowerOff
	case dialect.AfterOff:
		return at.Machine.Phase == machine.Off && recent(at.Machine.Since)
	case dialect.AfterOn:
		return recent(at.Machine.OnSince)
	case dialect.AfterStart:
		return recent(started)
	case dialect.NeverReset:
		return started.IsZero()
	case dialect.SettingsDue:
		p := at.Machine.Firmware.Pending()
		return p != nil && !p.Held || at.Machine.Firmware.Finishing() != nil
	case dialect.AfterEject:
		for _, s := range at.BMC.Slots {
			if s.ID == m.IDs["slot"] {
				return s.Image == "" && recent(s.Since)
			}
		}
		return false
	}
	return true
}
