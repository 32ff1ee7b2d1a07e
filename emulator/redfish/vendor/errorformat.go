package vendor

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Error returns the body of an error response with these messages, in the vendor's
// ErrorFormat.
func (v *Vendor) Error(ms ...message.Message) []byte {
	body := v.Registries().Error(ms...)
	form := v.d.Presentation.Errors
	if form.Code == "" && !form.EmptyLists && !form.Counts && !form.IDsOnly && !form.SingleObject && !form.SingleText && !form.FullVersions {
		return body
	}
	return reformatError(body, form, v.d.Protocol.Registries)
}

// reformatError returns a standard error response in a vendor's format. versions has
// the vendor's versions of the registries.
func reformatError(body []byte, form dialect.ErrorFormat, versions map[string]string) []byte {
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
	if form.Counts || form.EmptyLists {
		for i := range all {
			if m, ok := all[i].(resource.Object); ok {
				addLists(m, form.Counts)
			}
		}
	}
	if form.IDsOnly {
		for i := range all {
			m, _ := all[i].(resource.Object)
			short := resource.Object{}
			for _, name := range []string{"MessageId", "MessageArgs", "RelatedProperties"} {
				if v, ok := m[name]; ok {
					short[name] = v
				}
			}
			all[i] = short
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

// addLists adds the lists that a message lacks, and if counts is set the counts of their
// elements.
func addLists(m resource.Object, counts bool) {
	for _, name := range []string{"MessageArgs", "RelatedProperties"} {
		list, _ := m[name].([]any)
		if list == nil {
			list = []any{}
		}
		if m[name] = list; counts {
			m[name+"@odata.count"] = len(list)
		}
	}
}

// withErrata returns a message ID with the full version of its registry. An ID of a
// registry that versions does not have stays as it is.
func withErrata(id any, versions map[string]string) any {
	text, _ := id.(string)
	prefix, rest, _ := strings.Cut(text, ".")
	version, key := versions[prefix], strings.LastIndexByte(rest, '.')
	if version == "" || key < 0 {
		return id
	}
	return prefix + "." + version + rest[key:]
}

// successMessage is a dialect.SuccessMessage with its pattern parsed.
type successMessage struct {
	dialect.SuccessMessage
	uri pattern
}

// Success returns the body of the response to a write that succeeded, or nil when the
// vendor's service has none.
func (v *Vendor) Success(q Request) []byte {
	m := v.d.Presentation.Errors.Success
	if m == nil {
		return nil
	}
	f := v.presentation // not nil: a record with Success has a presentation
	if i := slices.IndexFunc(f.successMessages, func(t successMessage) bool { return q.selects(t.ResourceType, t.Method, t.uri) }); i >= 0 {
		m = &f.successMessages[i].Message
	}
	body, known := f.successBodies.Load(m)
	if !known {
		body, _ = f.successBodies.LoadOrStore(m, f.successBody(*m))
	}
	return body.([]byte)
}

// successBody renders the body of a response with a success message.
func (f *presentation) successBody(s dialect.VendorMessage) []byte {
	form, versions := f.d.Presentation.Errors, f.d.Protocol.Registries
	m := NewMessage(s)
	m.Severity = message.OK
	if form.SuccessProperty != "" {
		form.Code = "" // ErrorFormat.Code belongs to error alone
	}
	body := reformatError(message.Versions(versions).Error(m), form, versions)
	if form.SuccessProperty != "" {
		body = resource.Encode(resource.Object{form.SuccessProperty: resource.Decode(body)["error"]})
	}
	return body
}
