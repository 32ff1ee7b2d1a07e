package redfish

import (
	"net/http"
)

// writeOEM carries out what a PATCH sets of a vendor's own properties, and then
// the rest. It says whether it has answered.
func (x *exchange) writeOEM(in document, v view, free func()) bool {
	if x.inner != "" {
		return false
	}
	vendor := x.vendor()
	all, rest, bad := vendor.Writes(x.match, in)
	switch {
	case len(bad) > 0:
		x.refuseAll(bad)
		return true
	case len(all) == 0:
		return false
	}
	c := x.operation(in, v, nil)
	var last reply // of one that has more to say than that it was done
	for _, q := range all {
		out, err := vendor.Write(x.context(), c, q)
		if err != nil {
			x.fail(err)
			return true
		}
		if out.job != "" || out.made != nil || out.body != nil {
			last = out
		}
	}
	says := last.job != "" || last.made != nil || last.body != nil
	switch {
	case len(rest.fields) == 0 && says:
		x.answer(c, last, nil, nil)
	case len(rest.fields) == 0:
		x.changed(c, nil)
	case says && x.match.vendor == nil:
		body, _ := normal(rest).(object)
		if a := x.Do(x.context(), "", within, http.MethodPatch, x.match.uri, body); a.status >= http.StatusBadRequest {
			x.relay(a)
		} else {
			x.answer(c, last, nil, nil)
		}
	default:
		x.change(rest, x.match.view(look(x.host)), free)
	}
	return true
}

// patchOEM carries out a PATCH of a vendor's own resource.
func (x *exchange) patchOEM(in document, v view) {
	c := x.operation(in, v, nil)
	switch bad, done, err := x.vendor().Patch(x.context(), c); {
	case err != nil:
		x.fail(err)
	case !done:
		x.refuseAll(bad)
	default:
		x.changed(c, bad)
	}
}
