package render

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"sync"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Compressed is the gzip form of a representation. Its ETag differs from that of the
// identity form, because the bytes do (RFC 9110, §8.8.3.3). If-Match of a write
// accepts either.
type Compressed struct {
	Body                []byte
	ETag, ContentLength []string // values of headers
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails for an invalid level only
	return w
}}

// Gzip returns the gzip form of a representation. It is cached by representation: a
// resource that changes has another one.
func (s *Renderer) Gzip(p *Representation) *Compressed {
	if z, ok := s.compressed.Get(p); ok {
		return z
	}
	var b bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	w.Reset(&b)
	_, _ = w.Write(p.Body) // a bytes.Buffer returns no errors
	_ = w.Close()
	gzipWriters.Put(w)
	z := &Compressed{Body: b.Bytes(), ContentLength: []string{strconv.Itoa(b.Len())}, ETag: []string{resource.GzipETag(p.Tag())}}
	s.compressed.Put(p, z)
	return z
}
