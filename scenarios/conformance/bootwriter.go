package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// bootWriter writes boot overrides in the way that a BMC accepts, and knows which
// that is.
type bootWriter struct {
	run      *Run
	uri      string // the system or its settings
	settings bool
	undo     []Undo
	mode     string // the mode that the system has
	quirks   []Quirk
}

// bootWriter prepares writes of the boot override. What takes them back is the
// override before.
func (r *Run) bootWriter(ctx context.Context) (*bootWriter, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	was := overrideOf(place.System.At("Boot"))
	w := &bootWriter{run: r, uri: place.SystemURI, mode: was.mode}
	if was.enabled == "" || was.enabled == "Disabled" || was.target == "" || was.target == "None" {
		was = override{target: "None", enabled: "Disabled"}
	}
	// Where a BMC refuses the properties together, Disabled alone clears too.
	w.undo = []Undo{{Method: http.MethodPatch, URI: w.uri, Match: true, Body: jsonBody(was.body()), Otherwise: []json.RawMessage{
		jsonBody(override{was.target, was.enabled, w.mode}.body()), jsonBody(override{enabled: was.enabled}.body()),
	}}}
	return w, nil
}

// patch writes an override as it is. Match is the If-Match header; empty: none.
func (w *bootWriter) patch(ctx context.Context, o override, match string) (*Response, error) {
	q := Request{Method: http.MethodPatch, URI: w.uri, Body: o.body(), Timeout: 2 * time.Minute}
	if match != "" {
		q.Header = http.Header{"If-Match": {match}}
	}
	return w.run.Change(ctx, Change{Request: q, Undo: w.undo})
}

// tag returns the present ETag of the resource to be written.
func (w *bootWriter) tag(ctx context.Context) (string, error) {
	resp, err := w.run.Do(ctx, Request{URI: w.uri})
	if err != nil {
		return "", err
	}
	return resp.Header.Get("ETag"), nil
}

// boot returns the override that the system shows.
func (w *bootWriter) boot(ctx context.Context) (override, error) {
	v, _, err := w.run.Get(ctx, w.uri)
	return overrideOf(v.At("Boot")), err
}

// attempt is one way to write an override, and the quirk that makes it necessary.
type attempt struct {
	override override
	quirk    string
}

// write writes an override by the first way that the BMC accepts: the way of the
// standard first, then what clients have learnt. Each is sent with the ETag when the
// BMC wants that.
func (w *bootWriter) write(ctx context.Context, o override) error {
	full := o
	if full.mode == "" {
		full.mode = w.mode
	}
	attempts := []attempt{{o, ""}, {full, "boot-full-request"}}
	if o.enabled == "Disabled" {
		attempts = append(attempts, attempt{override{enabled: "Disabled"}, ""})
	}
	now, err := w.boot(ctx)
	if err != nil {
		return err
	}
	if change := o.without(now); change != o && change != (override{}) {
		attempts = append(attempts, attempt{change, "boot-redundant-rejected"})
	}
	var first *Response
	for _, a := range attempts {
		resp, err := w.patch(ctx, a.override, "")
		if err != nil {
			return err
		}
		if resp.Status == http.StatusPreconditionRequired || resp.Status == http.StatusPreconditionFailed {
			tag, err := w.tag(ctx)
			if err != nil {
				return err
			}
			if resp, err = w.patch(ctx, a.override, tag); err != nil {
				return err
			}
			if resp.Status/100 == 2 {
				w.found("etag-required")
			}
		}
		if resp.Status/100 == 2 {
			w.found(a.quirk)
			return nil
		}
		if first == nil {
			first = resp
		}
		if resp.Status >= 500 {
			break
		}
	}
	if w.viaSettings(ctx) {
		return w.write(ctx, o)
	}
	return Findingf("PATCH of Boot with %s: %s", o, first.Problem())
}

// found notes a quirk, once.
func (w *bootWriter) found(quirk string) {
	if quirk != "" && !slices.ContainsFunc(w.quirks, func(q Quirk) bool { return q.Name == quirk }) {
		w.quirks = append(w.quirks, Quirk{Name: quirk})
	}
}

// viaSettings moves the writes to the system's settings object, where it has one.
func (w *bootWriter) viaSettings(ctx context.Context) bool {
	if w.settings {
		return false
	}
	place, err := w.run.Place(ctx)
	if err != nil {
		return false
	}
	uri, err := place.System.At("@Redfish.Settings", "SettingsObject").Link()
	if err != nil {
		return false
	}
	w.settings, w.uri = true, uri
	for i := range w.undo {
		w.undo[i].URI = uri
	}
	w.found("boot-readonly-use-settings")
	return true
}

// shows waits until the system shows an override.
func (w *bootWriter) shows(ctx context.Context, want override) error {
	if w.run.bmc.dry != nil {
		return nil
	}
	var now override
	ok, err := w.run.Poll(ctx, time.Second, 10*time.Second, func() (bool, error) {
		var err error
		now, err = w.boot(ctx)
		return now.target == want.target && now.enabled == want.enabled && (want.mode == "" || now.mode == want.mode), err
	})
	if err == nil && !ok {
		err = Findingf("the boot override is %s after it was set to %s", now, want)
	}
	return err
}

// accepts sends an override, with the ETag when the BMC wants one, and reports
// whether the BMC takes it.
func (w *bootWriter) accepts(ctx context.Context, o override) (ok bool, problem string, err error) {
	resp, err := w.patch(ctx, o, "")
	if err != nil {
		return false, "", err
	}
	if resp.Status == http.StatusPreconditionRequired || resp.Status == http.StatusPreconditionFailed {
		tag, err := w.tag(ctx)
		if err != nil {
			return false, "", err
		}
		if resp, err = w.patch(ctx, o, tag); err != nil {
			return false, "", err
		}
	}
	if resp.Status == http.StatusMethodNotAllowed && w.viaSettings(ctx) {
		return w.accepts(ctx, o)
	}
	return resp.Status/100 == 2, resp.Problem(), nil
}
