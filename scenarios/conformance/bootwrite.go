package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// overrideWritten sets PXE once and reads it back.
func overrideWritten(ctx context.Context, r *Run) Outcome {
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	want := override{target: "Pxe", enabled: "Once"}
	if err := w.write(ctx, want); err != nil {
		return Judge(err)
	}
	if err := w.shows(ctx, want); err != nil {
		return Judge(err).Quirky("boot-silently-ignored")
	}
	if err := r.Restore(ctx); err != nil {
		return Failed("the override cannot be taken back: %v", err)
	}
	return Outcome{Verdict: Pass, Quirks: w.quirks}
}

// payloadsAccepted sends the forms of the request that clients send.
func payloadsAccepted(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	mode := place.System.At("Boot", bootMode).TextOr("")
	forms := []struct {
		name  string
		quirk string
		send  override
	}{
		{"the target alone", "boot-enabled-required", override{target: "Pxe"}},
		{"target and enabled", "boot-full-request", override{target: "Pxe", enabled: "Once"}},
		{"target, enabled and mode", "boot-minimal-request", override{"Pxe", "Once", mode}},
	}
	accepted := map[string]bool{}
	var refused, names []string
	for _, f := range forms {
		w, err := r.bootWriter(ctx)
		if err != nil {
			return Judge(err)
		}
		ok, problem, err := w.accepts(ctx, f.send)
		if err != nil {
			return Judge(err)
		}
		accepted[f.quirk] = ok
		if ok {
			names = append(names, f.name)
		} else {
			refused = append(refused, f.name+": "+problem)
		}
		if err := r.Restore(ctx); err != nil {
			return Failed("the override cannot be taken back: %v", err)
		}
	}
	// A request that changes nothing.
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Outcome{Verdict: Pass}
	if len(names) > 0 {
		if err := w.write(ctx, override{target: "Pxe", enabled: "Once"}); err != nil {
			return Judge(err)
		}
		again := override{target: "Pxe", enabled: "Once"}
		if !accepted["boot-full-request"] {
			again.mode = mode
		}
		ok, problem, err := w.accepts(ctx, again)
		if err != nil {
			return Judge(err)
		}
		if !ok {
			refused = append(refused, "the same again: "+problem)
			o = o.Quirky("boot-redundant-rejected")
		}
	}
	switch {
	case !accepted["boot-enabled-required"] && !accepted["boot-full-request"] && accepted["boot-minimal-request"]:
		o = o.Quirky("boot-full-request")
	case !accepted["boot-enabled-required"] && accepted["boot-full-request"]:
		o = o.Quirky("boot-enabled-required")
	case accepted["boot-full-request"] && !accepted["boot-minimal-request"] && len(o.Quirks) == 0:
		o = o.Quirky("boot-minimal-request")
	}
	o = o.With("payloads", "%s", strings.Join(names, "; "))
	switch {
	case len(names) == 0:
		o.Verdict, o.Reason = Fail, "no form is accepted: "+strings.Join(refused, "; ")
	case len(refused) > 0:
		o.Verdict, o.Reason = Warn, "refused: "+strings.Join(refused, "; ")
	}
	return o
}

// etagsAccepted writes with each form of the ETag.
func etagsAccepted(ctx context.Context, r *Run) Outcome {
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	send := override{target: "Pxe", enabled: "Once"}
	if ok, _, err := w.accepts(ctx, send); err != nil {
		return Judge(err)
	} else if !ok {
		send.mode = w.mode
	}
	if err := r.Restore(ctx); err != nil {
		return Failed("the override cannot be taken back: %v", err)
	}
	status := map[string]int{}
	forms := []string{"none", "as sent", "strong", "bare", "compressed"}
	var shown []string
	for _, form := range forms {
		match := ""
		if form != "none" {
			header := http.Header{}
			if form == "compressed" {
				header.Set("Accept-Encoding", "gzip")
			}
			resp, err := r.Do(ctx, Request{URI: w.uri, Header: header})
			if err != nil {
				return Judge(err)
			}
			tag := resp.Header.Get("ETag")
			strong := strings.TrimPrefix(tag, "W/")
			switch match = tag; form {
			case "strong":
				match = strong
			case "bare":
				match = strings.Trim(strong, `"`)
			case "compressed":
				if !strings.Contains(tag, "-gzip") {
					continue
				}
			}
			if match == "" {
				continue
			}
		}
		resp, err := w.patch(ctx, send, match)
		if err != nil {
			return Judge(err)
		}
		status[form] = resp.Status
		shown = append(shown, fmt.Sprintf("%s %d", form, resp.Status))
		// Some BMCs refuse a change to the present value.
		if err := r.Restore(ctx); err != nil {
			return Failed("the override cannot be taken back: %v", err)
		}
	}
	ok := func(form string) bool { return status[form]/100 == 2 }
	_, tagged := status["as sent"]
	o := Passed("").With("If-Match", "%s", strings.Join(shown, ", "))
	fail := func(reason, quirk string) Outcome {
		o.Verdict, o.Reason = Warn, reason
		return o.Quirky(quirk)
	}
	switch {
	case !ok("none") && !ok("as sent") && !ok("strong") && !ok("bare"):
		o.Verdict, o.Reason = Fail, "no form of If-Match is accepted"
		return o
	case status["none"] == http.StatusPreconditionRequired || status["none"] == http.StatusPreconditionFailed:
		return fail("a PATCH without If-Match is refused", "etag-required")
	case tagged && !ok("as sent") && ok("bare"):
		return fail("If-Match with the ETag as sent is refused, and accepted without quotes", "etag-weak-vs-strong")
	case tagged && !ok("as sent"):
		return fail("If-Match with the ETag that the BMC has sent is refused", "etag-mismatch-own")
	case status["compressed"] != 0 && !ok("compressed"):
		return fail("If-Match with the ETag of a compressed response is refused", "etag-gzip-suffix")
	case !tagged:
		o.Reason = "the BMC has no ETags"
	}
	return o
}

// overrideOfSystem finds where the override is written.
func overrideOfSystem(ctx context.Context, r *Run) Outcome {
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	if err := w.write(ctx, override{target: "Pxe", enabled: "Once"}); err != nil {
		return Judge(err)
	}
	if w.settings {
		return Warned("Boot of the system is read-only: %s takes it", w.uri).Quirky("boot-readonly-use-settings")
	}
	return Passed("")
}

// continuousAccepted sets a persistent override.
func continuousAccepted(ctx context.Context, r *Run) Outcome {
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	want := override{target: "Pxe", enabled: "Continuous"}
	err = w.write(ctx, want)
	if finding := new(Finding); errors.As(err, &finding) {
		return Warned("%v", err).Quirky("boot-no-continuous")
	}
	if err == nil {
		err = w.shows(ctx, want)
	}
	return Judge(err)
}

// overrideCleared sets and clears the override.
func overrideCleared(ctx context.Context, r *Run) Outcome {
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	if err := w.write(ctx, override{target: "Pxe", enabled: "Once"}); err != nil {
		return Judge(err)
	}
	if err := w.write(ctx, override{target: "None", enabled: "Disabled"}); err != nil {
		return Judge(err)
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	now, err := w.boot(ctx)
	if err != nil {
		return Judge(err)
	}
	if now.enabled != "Disabled" && now.target != "None" {
		return Failed("the boot override is %s after it was cleared", now)
	}
	return Passed("")
}

// modeSurvives changes the target and reads the mode.
func modeSurvives(ctx context.Context, r *Run) Outcome {
	w, err := r.bootWriter(ctx)
	if err != nil {
		return Judge(err)
	}
	if w.mode == "" {
		return Skipped("the boot override has no mode")
	}
	for _, target := range []string{"Pxe", "Hdd"} {
		if err := w.write(ctx, override{target: target, enabled: "Once"}); err != nil {
			return Judge(err)
		}
		now, err := w.boot(ctx)
		if err != nil {
			return Judge(err)
		}
		if now.mode != w.mode && r.bmc.dry == nil {
			return Failed("the mode was %s, and is %s after the target was set to %s", w.mode, now.mode, target)
		}
	}
	return Passed("")
}

// orderChanged exchanges the first two boot options.
func orderChanged(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	v := place.System.At("Boot", "BootOrder")
	if v.Null() {
		return Skipped("the system has no BootOrder")
	}
	order, err := v.Texts()
	if err != nil {
		return Judge(err)
	}
	if len(order) < 2 {
		return Skipped("BootOrder has %d members", len(order))
	}
	other := slices.Clone(order)
	other[0], other[1] = other[1], other[0]
	body := func(o []string) map[string]any { return map[string]any{"Boot": map[string]any{"BootOrder": o}} }
	uri := place.SystemURI
	resp, err := r.patch(ctx, Change{
		Request: Request{URI: uri, Body: body(other)},
		Undo:    []Undo{{Method: http.MethodPatch, URI: uri, Match: true, Body: jsonBody(body(order))}},
	})
	if err != nil {
		return Judge(err)
	}
	if resp.Status == http.StatusMethodNotAllowed {
		return Warned("BootOrder of the system is read-only: %s", resp.Problem())
	}
	if resp.Status/100 != 2 {
		return Failed("PATCH of BootOrder: %s", resp.Problem())
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	read := func() ([]string, error) {
		v, _, err := r.Get(ctx, uri)
		if err != nil {
			return nil, err
		}
		return v.At("Boot", "BootOrder").Texts()
	}
	now, err := read()
	if err != nil {
		return Judge(err)
	}
	if !slices.Equal(now, other) {
		return Failed("BootOrder is %v after it was set to %v", now, other)
	}
	if err := r.Restore(ctx); err != nil {
		return Failed("BootOrder cannot be taken back: %v", err)
	}
	if now, err = read(); err != nil {
		return Judge(err)
	}
	if !slices.Equal(now, order) {
		return Failed("BootOrder is %v after it was set back to %v", now, order)
	}
	return Passed("")
}
