package redfish

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
	body         []byte
	etag, length []string
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one that there is
	return w
}}

// packedTag is the ETag of a packed body, given that of the plain one, which may
// be empty.
func packedTag(etag string) string {
	begin, quoted := strings.CutSuffix(etag, `"`)
	if !quoted {
		return etag
	}
	return begin + `-gzip"`
}

// gzip returns a representation in fewer bytes. It is cached: a resource that
// changes has another representation.
func (s *Renderer) gzip(p *representation) *compressed {
	if z, ok := s.compressed.get(p); ok {
		return z
	}
	var b bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	w.Reset(&b)
	_, _ = w.Write(p.body) // a buffer takes all
	_ = w.Close()
	gzipWriters.Put(w)
	z := &compressed{body: b.Bytes(), length: []string{strconv.Itoa(b.Len())}, etag: []string{packedTag(p.tag())}}
	s.compressed.put(p, z)
	return z
}
