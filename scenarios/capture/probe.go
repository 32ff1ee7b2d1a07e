package capture

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Habits are how a service answers, beside what it shows.
type Habits struct {
	ETag  ETag `json:"etag"`
	Slash bool `json:"slash,omitempty"` // addresses in bodies end with a slash
	Fold  bool `json:"fold,omitempty"`  // addresses are found whatever the case of their letters
	Close bool `json:"close,omitempty"` // connections end after an answer
	Gzip  bool `json:"gzip,omitempty"`  // it packs what it sends
	// Queries are the answers to GETs with these query parameters: "works",
	// "ignored", or the status of the refusal: "501". What is missing could not
	// be tried.
	Queries map[string]string `json:"queries,omitempty"`
	Error   ErrorForm         `json:"error"`
}

// ETag is how a service writes ETags.
type ETag string

// The ways.
const (
	NoETag     ETag = "none"
	StrongETag ETag = "strong"
	WeakETag   ETag = "weak"
	TwiceETag  ETag = "twice" // ""x""
	BareETag   ETag = "bare"  // without quotes
)

// ErrorForm is the form of its error responses.
type ErrorForm struct {
	Status int    `json:"status,omitempty"` // to a GET of what is not there
	Code   string `json:"code,omitempty"`   // error.code, when it is no MessageId
	One    bool   `json:"one,omitempty"`    // @Message.ExtendedInfo is an object, not a list
	Terse  bool   `json:"terse,omitempty"`  // messages have no text
}

// Nowhere is an address that no BMC has.
const Nowhere = Root + "/NoSuchResourceHere"

// probes are queries, and what tells that they were carried out: whole is the
// answer without.
var probes = []struct {
	query string
	on    string // type of the resource
	works func(got, whole map[string]any) bool
}{
	{"$select=Name", "ComputerSystem", func(got, whole map[string]any) bool { return len(got) < len(whole)/2 }},
	{"$top=0", "ManagerCollection", func(got, _ map[string]any) bool { return len(list(got["Members"])) == 0 }},
	{"$filter=Name eq 'no such name'", "ManagerCollection", func(got, _ map[string]any) bool { return len(list(got["Members"])) == 0 }},
	{"$expand=.($levels=1)", "ManagerCollection", func(got, _ map[string]any) bool {
		m := list(got["Members"])
		return len(m) > 0 && text(m[0], "Name") != ""
	}},
	{"only", "ManagerCollection", func(got, _ map[string]any) bool { return Type(got) == "Manager" }},
	{"$nonsense=1", "ManagerCollection", func(_, _ map[string]any) bool { return false }},
}

// probe finds out the habits.
func (s *source) probe(ctx context.Context, c *Capture) (Habits, error) {
	h := Habits{Queries: map[string]string{}}
	r, err := s.get(ctx, first(c, "ComputerSystem"), map[string]string{"Accept-Encoding": "gzip"})
	if err != nil {
		return h, err
	}
	h.ETag, h.Close, h.Gzip = etag(r.header), r.close, r.header.Get("Content-Encoding") == "gzip"
	for at, body := range c.Pages {
		if at != Root && at != "" {
			h.Slash = h.Slash || strings.HasSuffix(text(body, "@odata.id"), "/")
		}
	}
	if r, err = s.get(ctx, Root+"/cHASSIS", nil); err != nil {
		return h, err
	}
	h.Fold = r.status == http.StatusOK
	if r, err = s.get(ctx, Nowhere, nil); err != nil {
		return h, err
	}
	h.Error = errorForm(r)
	for _, p := range probes {
		at := first(c, p.on)
		if at == Root {
			continue
		}
		name, _, _ := strings.Cut(p.query, "=")
		r, err := s.get(ctx, at+"?"+strings.NewReplacer(" ", "%20", "'", "%27").Replace(p.query), nil)
		if err != nil {
			return h, err
		}
		var got map[string]any
		switch {
		case r.status != http.StatusOK:
			h.Queries[name] = strconv.Itoa(r.status)
		case json.Unmarshal(r.raw, &got) == nil && p.works(got, c.Pages[at]):
			h.Queries[name] = "works"
		default:
			h.Queries[name] = "ignored"
		}
	}
	return h, nil
}

// first is the first address of a type; the root where there is none.
func first(c *Capture, kind string) string {
	if at := c.Of(kind); len(at) > 0 {
		return at[0]
	}
	return Root
}

func etag(h http.Header) ETag {
	switch v := h.Get("ETag"); {
	case v == "":
		return NoETag
	case strings.HasPrefix(v, "W/"):
		return WeakETag
	case strings.HasPrefix(v, `""`):
		return TwiceETag
	case strings.HasPrefix(v, `"`):
		return StrongETag
	}
	return BareETag
}

func errorForm(r reply) ErrorForm {
	f := ErrorForm{Status: r.status}
	var body map[string]any
	if json.Unmarshal(r.raw, &body) != nil {
		return f
	}
	e, _ := body["error"].(map[string]any)
	if code := text(e, "code"); strings.Contains(code, "ExtendedInfo") || strings.Count(code, ".") < 2 {
		f.Code = code
	}
	info := e["@Message.ExtendedInfo"]
	_, f.One = info.(map[string]any)
	if all := list(info); len(all) > 0 {
		info = all[0]
	}
	f.Terse = info != nil && text(info, "MessageId") != "" && text(info, "Message") == ""
	return f
}
