package redfish

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// The values of Content-Type.
var (
	jsonContent  = []string{string(resource.JSON) + ";charset=utf-8"}
	plainContent = []string{"text/plain;charset=utf-8"}
)

// longResponse is the size of a body that net/http, with the headers, does not write
// at once, in bytes.
const longResponse = 3 << 10

// sendRepresentation sends a representation with its headers.
func (x *request) sendRepresentation(status int, p *render.Representation) {
	h := x.w.Header()
	h["Etag"], h["Content-Type"], h["Content-Length"], h["Allow"] = p.ETag[:], p.ContentType, p.ContentLength[:], x.allow(p)
	if p.Link != nil {
		h["Link"] = p.Link
	}
	x.send(status, p.Body)
}

// sendError sends an error response (DSP0266, "Error responses").
func (x *request) sendError(status int, ms ...message.Message) {
	if len(ms) > resource.MaxMessages {
		ms = append(slices.Clip(ms[:resource.MaxMessages]), message.MaximumErrorsExceeded.With())
	}
	if x.inner != "" {
		x.messages = ms
	}
	var body []byte
	if x.vendor == nil {
		body = message.Versions(nil).Error(ms...)
	} else {
		status, ms = x.vendor.Reword(status, ms)
		body = x.vendor.Error(ms...)
	}
	// Every 405 has Allow (DSP0266, "Response headers"): some vendors send it for methods
	// that the service does not implement, too, which is 501 in the standard.
	if h := x.w.Header(); status == http.StatusMethodNotAllowed && h["Allow"] == nil && x.match != nil {
		h["Allow"] = x.allowAt(x.snapshot())
	}
	x.w.Header()["Content-Type"] = jsonContent
	x.send(status, body)
}

// sendPlainTextError sends an error as plain text, without an error object.
func (x *request) sendPlainTextError(status int, m message.Message) {
	x.w.Header()["Content-Type"] = plainContent
	x.send(status, []byte(m.Text+"\n"))
}

// sendSuccess sends the response to a write that shows no resource: 204, or the
// vendor's success message.
func (x *request) sendSuccess() {
	body := x.vendor.Success(vendor.Request{Method: x.r.Method, Match: x.match})
	if body == nil {
		x.sendNoContent()
		return
	}
	x.w.Header()["Content-Type"] = jsonContent
	x.send(http.StatusOK, body)
}

// sendNoContent sends 204.
func (x *request) sendNoContent() { x.sendStatus(http.StatusNoContent) }

// sendStatus sends a response without a body.
func (x *request) sendStatus(status int) {
	x.status = status
	x.w.WriteHeader(status)
}

// send sends a response with a body.
func (x *request) send(status int, body []byte) {
	x.status = status
	onLong := x.s.onLongResponse
	// With HTTP/2 other requests share the connection.
	if onLong != nil && x.inner == "" && len(body) > longResponse && x.r.Method != http.MethodHead && x.r.ProtoMajor == 1 {
		onLong(x.r.Context())
	}
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return
	}
	x.bytesOut += int64(len(body))
	if _, err := x.w.Write(body); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		x.s.log.Debug("client gone", "bmc", localAddress(x.r), "err", err)
	}
}

// setLocation sets the Location header to a standard URI, as the vendor's clients see it.
func (x *request) setLocation(uri string) {
	x.w.Header()["Location"] = []string{x.vendor.URI(uri)}
}

// allow returns the Allow header for a representation, or that of the action or the
// Members URI which the request names.
func (x *request) allow(p *render.Representation) []string {
	if x.match.Action != nil || x.match.Members {
		return x.vendor.Allow(x.match, x.match.Allow)
	}
	return x.vendor.Allow(x.match, p.Allow)
}

// allowAt returns the Allow header of the request's URI at a time.
func (x *request) allowAt(at *resource.Snapshot) []string {
	if x.match.Action != nil || x.match.Members {
		return x.vendor.Allow(x.match, x.match.Allow)
	}
	return x.vendor.Allow(x.match, x.s.renderer.Representation(x.match, at).Allow)
}
