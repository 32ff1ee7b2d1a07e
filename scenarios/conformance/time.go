package conformance

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// timeChecks are the checks of the clock.
var timeChecks = []Check{
	{
		ID: "TIME-001", Title: "the clock is right within 60 s; offset and NTP are readable", Level: ReadOnly, Protocol: Redfish, Step: Boot,
		Predicts: "TLS and virtual media reject certificates", Remedy: "configure NTP",
		After: []string{"SYS-003"}, Run: clockRight,
	},
}

// mostSkew is how far the BMC's clock may be off.
const mostSkew = time.Minute

var offsetForm = regexp.MustCompile(`^[+-]\d\d:\d\d$`)

// clockRight compares the BMC's clock with this computer's.
func clockRight(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	v, _, err := r.Get(ctx, place.ManagerURI)
	if err != nil {
		return Judge(err)
	}
	text, err := v.At("DateTime").Text()
	if err != nil {
		return Judge(err)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Failed("%s is %q, not a date-time", v.At("DateTime").Path(), text)
	}
	skew := at.Sub(r.Now()).Round(time.Second)
	o := Passed("").With("clock skew", "%v", skew)
	offset := v.At("DateTimeLocalOffset").TextOr("")
	switch {
	case skew.Abs() > mostSkew:
		o.Verdict, o.Reason = Fail, fmt.Sprintf("the BMC's clock is off by %v", skew)
	case offset != "" && !offsetForm.MatchString(offset):
		o.Verdict, o.Reason = Warn, fmt.Sprintf("DateTimeLocalOffset is %q, not like +00:00", offset)
	}
	if uri, err := place.Manager.At("NetworkProtocol").Link(); err == nil {
		if protocols, err := r.Page(ctx, uri); err == nil {
			if on, err := protocols.At("NTP", "ProtocolEnabled").Bool(); err == nil {
				o = o.With("NTP", "%v", on)
			}
		}
	}
	if !r.Level().Allows(Reversible) || offset == "" || o.Verdict == Fail {
		return o
	}
	return r.offsetWritten(ctx, o, place.ManagerURI, offset)
}

// offsetWritten writes the present offset, which changes nothing.
func (r *Run) offsetWritten(ctx context.Context, o Outcome, uri, offset string) Outcome {
	resp, err := r.patch(ctx, Change{Request: Request{
		URI: uri, Body: jsonBody(map[string]string{"DateTimeLocalOffset": offset}),
	}})
	if err != nil {
		return Judge(err)
	}
	if resp.Status == http.StatusBadRequest {
		o.Verdict, o.Reason = Warn, "a PATCH of DateTimeLocalOffset with its present value: "+resp.Problem()
		return o.Quirky("clock-offset-same-value")
	}
	return o
}
