package vendor

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Reword returns an error's status and messages as this vendor's service has
// them, with URIs as clients see them.
func (v *Vendor) Reword(status int, ms []message.Message) (int, []message.Message) {
	ms = v.withClientURIs(ms)
	sayings := v.d.Protocol.Messages
	if len(sayings) == 0 {
		return status, ms
	}
	ms = slices.Clone(ms)
	for i, m := range ms {
		s, ok := sayings[m.Key]
		if !ok || m.Registry == nil || m.Registry.Prefix != "Base" {
			continue
		}
		d := message.Definition{
			Registry: &message.Registry{Prefix: s.Registry, Version: s.Version}, Key: s.Key,
			Severity: m.Severity, Text: s.Text, Resolution: s.Resolution,
		}
		ms[i] = d.Make(slices.Clone(m.Args)...)
		ms[i].Related = m.Related
		if s.Status != 0 && len(ms) == 1 {
			status = s.Status
		}
	}
	return status, ms
}

// withClientURIs are messages about what was sent with URIs as clients see them: a
// value may be one, which was read as the tree's.
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
			to := f.clientURI(arg)
			if to == arg {
				continue
			}
			m.Args = slices.Clone(m.Args)
			m.Args[n] = to
			m.Text, m.Resolution = strings.ReplaceAll(m.Text, arg, to), strings.ReplaceAll(m.Resolution, arg, to)
		}
	}
	return ms
}
