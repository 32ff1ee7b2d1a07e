package render

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
	"sync"
)

// compressed is the gzip of a representation. Its ETag is another: what is sent differs
// (RFC 9110, §8.8.3.3). A write takes either.
type compressed struct {
	Body         []byte
	ETag, Length []string
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one that there is
	return w
}}

// GzipETag is the ETag of a packed body, given that of the plain one, which may
// be empty.
func GzipETag(etag string) string {
	begin, quoted := strings.CutSuffix(etag, `"`)
	if !quoted {
		return etag
	}
	return begin + `-gzip"`
}

// Gzip returns a representation in fewer bytes. It is cached: a resource that
// changes has another representation.
func (s *Renderer) Gzip(p *Representation) *compressed {
	if z, ok := s.compressed.Get(p); ok {
		return z
	}
	var b bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	w.Reset(&b)
	_, _ = w.Write(p.Body) // a buffer takes all
	_ = w.Close()
	gzipWriters.Put(w)
	z := &compressed{Body: b.Bytes(), Length: []string{strconv.Itoa(b.Len())}, ETag: []string{GzipETag(p.Tag())}}
	s.compressed.Put(p, z)
	return z
}
