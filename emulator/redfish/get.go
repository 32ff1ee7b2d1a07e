package redfish

import (
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// getters serve a GET whose response is not the representation of the resource.
var getters = map[resource.ResponseKind]func(x *request, v resource.View){
	resource.EventStreamResponse: (*request).stream,
	resource.TaskMonitorResponse: (*request).readTaskMonitor,
}

// readable returns a resource's representation as the client may read it: secrets in URIs
// are hidden from users who may not change the resource.
func (x *request) readable(p *render.Representation, m *resource.Match, at *resource.Snapshot) *render.Representation {
	if p == nil || len(p.Body) == 0 || m.Raw != nil || m.Upload != nil || x.actor.ReadsURISecrets(m, at) {
		return p
	}
	return x.s.renderer.WithoutURISecrets(p)
}

// get serves a GET or HEAD of a resource with its representation.
func (x *request) get(p *render.Representation, at *resource.Snapshot) {
	p = x.readable(p, x.match, at)
	if getter := getters[x.match.Response]; getter != nil {
		getter(x, x.match.View(at))
		return
	}
	if x.vendor.LocationIsTask() && resource.TypeName(x.match.Schema) == "Task" && x.readTask(p, at) {
		return
	}
	if x.r.URL.RawQuery != "" {
		if p = x.query(p); p == nil {
			return
		}
	}
	if p.MediaType == resource.JSON && x.vendor.EchoesTrailingSlash() && strings.HasSuffix(x.r.URL.Path, "/") {
		p = x.s.renderer.WithTrailingSlashes(p)
	}
	if a := x.r.Header["Accept"]; len(a) > 0 && !accepts(a, p.MediaType) {
		x.sendError(http.StatusNotAcceptable, message.HeaderInvalid.With("Accept"))
		return
	}
	x.w.Header()["Vary"] = varyAcceptEncoding
	if p.MediaType == resource.JSON {
		if body := x.vendor.ReplaceBody(x.host, x.match, p.Body); body != nil {
			x.sendRepresentation(http.StatusOK, p.With(body))
			return
		}
	}
	plain := x.wantsIdentity(p)
	if x.vendor.GzipOnly(x.match.URI) {
		plain = false
		if gzip, _ := gzipQuality(x.r.Header["Accept-Encoding"]); gzip == 0 {
			x.sendError(http.StatusNotAcceptable, message.HeaderInvalid.With("Accept-Encoding"))
			return
		}
	}
	if tags := x.r.Header["If-None-Match"]; len(tags) > 0 && x.vendor.IfNoneMatchHolds(tags, p.Tag()) {
		x.w.Header()["Etag"] = p.ETag[:]
		if !plain {
			x.w.Header()["Etag"] = x.s.renderer.Gzip(p).ETag
		}
		x.status = http.StatusNotModified
		x.w.WriteHeader(x.status)
		return
	}
	if !plain {
		x.sendGzip(p)
		return
	}
	x.sendRepresentation(http.StatusOK, p)
}
