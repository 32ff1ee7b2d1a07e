package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// plainInserted inserts by HTTP. Where only HTTPS works, it says so.
func plainInserted(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	_, p, err := r.inserts(ctx, s, "http", "vm003.iso")
	if err != nil {
		o := Judge(err)
		if o.Verdict != Fail {
			return o
		}
		switch {
		case strings.Contains(o.Reason, "VRM0021"):
			return o.Quirky("vmedia-detached")
		case forbidden(err):
			return o.Quirky("license-denied")
		case !s.insertable():
			return o.Quirky("vmedia-own-way")
		}
		if _, _, secure := r.inserts(ctx, s, "https", "vm003.iso"); secure == nil {
			r.bmc.secureMedia = true // for the checks that follow
			return Warned("images by HTTP are refused, and by HTTPS accepted").Quirky("vmedia-no-http")
		}
		return o
	}
	o := Passed("").With("payload", "%s", p.name)
	if p.quirk != "" {
		o.Verdict, o.Reason = Warn, "InsertMedia is accepted with "+p.name+" only"
		o = o.Quirky(p.quirk)
	}
	return o
}

// secureInserted inserts by HTTPS, with a certificate that no public authority has
// signed.
func secureInserted(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	_, _, err = r.inserts(ctx, s, "https", "vm004.iso")
	if err == nil {
		return Passed("")
	}
	o := Judge(err)
	if o.Verdict != Fail {
		return o
	}
	verify, isSet := s.value.At("VerifyCertificate").Raw().(bool)
	if !isSet || !verify {
		return o
	}
	resp, err := r.patch(ctx, Change{
		Request: Request{URI: s.uri, Body: map[string]any{"VerifyCertificate": false}},
		Undo:    []Undo{{Method: http.MethodPatch, URI: s.uri, Match: true, Body: json.RawMessage(`{"VerifyCertificate":true}`)}},
	})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return o
	}
	if _, _, err = r.inserts(ctx, s, "https", "vm004.iso"); err != nil {
		return Judge(err)
	}
	return Warned("an image by HTTPS needs VerifyCertificate false")
}

// imageFetched waits for the BMC's requests.
func imageFetched(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	const name = "vm005.iso"
	if _, _, err := r.inserts(ctx, s, r.scheme(ctx, s), name); err != nil {
		return Judge(err)
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	var requests []MediaRequest
	heard, err := r.Poll(ctx, time.Second, time.Minute, func() (bool, error) {
		requests = r.Config().Media.Requests(name)
		return len(requests) > 0, nil
	})
	if err != nil {
		return Judge(err)
	}
	if !heard {
		return Failed("InsertMedia is accepted, and the BMC has not asked for the image within a minute")
	}
	var methods []string
	ranges, bytes := false, int64(0)
	for _, q := range requests {
		methods = append(methods, q.Method)
		ranges = ranges || q.Range != ""
		bytes += q.Bytes
	}
	slices.Sort(methods)
	return Passed("").With("requests", "%s", strings.Join(slices.Compact(methods), " ")).With("ranges", "%v", ranges).
		With("bytes", "%d", bytes).With("user agent", "%s", requests[0].UserAgent)
}

// mediaShown reads the slot with an image.
func mediaShown(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	url, _, err := r.inserts(ctx, s, r.scheme(ctx, s), "vm006.iso")
	if err != nil {
		return Judge(err)
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	var v Value
	shown, err := r.Poll(ctx, time.Second, 30*time.Second, func() (bool, error) {
		var err error
		v, _, err = r.Get(ctx, s.uri)
		inserted, _ := v.At("Inserted").Bool()
		return inserted && v.At("Image").TextOr("") == url, err
	})
	if err != nil {
		return Judge(err)
	}
	if !shown {
		return Failed("after InsertMedia Inserted is %s, and Image %s", abbreviate(v.At("Inserted").Raw()), abbreviate(v.At("Image").Raw()))
	}
	if via := v.At("ConnectedVia").TextOr(""); via != "URI" {
		return Warned("ConnectedVia is %q, not URI", via)
	}
	return Passed("")
}

// secondInserted inserts another image without ejecting the first.
func secondInserted(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	scheme := r.scheme(ctx, s)
	_, p, err := r.inserts(ctx, s, scheme, "vm007-a.iso")
	if err != nil {
		return Judge(err)
	}
	second, err := r.Config().Media.URL(scheme, "vm007-b.iso")
	if err != nil {
		return Judge(err)
	}
	resp, err := r.send(ctx, s, p, second)
	if err != nil {
		return Judge(err)
	}
	ok, problem, err := r.taken(ctx, resp)
	if err != nil {
		return Judge(err)
	}
	if !ok {
		return Passed("").With("second image", "refused: %s", problem)
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	v, _, err := r.Get(ctx, s.uri)
	if err != nil {
		return Judge(err)
	}
	if image := v.At("Image").TextOr(""); image != second {
		return Failed("a second InsertMedia is answered %d, and the slot still has %s", resp.Status, image)
	}
	return Passed("").With("second image", "replaces the first")
}

// mediaEjected ejects with and without a body, and inserts again at once.
func mediaEjected(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	scheme := r.scheme(ctx, s)
	o := Passed("")
	form := payload{}
	for i, body := range []any{nil, map[string]any{}} {
		url, err := r.Config().Media.URL(scheme, fmt.Sprintf("vm008-%d.iso", i))
		if err != nil {
			return Judge(err)
		}
		if i == 0 {
			if form, err = r.insertImage(ctx, s, url); err != nil {
				return Judge(err)
			}
		} else if again, err := r.send(ctx, s, form, url); err != nil {
			return Judge(err)
		} else if again.Status/100 != 2 {
			return Failed("InsertMedia soon after EjectMedia: %s", again.Problem()).Quirky("vmedia-stale-inserted")
		}
		resp, err := r.ejectImage(ctx, s, body)
		if err != nil {
			return Judge(err)
		}
		switch {
		case resp.Status/100 == 2:
		case body == nil && resp.Status < 500:
			o = Warned("EjectMedia without a body is refused: %s", resp.Problem()).Quirky("vmedia-eject-needs-body")
			if err := r.Restore(ctx); err != nil {
				return Failed("the image cannot be ejected: %v", err)
			}
		default:
			return Failed("EjectMedia: %s", resp.Problem())
		}
		if r.bmc.dry != nil {
			continue
		}
		var v Value
		cleared, err := r.Poll(ctx, time.Second, time.Minute, func() (bool, error) {
			v, _, err = r.Get(ctx, s.uri)
			inserted, _ := v.At("Inserted").Bool()
			return !inserted, err
		})
		if err != nil {
			return Judge(err)
		}
		if !cleared {
			return Failed("a minute after EjectMedia Inserted is %s", abbreviate(v.At("Inserted").Raw()))
		}
	}
	return o
}

// unreachable is an address at which no image is: a port that nobody listens on,
// of the media server itself.
func (r *Run) unreachable(scheme string) (string, error) {
	url, err := r.Config().Media.URL(scheme, "none.iso")
	if err != nil {
		return "", err
	}
	rest, found := strings.CutPrefix(url, scheme+"://")
	host, path, slash := strings.Cut(rest, "/")
	if !found || !slash {
		return "", fmt.Errorf("media URL %q is not like %s://HOST/NAME", url, scheme)
	}
	if at := strings.LastIndex(host, ":"); at > strings.LastIndex(host, "]") {
		host = host[:at]
	}
	return scheme + "://" + host + ":1/" + path, nil
}

// unreachableRefused inserts an image that does not exist.
func unreachableRefused(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	scheme := r.scheme(ctx, s)
	_, form, err := r.inserts(ctx, s, scheme, "vm009.iso")
	if err != nil {
		return Judge(err)
	}
	if err := r.Restore(ctx); err != nil {
		return Failed("the image cannot be ejected: %v", err)
	}
	url, err := r.unreachable(scheme)
	if err != nil {
		return Judge(err)
	}
	began := r.Now()
	resp, err := r.send(ctx, s, form, url)
	if err != nil {
		return Judge(err)
	}
	ok, problem, err := r.taken(ctx, resp)
	if err != nil {
		return Judge(err)
	}
	took := r.Now().Sub(began)
	if !ok {
		return Passed("").With("error", "%s after %v", problem, took.Round(time.Second))
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	// Some BMCs connect later; then the slot must not claim an image.
	if err := r.Wait(ctx, 10*time.Second); err != nil {
		return Judge(err)
	}
	v, _, err := r.Get(ctx, s.uri)
	if err != nil {
		return Judge(err)
	}
	if inserted, _ := v.At("Inserted").Bool(); inserted {
		return Failed("an image at a closed port is answered %d and shown as inserted", resp.Status)
	}
	return Warned("an image at a closed port is answered %d, and not inserted", resp.Status)
}

// longURLsTaken inserts images with the URLs that Ironic makes.
func longURLsTaken(ctx context.Context, r *Run) Outcome {
	s, _, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	scheme := r.scheme(ctx, s)
	long := strings.Repeat("0123456789abcdef", 16)
	for _, tt := range []struct{ what, name string }{
		{"of more than 255 characters", long + ".iso"}, {"with a query", "vm010.iso?signature=0123456789abcdef&expires=1"}, {"without .iso", "boot-vm010"},
	} {
		if _, _, err := r.inserts(ctx, s, scheme, tt.name); err != nil {
			return Judge(fmt.Errorf("a URL %s: %w", tt.what, err))
		}
		if err := r.Restore(ctx); err != nil {
			return Failed("the image cannot be ejected: %v", err)
		}
	}
	return Passed("")
}

// twoInserted inserts an ISO and a config drive.
func twoInserted(ctx context.Context, r *Run) Outcome {
	s, other, err := r.mediaFor(ctx)
	if err != nil {
		return Judge(err)
	}
	if other == nil {
		return Skipped("there is one slot only")
	}
	scheme := r.scheme(ctx, s)
	if _, _, err := r.inserts(ctx, s, scheme, "vm014.iso"); err != nil {
		return Judge(err)
	}
	if _, _, err := r.inserts(ctx, *other, scheme, "vm014.img"); err != nil {
		return Judge(fmt.Errorf("the second slot: %w", err))
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	for _, uri := range []string{s.uri, other.uri} {
		v, _, err := r.Get(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		if inserted, _ := v.At("Inserted").Bool(); !inserted {
			return Failed("with two images %s shows none", uri)
		}
	}
	return Passed("")
}
