package render

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// encodeWithETag encodes a body with its ETag, which depends on all of the body
// but for what is volatile: it changes if and only if the rest does. Of a
// collection with more than a page of members the body shows the first page;
// the ETag is of all members.
func encodeWithETag(o resource.Object, volatile []string, as dialect.Protocol) ([]byte, string) {
	lasting, first := o, o
	if len(volatile) > 0 {
		lasting = resource.Without(o, volatile)
	}
	page, cut := firstPage(o, as.PageSize)
	if cut {
		first = page
	}
	b := startEncoding()
	defer b.release()
	b.text = resource.AppendObject(b.text, lasting)
	tag := resource.FormatETag(resource.ETag(b.text), as.ETags)
	if cut || len(volatile) > 0 {
		b.text = resource.AppendObject(b.text[:0], first)
	}
	return withETag(b.text, tag), tag
}

// withETag is a copy of a body with its ETag as the first property.
func withETag(body []byte, tag string) []byte {
	b := make([]byte, 0, len(body)+len(tag)+20)
	b = append(resource.AppendString(append(b, `{"@odata.etag":`...), tag), ',')
	return append(b, body[1:]...)
}

// encoding is a buffer in which a body is encoded before its size is known.
type encoding struct{ text []byte }

var encodings = sync.Pool{New: func() any { return &encoding{make([]byte, 0, 16<<10)} }}

func startEncoding() *encoding {
	b := encodings.Get().(*encoding)
	b.text = b.text[:0]
	return b
}

func (b *encoding) release() { encodings.Put(b) }

// firstPage is a collection with the first members alone; false for one that has
// no more.
func firstPage(o resource.Object, size int) (resource.Object, bool) {
	if size <= 0 {
		return o, false
	}
	first := maps.Clone(o)
	switch members := o["Members"].(type) {
	case []resource.Object:
		if len(members) <= size {
			return o, false
		}
		first["Members"] = members[:size]
	case []any:
		if len(members) <= size {
			return o, false
		}
		first["Members"] = members[:size]
	default:
		return o, false
	}
	first["Members@odata.nextLink"] = fmt.Sprintf("%s?$skip=%d", o["@odata.id"], size)
	return first, true
}

// StrongETag is an ETag as it was before it was written.
func StrongETag(etag string) string {
	if rest, weak := strings.CutPrefix(etag, "W/"); weak {
		return rest
	}
	return `"` + strings.Trim(etag, `"`) + `"`
}
