package capture

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Behavior is how a service answers, apart from the contents of its resources.
type Behavior struct {
	ETag             ETag `json:"etag"`
	TrailingSlash    bool `json:"slash,omitempty"` // addresses in bodies end with a slash
	IgnoresCase      bool `json:"fold,omitempty"`  // the case of letters in URIs does not matter
	ClosesConnection bool `json:"close,omitempty"` // the connection ends after each response
	Gzip             bool `json:"gzip,omitempty"`  // responses are compressed on request
	// Queries holds the result by query parameter: "works", "ignored", or the
	// status of the refusal ("501"). A missing parameter could not be probed.
	Queries map[string]string `json:"queries,omitempty"`
	Error   ErrorForm         `json:"error"`
}

// ETag is the format of a service's ETags.
type ETag string

// The formats of ETags.
const (
	NoETag           ETag = "none"
	StrongETag       ETag = "strong"
	WeakETag         ETag = "weak"
	DoubleQuotedETag ETag = "twice" // ""x""
	UnquotedETag     ETag = "bare"  // without quotes
)

// ErrorForm is the form of a service's error responses (DSP0266, section
// "Error responses").
type ErrorForm struct {
	Status       int    `json:"status,omitempty"` // to a GET of what is not there
	Code         string `json:"code,omitempty"`   // error.code, when it is no MessageId
	SingleObject bool   `json:"one,omitempty"`    // @Message.ExtendedInfo is an object, not a list
	IDsOnly      bool   `json:"terse,omitempty"`  // messages have no text
}

// MissingURI names no resource of any BMC.
const MissingURI = Root + "/NoSuchResourceHere"

// probes lists the query parameters to try, each with the resource type to try
// it on and a function that reports whether the BMC evaluated it. The function
// compares the body with full, the body without the parameter.
var probes = []struct {
	query string
	on    string // type of the resource
	works func(got, full map[string]any) bool
}{
	{"$select=Name", "ComputerSystem", func(got, full map[string]any) bool { return len(got) < len(full)/2 }},
	{"$top=0", "ManagerCollection", func(got, _ map[string]any) bool { return len(list(got["Members"])) == 0 }},
	{"$filter=Name eq 'no such name'", "ManagerCollection", func(got, _ map[string]any) bool { return len(list(got["Members"])) == 0 }},
	{"$expand=.($levels=1)", "ManagerCollection", func(got, _ map[string]any) bool {
		m := list(got["Members"])
		return len(m) > 0 && text(m[0], "Name") != ""
	}},
	{"only", "ManagerCollection", func(got, _ map[string]any) bool { return Type(got) == "Manager" }},
	{"$nonsense=1", "ManagerCollection", func(_, _ map[string]any) bool { return false }},
}

// probe finds out the behavior of the service.
func (s *source) probe(ctx context.Context, c *Capture) (Behavior, error) {
	h := Behavior{Queries: map[string]string{}}
	r, err := s.get(ctx, first(c, "ComputerSystem"), map[string]string{"Accept-Encoding": "gzip"})
	if err != nil {
		return h, err
	}
	h.ETag, h.ClosesConnection, h.Gzip = etag(r.header), r.close, r.header.Get("Content-Encoding") == "gzip"
	for at, body := range c.Resources {
		if at != Root && at != "" {
			h.TrailingSlash = h.TrailingSlash || strings.HasSuffix(text(body, "@odata.id"), "/")
		}
	}
	if r, err = s.get(ctx, Root+"/cHASSIS", nil); err != nil {
		return h, err
	}
	h.IgnoresCase = r.status == http.StatusOK
	if r, err = s.get(ctx, MissingURI, nil); err != nil {
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
		case json.Unmarshal(r.raw, &got) == nil && p.works(got, c.Resources[at]):
			h.Queries[name] = "works"
		default:
			h.Queries[name] = "ignored"
		}
	}
	return h, nil
}

// first returns the first URI of a resource type, or Root if there is none.
func first(c *Capture, kind string) string {
	if at := c.OfType(kind); len(at) > 0 {
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
		return DoubleQuotedETag
	case strings.HasPrefix(v, `"`):
		return StrongETag
	}
	return UnquotedETag
}

func errorForm(r response) ErrorForm {
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
	_, f.SingleObject = info.(map[string]any)
	if all := list(info); len(all) > 0 {
		info = all[0]
	}
	f.IDsOnly = info != nil && text(info, "MessageId") != "" && text(info, "Message") == ""
	return f
}
