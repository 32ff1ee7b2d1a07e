package vendor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// NewMessage returns a message of a vendor's registry. Arguments that its text has no
// place for are left out.
func NewMessage(s dialect.VendorMessage, args ...string) message.Message {
	d := message.Definition{
		Registry: &message.Registry{Prefix: s.Registry, Version: s.Version}, Key: s.Key,
		Severity: message.Critical, Text: s.Text, Resolution: s.Resolution,
	}
	used := 0
	for i := range args {
		if hasPlace(s.Text, i) {
			used = i + 1
		}
	}
	return d.Make(args[:used]...)
}

// newHookMessage is NewMessage for the arguments of a hook, of which some may be missing.
func newHookMessage(s dialect.VendorMessage, args ...string) message.Message {
	for hasPlace(s.Text, len(args)) {
		args = append(args, "unknown")
	}
	return NewMessage(s, args...)
}

// hasPlace reports whether a message text has a place for the argument with an index:
// %1 for index 0.
func hasPlace(text string, index int) bool {
	return strings.Contains(text, fmt.Sprintf("%%%d", index+1))
}

// Reword returns the status and the messages of an error as this vendor's service has
// them: messages of the Base registry that Protocol.Messages replaces, and the
// vendor's URIs in place of standard ones.
func (v *Vendor) Reword(status int, ms []message.Message) (int, []message.Message) {
	ms = v.withClientURIs(ms)
	replaced := v.d.Protocol.Messages
	if len(replaced) == 0 {
		return status, ms
	}
	alone := len(ms) == 1
	out := make([]message.Message, 0, 2*len(ms))
	for _, m := range ms {
		s, ok := replaced[m.Key]
		if !ok || m.Registry == nil || m.Registry.Prefix != "Base" {
			out = append(out, m)
			continue
		}
		d := message.Definition{
			Registry: &message.Registry{Prefix: s.Registry, Version: s.Version}, Key: s.Key,
			Severity: m.Severity, Text: s.Text, Resolution: s.Resolution,
		}
		worded := d.Make(slices.Clone(m.Args)...)
		worded.Related = m.Related
		switch form := v.d.Presentation.Errors; {
		case form.ReplacedFirst:
			out = append(out, m, worded)
		case form.KeepReplaced:
			out = append(out, worded, m)
		default:
			out = append(out, worded)
		}
		if s.Status != 0 && alone {
			status = s.Status
		}
	}
	return status, out
}

// withClientURIs replaces standard URIs in messages about a property by the vendor's:
// the value of the property may have been a URI, which StandardURIs has translated.
func (v *Vendor) withClientURIs(ms []message.Message) []message.Message {
	f := v.presentation
	if f == nil {
		return ms
	}
	ms = slices.Clone(ms)
	for i := range ms {
		m := &ms[i]
		if len(m.Related) == 0 {
			continue
		}
		for n, arg := range m.Args {
			uri := f.clientURI(arg)
			if uri == arg {
				continue
			}
			m.Args = slices.Clone(m.Args)
			m.Args[n] = uri
			m.Text, m.Resolution = strings.ReplaceAll(m.Text, arg, uri), strings.ReplaceAll(m.Resolution, arg, uri)
		}
	}
	return ms
}
