package redfish

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// worthPacking is from how many bytes on a body is smaller when it is packed.
const worthPacking = 512

// The values of headers.
var (
	varies  = []string{"Accept-Encoding"}
	gzipped = []string{"gzip"}
)

// wantsIdentity says whether a client wants a page as it is. Otherwise the page may
// be packed.
func (x *request) wantsIdentity(p *render.Representation) bool {
	if len(x.r.Header["Accept-Encoding"]) == 0 || len(p.Body) < worthPacking {
		return true
	}
	gzip, plainer := gzipQuality(x.r.Header["Accept-Encoding"])
	return gzip == 0 || plainer || !x.vendor.SupportsGzip()
}

// gzipQuality reads an Accept-Encoding header (RFC 9110, §12.5.3): how much gzip is
// wanted, 0 for not at all, and whether the plain body is said to be liked better.
func gzipQuality(header []string) (gzip float64, plainer bool) {
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

// showGzip sends a page in fewer bytes.
func (x *request) showGzip(p *render.Representation) {
	z := x.s.renderer.Gzip(p)
	h := x.w.Header()
	h["Etag"], h["Content-Type"], h["Content-Length"], h["Allow"] = z.ETag, p.ContentType, z.ContentLength, x.allow(p)
	h["Content-Encoding"] = gzipped
	if p.Link != nil {
		h["Link"] = p.Link
	}
	x.send(http.StatusOK, z.Body)
}

// accepts says whether a client takes a media type (RFC 9110, §12.5.1).
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
