package redfish

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
)

// rule is a dialect.Rule, ready for use.
type rule struct {
	dialect.RejectRule
	at pattern
}

// Rejected is a write that a vendor's service does not take.
type Rejected struct {
	Status    int
	Message   message.Message
	PlainText bool // the body is the message's text alone
}

// Reject returns why this vendor's service does not take a write; nil when it does.
func (v *Vendor) Reject(q ofRequest, in document) *Rejected {
	if v.face == nil {
		return nil
	}
	for i := range v.face.rules {
		r := &v.face.rules[i]
		if !r.concerns(q) || !r.during(q.Match, q.At) {
			continue
		}
		property, ok := r.sees(in, q.BodySize)
		if ok && len(r.SendsUnchanged) > 0 {
			property, ok = r.repeats(in, q.Match.object(q.Match.view(q.At)))
		}
		if !ok {
			continue
		}
		value := ""
		if v, sent := in.inside(property); sent {
			value = fmt.Sprint(echo(v))
		}
		m := says(r.Message, property[strings.LastIndexByte(property, '/')+1:], value)
		if property != "" {
			m = m.About("#/" + property)
		}
		return &Rejected{cmp.Or(r.Status, http.StatusBadRequest), m, r.PlainText}
	}
	return nil
}

// says is a message that a vendor has of his own.
func says(s dialect.VendorMessage, args ...string) message.Message {
	d := message.Definition{
		Registry: &message.Registry{Prefix: s.Registry, Version: s.Version}, Key: s.Key,
		Severity: message.Critical, Text: s.Text, Resolution: s.Resolution,
	}
	used := 0
	for i := range args {
		if strings.Contains(s.Text, fmt.Sprintf("%%%d", i+1)) {
			used = i + 1
		}
	}
	return d.Make(args[:used]...)
}

// tell is a dialect.Tell, ready for use.
type tell struct {
	dialect.SuccessMessage
	at pattern
}

func (t *tell) concerns(q ofRequest) bool { return q.isAbout(t.ResourceType, t.Method, t.at) }

// concerns says whether the rule is about what a request is about.
func (r *rule) concerns(q ofRequest) bool { return q.isAbout(r.ResourceType, r.Method, r.at) }

// isAbout says whether a request does that to such a resource.
func (q ofRequest) isAbout(of, method string, at pattern) bool {
	m, what := q.Match, q.Method
	if m.action != nil {
		what = m.action.name
	}
	if m.vendor != nil && at != nil && len(at) < len(split(m.uri)) {
		return false // it is about what the tree has there
	}
	return (of == "" || of == typeName(m.schema)) && (method == "" || method == what) && (at == nil || at.holds(m.uri))
}

// sees says whether what was sent is what the rule is about, and which property
// of it.
func (r *rule) sees(in document, bytes int64) (property string, ok bool) {
	sent := func(path string) bool { _, ok := in.inside(path); return ok }
	if i := slices.IndexFunc(r.SendsAny, sent); i >= 0 {
		property = r.SendsAny[i]
	} else if len(r.SendsAny) > 0 {
		return "", false
	}
	if r.EmptyBody && bytes > 0 {
		return "", false
	}
	if len(r.SendsIncomplete) > 0 {
		missing := slices.IndexFunc(r.SendsIncomplete, func(p string) bool { return !sent(p) })
		if missing < 0 || !slices.ContainsFunc(r.SendsIncomplete, sent) {
			return "", false
		}
		property = r.SendsIncomplete[missing]
	}
	if len(r.Missing) > 0 {
		missing := slices.IndexFunc(r.Missing, func(p string) bool { return !sent(p) })
		if missing < 0 {
			return "", false
		}
		property = r.Missing[missing]
	}
	if r.MaxProperties > 0 {
		group, _ := in.inside(r.SendsAny[0])
		if d, ok := group.(document); !ok || len(d.fields) <= r.MaxProperties {
			return "", false
		}
	}
	if len(r.HasPrefix) > 0 {
		found := false
		for _, path := range slices.Sorted(maps.Keys(r.HasPrefix)) {
			v, _ := in.inside(path)
			text, ok := v.(string)
			if ok && slices.ContainsFunc(r.HasPrefix[path], func(p string) bool { return strings.HasPrefix(text, p) }) {
				found = true
				if len(r.Missing) == 0 { // which it is about
					property = path
				}
				break
			}
		}
		if !found {
			return "", false
		}
	}
	for _, want := range []struct {
		of map[string][]string
		in bool
	}{{r.NotOneOf, false}, {r.OneOf, true}} {
		if len(want.of) == 0 {
			continue
		}
		found := false
		for _, path := range slices.Sorted(maps.Keys(want.of)) {
			if v, ok := in.inside(path); ok && slices.Contains(want.of[path], fmt.Sprint(v)) == want.in {
				property, found = path, true
				break
			}
		}
		if !found {
			return "", false
		}
	}
	return property, true
}

// repeats says whether what was sent is so already, and which property.
func (r *rule) repeats(in document, shown object) (property string, ok bool) {
	for _, path := range r.SendsUnchanged {
		is, known := valueAt(shown, path)
		sent, given := in.inside(path)
		if known && given && fmt.Sprint(is) == fmt.Sprint(sent) {
			return path, true
		}
	}
	return "", false
}

// during says whether the condition of the rule holds.
func (r *rule) during(m *match, at *snapshot) bool {
	for name, values := range r.Stored {
		text := ""
		if is, ok := keptIn(at.b, name); ok {
			text = fmt.Sprint(is)
		}
		if !slices.Contains(values, text) {
			return false
		}
	}
	var up time.Time // zero: it has never been restarted
	if at.b.Life != nil {
		up = at.b.Life.Up
	}
	recent := func(since time.Time) bool { return !since.IsZero() && at.now.Sub(since) < r.For }
	switch r.While {
	case dialect.InPOST, dialect.NotInPOST:
		in := at.m.Phase == machine.Starting || at.m.Phase == machine.POST || at.m.Phase == machine.Selecting
		return in == (r.While == dialect.InPOST)
	case dialect.SystemOn:
		return at.m.Power == machine.PowerOn
	case dialect.SystemOff:
		return at.m.Power == machine.PowerOff
	case dialect.AfterOff:
		return at.m.Phase == machine.Off && recent(at.m.Since)
	case dialect.AfterOn:
		return recent(at.m.OnSince)
	case dialect.AfterStart:
		return recent(up)
	case dialect.NeverReset:
		return up.IsZero()
	case dialect.SettingsDue:
		p := at.m.Firmware.Pending()
		return p != nil && !p.Held || at.m.Firmware.Finishing() != nil
	case dialect.AfterEject:
		for _, s := range at.b.Slots {
			if s.ID == m.ids["slot"] {
				return s.Image == "" && recent(s.Since)
			}
		}
		return false
	}
	return true
}

// Error is the body of an error response as this vendor's service words it.
func (v *Vendor) Error(ms ...message.Message) []byte {
	body := v.Registries().Error(ms...)
	form := v.d.Presentation.Errors
	if form.Code == "" && !form.IDsOnly && !form.SingleObject && !form.SingleText && !form.FullVersions {
		return body
	}
	return inForm(body, form, v.d.Protocol.Registries)
}

// inForm puts an error response into a vendor's form.
func inForm(body []byte, form dialect.ErrorFormat, versions map[string]string) []byte {
	const info = "@Message.ExtendedInfo"
	o := decode(body)
	e, _ := o["error"].(object)
	if form.Code != "" {
		e["code"], e["message"] = form.Code, "See @Message.ExtendedInfo for more information."
	}
	all, _ := e[info].([]any)
	if form.FullVersions {
		e["code"] = withErrata(e["code"], versions)
		for i := range all {
			if m, ok := all[i].(object); ok {
				m["MessageId"] = withErrata(m["MessageId"], versions)
			}
		}
	}
	if form.IDsOnly {
		for i := range all {
			m, _ := all[i].(object)
			less := object{}
			for _, name := range []string{"MessageId", "MessageArgs", "RelatedProperties"} {
				if v, ok := m[name]; ok {
					less[name] = v
				}
			}
			all[i] = less
		}
	}
	if form.SingleObject && len(all) > 0 {
		e[info] = all[0]
	}
	if form.SingleText && len(all) > 0 {
		first, _ := all[0].(object)
		e[info] = first["Message"]
	}
	return encode(o)
}

// withErrata is a message ID with the whole version of its registry, if that is
// one that the vendor speaks a version of.
func withErrata(id any, versions map[string]string) any {
	text, _ := id.(string)
	prefix, rest, _ := strings.Cut(text, ".")
	version, key := versions[prefix], strings.LastIndexByte(rest, '.')
	if version == "" || key < 0 {
		return id
	}
	return prefix + "." + version + rest[key:]
}

// Success is the body of the answer to a write that was done; nil where this
// vendor's service has none.
func (v *Vendor) Success(q ofRequest) []byte {
	form := v.d.Presentation.Errors
	if form.Success == nil {
		return nil
	}
	says := form.Success
	f := v.face // which has at least that
	if i := slices.IndexFunc(f.tells, func(t tell) bool { return t.concerns(q) }); i >= 0 {
		says = &f.tells[i].Message
	}
	body, known := f.done.Load(says)
	if !known {
		body, _ = f.done.LoadOrStore(says, f.success(*says))
	}
	return body.([]byte)
}

// success is the body of an answer that says that a write was done.
func (f *face) success(as dialect.VendorMessage) []byte {
	form, versions := f.d.Presentation.Errors, f.d.Protocol.Registries
	m := says(as)
	m.Severity = message.OK
	if form.SuccessProperty != "" {
		form.Code = "" // which is of errors
	}
	body := inForm(message.Versions(versions).Error(m), form, versions)
	if form.SuccessProperty != "" {
		body = encode(object{form.SuccessProperty: decode(body)["error"]})
	}
	return body
}
