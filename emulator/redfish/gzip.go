package redfish

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// minGzipBody is the size from which on bodies are compressed, in bytes. Shorter ones
// hardly become smaller.
const minGzipBody = 512

// The values of headers.
var (
	varyAcceptEncoding  = []string{"Accept-Encoding"}
	contentEncodingGzip = []string{"gzip"}
)

// wantsIdentity reports whether the response to a client is the identity form of a
// representation. Otherwise it may be the gzip form.
func (x *request) wantsIdentity(p *render.Representation) bool {
	if len(x.r.Header["Accept-Encoding"]) == 0 || len(p.Body) < minGzipBody {
		return true
	}
	gzip, prefersIdentity := gzipQuality(x.r.Header["Accept-Encoding"])
	return gzip == 0 || prefersIdentity || !x.vendor.SupportsGzip()
}

// gzipQuality parses an Accept-Encoding header (RFC 9110, §12.5.3). It returns the
// weight of gzip, 0 when gzip is not acceptable, and whether identity has a larger
// one.
func gzipQuality(header []string) (gzip float64, prefersIdentity bool) {
	var rest, identity float64
	named := false
	for _, line := range header {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(part, ";")
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q="), 64)
			if params == "" || err != nil {
				q = 1
			}
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				gzip, named = q, true
			case "*":
				rest = q
			case "identity":
				identity = q
			}
		}
	}
	if !named {
		gzip = rest
	}
	return gzip, identity > gzip
}

// sendGzip sends the gzip form of a representation.
func (x *request) sendGzip(p *render.Representation) {
	z := x.s.renderer.Gzip(p)
	h := x.w.Header()
	h["Etag"], h["Content-Type"], h["Content-Length"], h["Allow"] = z.ETag, p.ContentType, z.ContentLength, x.allow(p)
	h["Content-Encoding"] = contentEncodingGzip
	if p.Link != nil {
		h["Link"] = p.Link
	}
	x.send(http.StatusOK, z.Body)
}

// accepts reports whether an Accept header allows a media type (RFC 9110, §12.5.1).
func accepts(header []string, m resource.MediaType) bool {
	kind, _, _ := strings.Cut(string(m), "/")
	for _, line := range header {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(part, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			if name != string(m) && name != kind+"/*" && name != "*/*" {
				continue
			}
			if q := strings.ReplaceAll(params, " ", ""); q != "q=0" && q != "q=0.0" {
				return true
			}
		}
	}
	return false
}
