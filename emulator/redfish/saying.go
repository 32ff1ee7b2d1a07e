package redfish

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// said is an answer as this vendor's service words it.
func (x *exchange) said(status int, ms []message.Message) (int, []message.Message) {
	if x.host == nil {
		return status, ms
	}
	sayings := x.host.Dialect().Protocol.Messages
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

// told are messages about what was sent, with addresses as clients see them: a
// value may be one, which was read as the tree's.
func (x *exchange) told(ms []message.Message) []message.Message {
	if x.host == nil {
		return ms
	}
	f := faceOf(x.host.Dialect())
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
			to := f.address(arg)
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
