package redfish

import (
	"net/http"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// patchOEMProperties applies the OEM properties of a PATCH, and then the other
// properties. It returns false, and sends no response, when the PATCH has no OEM
// properties that the vendor's record makes writable.
func (x *request) patchOEMProperties(in resource.Document, v resource.View, unlock func()) bool {
	if x.inner != "" {
		return false
	}
	writes, rest, bad := x.vendor.Writes(x.match, in)
	switch {
	case len(bad) > 0:
		x.sendInputErrors(bad)
		return true
	case len(writes) == 0:
		return false
	}
	c := x.call(in, v, nil)
	var last resource.Result // result of the last write with a response to send
	for _, w := range writes {
		out, err := x.vendor.Write(x.context(), c, w)
		if err != nil {
			x.fail(err)
			return true
		}
		if out.Task != "" || out.Inner != nil || out.Body != nil {
			last = out
		}
	}
	hasResponse := last.Task != "" || last.Inner != nil || last.Body != nil
	switch {
	case len(rest.Fields) == 0 && hasResponse:
		x.sendResult(c, last, nil, nil)
	case len(rest.Fields) == 0:
		x.sendPatchResult(c, nil)
	case hasResponse && x.match.OEM == nil:
		body, _ := resource.Normalize(rest).(resource.Object)
		if r := x.Do(x.context(), "", resource.InnerHoldingLock, http.MethodPatch, x.match.URI, body); r.Status >= http.StatusBadRequest {
			x.sendInnerResponse(r)
		} else {
			x.sendResult(c, last, nil, nil)
		}
	default:
		x.patch(rest, x.match.View(resource.TakeSnapshot(x.host)), unlock)
	}
	return true
}

// patchOEMResource serves a PATCH of an OEM resource.
func (x *request) patchOEMResource(in resource.Document, v resource.View) {
	c := x.call(in, v, nil)
	switch bad, changed, err := x.vendor.Patch(x.context(), c); {
	case err != nil:
		x.fail(err)
	case !changed:
		x.sendInputErrors(bad)
	default:
		x.sendPatchResult(c, bad)
	}
}
