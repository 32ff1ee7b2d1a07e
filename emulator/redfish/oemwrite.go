package redfish

import (
	"net/http"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// writeOEM carries out what a PATCH sets of a vendor's own properties, and then
// the rest. It says whether it has answered.
func (x *request) writeOEM(in resource.Document, v resource.View, free func()) bool {
	if x.inner != "" {
		return false
	}
	all, rest, bad := x.vendor.Writes(x.match, in)
	switch {
	case len(bad) > 0:
		x.refuseAll(bad)
		return true
	case len(all) == 0:
		return false
	}
	c := x.call(in, v, nil)
	var last resource.Result // of one that has more to say than that it was done
	for _, q := range all {
		out, err := x.vendor.Write(x.context(), c, q)
		if err != nil {
			x.fail(err)
			return true
		}
		if out.Task != "" || out.Inner != nil || out.Body != nil {
			last = out
		}
	}
	says := last.Task != "" || last.Inner != nil || last.Body != nil
	switch {
	case len(rest.Fields) == 0 && says:
		x.answer(c, last, nil, nil)
	case len(rest.Fields) == 0:
		x.answerChange(c, nil)
	case says && x.match.OEM == nil:
		body, _ := resource.Normalize(rest).(resource.Object)
		if a := x.Do(x.context(), "", resource.InnerHoldingLock, http.MethodPatch, x.match.URI, body); a.Status >= http.StatusBadRequest {
			x.relay(a)
		} else {
			x.answer(c, last, nil, nil)
		}
	default:
		x.change(rest, x.match.View(resource.TakeSnapshot(x.host)), free)
	}
	return true
}

// patchOEM carries out a PATCH of a vendor's own resource.
func (x *request) patchOEM(in resource.Document, v resource.View) {
	c := x.call(in, v, nil)
	switch bad, done, err := x.vendor.Patch(x.context(), c); {
	case err != nil:
		x.fail(err)
	case !done:
		x.refuseAll(bad)
	default:
		x.answerChange(c, bad)
	}
}
