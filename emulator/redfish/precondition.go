package redfish

import (
	"net/http"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// checkPrecondition checks If-Match and If-None-Match of a write (RFC 9110, §13.1;
// DSP0266, "ETags"). When the precondition does not hold, it sends the error
// response and returns false.
func (x *request) checkPrecondition(at *resource.Snapshot) bool {
	ifMatch, ifNoneMatch := x.r.Header["If-Match"], x.r.Header["If-None-Match"]
	if len(ifMatch) == 0 && len(ifNoneMatch) == 0 {
		if x.vendor.IfMatchRequired(x.r.Method, x.match) {
			x.sendError(http.StatusPreconditionRequired, message.PreconditionRequired.With())
			return false
		}
		return true
	}
	if x.vendor.RejectsIfMatch(x.match) {
		x.sendError(http.StatusPreconditionFailed, message.PreconditionFailed.With())
		return false
	}
	etag := ""
	if !x.vendor.HasVolatileETag(x.match.Schema) && (len(ifNoneMatch) > 0 || !resource.MatchesAnyETag(ifMatch)) {
		etag = x.s.renderer.Representation(x.match, at).Tag()
	}
	if len(ifMatch) > 0 && !x.vendor.IfMatchHolds(ifMatch, etag) || len(ifNoneMatch) > 0 && x.vendor.IfNoneMatchHolds(ifNoneMatch, etag) {
		x.sendError(http.StatusPreconditionFailed, message.PreconditionFailed.With())
		return false
	}
	return true
}
