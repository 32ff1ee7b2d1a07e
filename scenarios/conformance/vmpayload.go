package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (s slot) insert() string {
	return s.value.At("Actions", "#VirtualMedia.InsertMedia", "target").TextOr(s.uri + "/Actions/VirtualMedia.InsertMedia")
}

func (s slot) eject() string {
	return s.value.At("Actions", "#VirtualMedia.EjectMedia", "target").TextOr(s.uri + "/Actions/VirtualMedia.EjectMedia")
}

// undo ejects the medium that a check inserts.
func (s slot) undo() []Undo {
	return []Undo{{
		Method: http.MethodPost, URI: s.eject(), Body: json.RawMessage("{}"), State: &State{Resource: s.uri, Property: "Inserted", Value: "false"},
	}}
}

// mediaFor returns an empty slot for CDs, and one for others when there is one.
func (r *Run) mediaFor(ctx context.Context) (cd slot, other *slot, err error) {
	all, err := r.slots(ctx)
	if err != nil {
		return slot{}, nil, err
	}
	found := false
	for _, s := range all {
		if !s.insertable() && slices.ContainsFunc(all, func(t slot) bool { return t.optical() && t.insertable() }) {
			continue
		}
		inserted, _ := s.value.At("Inserted").Bool()
		switch {
		case inserted:
		case s.optical() && !found:
			cd, found = s, true
		case !s.optical() || other == nil:
			other = &s
		}
	}
	if !found {
		return slot{}, nil, NothingThere("no slot for CDs is empty")
	}
	return cd, other, nil
}

// payload is a form of the request InsertMedia, with the quirk that a BMC has that
// refuses the forms before it and takes this one.
type payload struct {
	name  string
	quirk string
	patch bool // a PATCH of the slot in place of the action
	body  func(url string) map[string]any
}

var payloads = []payload{
	{name: "Image, Inserted and WriteProtected", body: func(url string) map[string]any {
		return map[string]any{"Image": url, "Inserted": true, "WriteProtected": true}
	}},
	{name: "Image", quirk: "vmedia-strict-payload", body: func(url string) map[string]any { return map[string]any{"Image": url} }},
	{name: "Image, TransferProtocolType and TransferMethod", quirk: "vmedia-missing-params", body: func(url string) map[string]any {
		return map[string]any{"Image": url, "TransferProtocolType": protocolOf(url), "TransferMethod": "Stream"}
	}},
	{name: "Image, TransferProtocolType, TransferMethod, UserName and Password", quirk: "vmedia-missing-params", body: func(url string) map[string]any {
		return map[string]any{"Image": url, "TransferProtocolType": protocolOf(url), "TransferMethod": "Stream", "UserName": "", "Password": ""}
	}},
	{name: "PATCH of Image and Inserted", quirk: "vmedia-patch-only", patch: true, body: func(url string) map[string]any {
		return map[string]any{"Image": url, "Inserted": true}
	}},
}

func protocolOf(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	return strings.ToUpper(scheme)
}

// send sends one form of InsertMedia.
func (r *Run) send(ctx context.Context, s slot, p payload, url string) (*Response, error) {
	c := Change{Request: Request{Method: http.MethodPost, URI: s.insert(), Body: p.body(url), Timeout: 2 * time.Minute}, Undo: s.undo()}
	if p.patch {
		c.URI = s.uri
		c.Undo = []Undo{{Method: http.MethodPatch, URI: s.uri, Match: true, Body: json.RawMessage(`{"Image":null,"Inserted":false}`)}}
		return r.patch(ctx, c)
	}
	return r.Change(ctx, c)
}

// taken reports whether the BMC has accepted a request: with 2xx, and where that
// is 202, once its task has ended well.
func (r *Run) taken(ctx context.Context, resp *Response) (bool, string, error) {
	if resp.Status/100 != 2 {
		return false, resp.Problem(), nil
	}
	if resp.Status != http.StatusAccepted || resp.Header.Get("Location") == "" {
		return true, "", nil
	}
	end, err := r.awaitTask(ctx, resp.Header.Get("Location"), 3*time.Minute)
	if err != nil {
		return false, "", err
	}
	return end.ok, end.problem, nil
}

// insert inserts an image by the first form that the BMC takes. A refusal of all
// forms is a Finding.
func (r *Run) insertImage(ctx context.Context, s slot, url string) (payload, error) {
	var refused []string
	status := 0
	for i, p := range payloads {
		if p.patch == s.insertable() { // the action where there is one, else a PATCH
			continue
		}
		// Some BMCs fail for a while after the eject of the check before.
		var resp *Response
		if _, err := r.Poll(ctx, 5*time.Second, settleLimit/4, func() (bool, error) {
			var err error
			resp, err = r.send(ctx, s, p, url)
			return err == nil && resp.Status < 500, err
		}); err != nil {
			return p, err
		}
		ok, problem, err := r.taken(ctx, resp)
		if err != nil {
			return p, err
		}
		if ok {
			return payloads[i], nil
		}
		refused, status = append(refused, p.name+": "+problem), resp.Status
		if resp.Status == http.StatusForbidden || resp.Status >= 500 {
			break
		}
	}
	return payload{}, &Finding{Text: "InsertMedia is refused: " + strings.Join(refused, "; "), Status: status}
}

// inserts inserts a small image into a slot, and returns its URL.
func (r *Run) inserts(ctx context.Context, s slot, scheme, name string) (string, payload, error) {
	url, err := r.Config().Media.URL(scheme, name)
	if err != nil {
		return "", payload{}, err
	}
	p, err := r.insertImage(ctx, s, url)
	return url, p, err
}

// scheme returns the scheme of images that the BMC takes.
func (r *Run) scheme(ctx context.Context, s slot) string {
	if r.bmc.secureMedia {
		return "https"
	}
	allowed, err := s.value.At("Actions", "#VirtualMedia.InsertMedia", "TransferProtocolType@Redfish.AllowableValues").Texts()
	if err == nil && len(allowed) > 0 && !slices.Contains(allowed, "HTTP") && slices.Contains(allowed, "HTTPS") {
		return "https"
	}
	return "http"
}

// ejectImage ejects by the action, or by a PATCH where the slot has none.
func (r *Run) ejectImage(ctx context.Context, s slot, body any) (*Response, error) {
	if !s.value.At("Actions", "#VirtualMedia.EjectMedia").Exists() {
		return r.patch(ctx, Change{Request: Request{URI: s.uri, Body: map[string]any{"Image": nil, "Inserted": false}}})
	}
	return r.Change(ctx, Change{Request: Request{Method: http.MethodPost, URI: s.eject(), Body: body}})
}
