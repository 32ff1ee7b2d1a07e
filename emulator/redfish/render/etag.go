package render

import (
	"fmt"
	"maps"
	"sync"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// encodeWithETag returns the JSON text of a resource with its ETag, and the ETag. The
// ETag changes if and only if a property that is not volatile changes. The body of
// a collection with more members than a page holds has the first page alone; its
// ETag covers all members.
func encodeWithETag(o resource.Object, volatile []string, v *vendor.Vendor) ([]byte, string) {
	hashed, shown := o, o
	if len(volatile) > 0 {
		hashed = resource.Without(o, volatile)
	}
	page, paged := firstPage(o, v.PageSize())
	if paged {
		shown = page
	}
	b := startEncoding()
	defer b.release()
	b.text = resource.AppendObject(b.text, hashed)
	tag := v.ETag(b.text)
	if paged || len(volatile) > 0 {
		b.text = resource.AppendObject(b.text[:0], shown)
	}
	return withETag(b.text, tag), tag
}

// withETag returns a copy of a body with @odata.etag as its first property.
func withETag(body []byte, tag string) []byte {
	b := make([]byte, 0, len(body)+len(tag)+20)
	b = append(resource.AppendString(append(b, `{"@odata.etag":`...), tag), ',')
	return append(b, body[1:]...)
}

// encoding is a reused buffer: a body is encoded in it before its size is known.
type encoding struct{ text []byte }

var encodings = sync.Pool{New: func() any { return &encoding{make([]byte, 0, 16<<10)} }}

func startEncoding() *encoding {
	b := encodings.Get().(*encoding)
	b.text = b.text[:0]
	return b
}

func (b *encoding) release() { encodings.Put(b) }

// firstPage returns a collection with its first size members and a link to the
// next page; false when it has no more members than that.
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
