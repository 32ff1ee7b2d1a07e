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

// rejectRule is a dialect.Rule, ready for use.
type rejectRule struct {
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
func (v *Vendor) Reject(q Request, in resource.Document) *Rejected {
	if v.presentation == nil {
		return nil
	}
	for i := range v.presentation.rejectRules {
		r := &v.presentation.rejectRules[i]
		if !r.concerns(q) || !r.during(q.Match, q.At) {
			continue
		}
		property, ok := r.sees(in, q.BodySize)
		if ok && len(r.SendsUnchanged) > 0 {
			property, ok = r.repeats(in, q.Match.Object(q.Match.View(q.At)))
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

// NewMessage is a message that a vendor has of his own.
func NewMessage(s dialect.VendorMessage, args ...string) message.Message {
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

// successMessage is a dialect.Tell, ready for use.
type successMessage struct {
	dialect.SuccessMessage
	at pattern
}

func (t *successMessage) concerns(q Request) bool { return q.isAbout(t.ResourceType, t.Method, t.at) }

// concerns says whether the rule is about what a request is about.
func (r *rejectRule) concerns(q Request) bool { return q.isAbout(r.ResourceType, r.Method, r.at) }

// isAbout says whether a request does that to such a resource.
func (q Request) isAbout(of, method string, at pattern) bool {
	m, what := q.Match, q.Method
	if m.Action != nil {
		what = m.Action.Name
	}
	if m.OEM != nil && at != nil && len(at) < len(split(m.URI)) {
		return false // it is about what the tree has there
	}
	return (of == "" || of == resource.TypeName(m.Schema)) && (method == "" || method == what) && (at == nil || at.holds(m.URI))
}

// sees says whether what was sent is what the rule is about, and which property
// of it.
func (r *rejectRule) sees(in resource.Document, bytes int64) (property string, ok bool) {
	sent := func(path string) bool { _, ok := in.Lookup(path); return ok }
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
		group, _ := in.Lookup(r.SendsAny[0])
		if d, ok := group.(resource.Document); !ok || len(d.Fields) <= r.MaxProperties {
			return "", false
		}
	}
	if len(r.HasPrefix) > 0 {
		found := false
		for _, path := range slices.Sorted(maps.Keys(r.HasPrefix)) {
			v, _ := in.Lookup(path)
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
			if v, ok := in.Lookup(path); ok && slices.Contains(want.of[path], fmt.Sprint(v)) == want.in {
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
func (r *rejectRule) repeats(in resource.Document, shown resource.Object) (property string, ok bool) {
	for _, path := range r.SendsUnchanged {
		is, known := resource.ValueAt(shown, path)
		sent, given := in.Lookup(path)
		if known && given && fmt.Sprint(is) == fmt.Sprint(sent) {
			return path, true
		}
	}
	return "", false
}

// during says whether the condition of the rule holds.
func (r *rejectRule) during(m *resource.Match, at *resource.Snapshot) bool {
	for name, values := range r.Stored {
		text := ""
		if is, ok := resource.OEMValueIn(at.BMC, name); ok {
			text = fmt.Sprint(is)
		}
		if !slices.Contains(values, text) {
			return false
		}
	}
	var up time.Time // zero: it has never been restarted
	if at.BMC.Life != nil {
		up = at.BMC.Life.Up
	}
	recent := func(since time.Time) bool { return !since.IsZero() && at.Now.Sub(since) < r.For }
	switch r.While {
	case dialect.InPOST, dialect.NotInPOST:
		in := at.Machine.Phase == machine.Starting || at.Machine.Phase == machine.POST || at.Machine.Phase == machine.Selecting
		return in == (r.While == dialect.InPOST)
	case dialect.SystemOn:
		return at.Machine.Power == machine.PowerOn
	case dialect.SystemOff:
		return at.Machine.Power == machine.PowerOff
	case dialect.AfterOff:
		return at.Machine.Phase == machine.Off && recent(at.Machine.Since)
	case dialect.AfterOn:
		return recent(at.Machine.OnSince)
	case dialect.AfterStart:
		return recent(up)
	case dialect.NeverReset:
		return up.IsZero()
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
	o := resource.Decode(body)
	e, _ := o["error"].(resource.Object)
	if form.Code != "" {
		e["code"], e["message"] = form.Code, "See @Message.ExtendedInfo for more information."
	}
	all, _ := e[info].([]any)
	if form.FullVersions {
		e["code"] = withErrata(e["code"], versions)
		for i := range all {
			if m, ok := all[i].(resource.Object); ok {
				m["MessageId"] = withErrata(m["MessageId"], versions)
			}
		}
	}
	if form.IDsOnly {
		for i := range all {
			m, _ := all[i].(resource.Object)
			less := resource.Object{}
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
		first, _ := all[0].(resource.Object)
		e[info] = first["Message"]
	}
	return resource.Encode(o)
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
func (v *Vendor) Success(q Request) []byte {
	form := v.d.Presentation.Errors
	if form.Success == nil {
		return nil
	}
	says := form.Success
	f := v.presentation // which has at least that
	if i := slices.IndexFunc(f.successMessages, func(t successMessage) bool { return t.concerns(q) }); i >= 0 {
		says = &f.successMessages[i].Message
	}
	body, known := f.successBodies.Load(says)
	if !known {
		body, _ = f.successBodies.LoadOrStore(says, f.success(*says))
	}
	return body.([]byte)
}

// success is the body of an answer that says that a write was done.
func (f *presentation) success(as dialect.VendorMessage) []byte {
	form, versions := f.d.Presentation.Errors, f.d.Protocol.Registries
	m := NewMessage(as)
	m.Severity = message.OK
	if form.SuccessProperty != "" {
		form.Code = "" // which is of errors
	}
	body := inForm(message.Versions(versions).Error(m), form, versions)
	if form.SuccessProperty != "" {
		body = resource.Encode(resource.Object{form.SuccessProperty: resource.Decode(body)["error"]})
	}
	return body
}
