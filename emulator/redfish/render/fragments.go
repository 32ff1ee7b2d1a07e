package render

import (
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// Fragments exist for speed alone: after a change of a system, only the properties
// that depend on the changed state are made and encoded again; the text of the
// others is copied from the representation before. Only ComputerSystem has them,
// and vendors' transforms rule them out. BenchmarkFloor/generic/patch/tls/16
// measures 0.40 to 0.43 of the floor (of-floor/cpu) with them and 0.14 to 0.16
// without.

// span locates the text of a fragment in a body that has no ETag yet, in bytes.
type span struct{ from, to int32 }

// compose renders a resource that has fragments, with the same result as Render. It
// copies unchanged fragments from the previous representation, which may be nil.
func compose(vendor *vendor.Vendor, m *resource.Match, v resource.View, at *resource.Snapshot, old *cacheEntry) *cacheEntry {
	spans := make([]span, 0, len(m.Fragments)+1)
	b := startEncoding()
	defer b.release()
	var before []byte // the previous body without its ETag
	if old != nil && old.spans != nil {
		before = old.Body[len(old.Body)-old.untagged:]
	}
	add := func(dependsOn resource.Parts, properties func(v resource.View) resource.Object) {
		from := len(b.text)
		if i := len(spans); before != nil && dependsOn.Same(&old.at, at) {
			b.text = append(b.text, before[old.spans[i].from:old.spans[i].to]...)
		} else {
			b.text = resource.AppendMembers(b.text, properties(v))
		}
		spans = append(spans, span{int32(from), int32(len(b.text))})
	}
	b.text = append(b.text, '{')
	add(m.DependsOn&^m.FragmentParts, m.Stable)
	for i, f := range m.Fragments {
		switch {
		case f.In == "" || i > 0 && m.Fragments[i-1].In == f.In:
			b.text = append(b.text, ',')
		default:
			b.text = append(resource.AppendString(append(b.text, ','), f.In), ':', '{')
		}
		add(f.DependsOn, f.Properties)
		if f.In != "" && (i == len(m.Fragments)-1 || m.Fragments[i+1].In != f.In) {
			b.text = append(b.text, '}')
		}
	}
	b.text = append(b.text, '}')
	tag := vendor.ETag(b.text)
	return &cacheEntry{NewRepresentation(resource.JSON, withETag(b.text, tag), tag, m.DescribedBy), *at, spans, len(b.text)}
}
