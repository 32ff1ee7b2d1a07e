package fault

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// Rule says what goes wrong, where and when. Its counts are those of each BMC
// by itself.
type Rule struct {
	ID string `json:"id,omitempty"` // "" leaves it to the plan

	// Where.
	BMC    string  `json:"bmc,omitempty"`    // name, or a pattern with * ? [a-z]; "" is every one
	Path   string  `json:"path,omitempty"`   // * stands for a part of a segment, ** for any segments; a / at the end for all below
	Method Methods `json:"method,omitempty"` // none is every one

	// When.
	After       int      `json:"after,omitempty"`       // how many matches pass unharmed before the first hit
	Count       int      `json:"count,omitempty"`       // hits at most; 0 is no limit
	Probability float64  `json:"probability,omitempty"` // of a hit; 0 stands for 1
	From        Duration `json:"from,omitzero"`         // after the rule was added
	Until       Duration `json:"until,omitzero"`        // after the rule was added; 0 is forever

	// What.
	Latency     Latency  `json:"latency,omitempty"`
	Status      int      `json:"status,omitempty"`
	RetryAfter  Duration `json:"retryAfter,omitzero"`
	Message     string   `json:"message,omitempty"`
	MessageID   string   `json:"messageID,omitempty"`
	Performed   bool     `json:"performed,omitempty"` // status, drop: what was asked is done all the same
	Limit       Limit    `json:"limit,omitempty"`     // requests beyond it are answered 429, or Status
	Drop        Drop     `json:"drop,omitempty"`
	TLS         TLS      `json:"tls,omitempty"`
	Offline     bool     `json:"offline,omitempty"`
	Stale       bool     `json:"stale,omitempty"`
	Stuck       bool     `json:"stuck,omitempty"`
	Truncate    Cut      `json:"truncate,omitempty"` // what is left of the body: bytes, or 50%
	InvalidJSON bool     `json:"invalidJSON,omitempty"`
	LengthError int      `json:"lengthError,omitempty"` // bytes that Content-Length is too high by, or too low
	Patch       any      `json:"patch,omitempty"`       // merged into the body (RFC 7396)
	Set         Values   `json:"set,omitempty"`         // values by JSON pointer (RFC 6901), null too
	Body        *string  `json:"body,omitempty"`        // instead of the body
	ContentType string   `json:"contentType,omitempty"` // of Body; "" leaves it
	Wire        Wire     `json:"wire,omitempty"`        // what becomes of datagrams of IPMI
	Code        byte     `json:"code,omitempty"`        // completion code of a command of IPMI: 0xc0
}

// Values are JSON values by where they belong.
type Values map[string]any

// Validate says all that is wrong with a rule.
func (r *Rule) Validate() error {
	var errs []error
	for _, p := range r.Problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// effect is one thing that a rule can do.
type effect struct {
	field string
	site  Site
	state bool // it lasts, rather than to happen to one request after the other
	set   bool
}

func (r *Rule) effects() []effect {
	drop := dropSites[r.Drop]
	if drop == "" {
		drop = Request
	}
	latency := Request
	if r.Wire == Late {
		latency = Datagram
	}
	return []effect{
		{"offline", Connect, true, r.Offline},
		{"tls", Connect, false, r.TLS != ""},
		{"drop", drop, false, r.Drop != ""},
		{"stuck", Task, false, r.Stuck},
		{"latency", latency, false, r.Latency != ""},
		{"status", Request, false, r.Status != 0 && r.Limit == ""},
		{"limit", Request, false, r.Limit != ""},
		{"stale", Request, false, r.Stale},
		{"truncate", Request, false, r.Truncate != ""},
		{"invalidJSON", Request, false, r.InvalidJSON},
		{"lengthError", Request, false, r.LengthError != 0},
		{"patch", Request, false, r.Patch != nil},
		{"set", Request, false, len(r.Set) > 0},
		{"body", Request, false, r.Body != nil},
		{"wire", Datagram, false, r.Wire != ""},
		{"code", Command, false, r.Code != 0},
	}
}

// Effects names what the rule does.
func (r *Rule) Effects() []string {
	var out []string
	for _, e := range r.effects() {
		if e.set {
			out = append(out, e.field)
		}
	}
	return out
}

// site is where the rule applies; a valid rule has one.
func (r *Rule) site() Site {
	for _, e := range r.effects() {
		if e.set {
			return e.site
		}
	}
	return ""
}

// Problems lists what is wrong with a rule.
func (r *Rule) Problems() (out []*yamlfile.Error) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, yamlfile.Errorf(field, text, args...))
		}
	}
	needs := func(err error, field string) { need(err == nil, field, "%v", err) }

	need(len(r.ID) <= 63 && strings.IndexFunc(r.ID, notOfID) < 0, "id", "%q: use up to 63 of a-z, A-Z, 0-9, - _ and .", r.ID)
	_, err := path.Match(r.BMC, "")
	need(err == nil, "bmc", "%q: is no pattern: close each [", r.BMC)
	_, err = parsePattern(r.Path)
	needs(err, "path")
	for _, m := range r.Method {
		need(m != "" && m == strings.ToUpper(m) && strings.IndexFunc(m, notOfID) < 0, "method", "%q: use a form like GET or PATCH", m)
	}
	need(r.After >= 0, "after", "%d: must not be negative", r.After)
	need(r.Count >= 0, "count", "%d: must not be negative", r.Count)
	need(r.Probability >= 0 && r.Probability <= 1, "probability", "%v: must be above 0 and at most 1", r.Probability)
	need(r.From.Duration >= 0, "from", "%v: must not be negative", r.From)
	need(r.Until.Duration >= 0, "until", "%v: must not be negative", r.Until)
	need(r.Until.Duration == 0 || r.Until.Duration > r.From.Duration, "until", "%v: must be after from, %v", r.Until, r.From)
	return append(out, r.effectProblems()...)
}

// effectProblems lists what is wrong with what the rule does.
func (r *Rule) effectProblems() (out []*yamlfile.Error) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, yamlfile.Errorf(field, text, args...))
		}
	}
	needs := func(err error, field string) { need(err == nil, field, "%v", err) }

	_, err := r.Latency.parse()
	needs(err, "latency")
	_, err = r.Limit.parse()
	needs(err, "limit")
	_, err = r.Truncate.parse()
	needs(err, "truncate")
	need(r.Status == 0 || r.Status >= 200 && r.Status <= 599, "status", "%d: must be from 200 to 599", r.Status)
	answers := r.Status != 0 || r.Limit != ""
	need(r.RetryAfter.Duration >= 0, "retryAfter", "%v: must not be negative", r.RetryAfter)
	need(r.RetryAfter.Duration == 0 || answers, "retryAfter", "has no effect without status: add status: 503")
	need(r.Message == "" || answers, "message", "has no effect without status: add status: 500")
	need(r.MessageID == "" || answers, "messageID", "has no effect without status: add status: 500")
	need(r.Wire == "" || slices.Contains(wires, r.Wire), "wire", "%q: must be one of %s", r.Wire, join(wires...))
	need(r.Wire != Late || r.Latency != "", "wire", "late needs latency, which says how late")
	need(!r.Performed || answers || r.Code != 0 || dropSites[r.Drop] == Request, "performed", "has no effect without status, drop or code")
	need(r.Drop == "" || dropSites[r.Drop] != "", "drop", "%q: must be one of %s", r.Drop, join(BeforeTLS, Unanswered, Reset, HalfClose, Hang, MidBody))
	need(r.TLS == "" || slices.Contains(tlsFaults, r.TLS), "tls", "%q: must be one of %s", r.TLS, join(tlsFaults...))
	need(r.ContentType == "" || r.Body != nil, "contentType", "has no effect without body")
	need(r.Status != 204 && r.Status != 304 || r.Body == nil, "body", "an answer %d has none", r.Status)
	if r.Patch != nil {
		_, err = json.Marshal(r.Patch)
		need(err == nil, "patch", "must be an object as JSON has them")
		need(err != nil || isObject(r.Patch), "patch", "must be an object: to replace the body use body")
	}
	_, err = r.Set.parse()
	needs(err, "set")

	var does []effect
	for _, e := range r.effects() {
		if e.set {
			does = append(does, e)
		}
	}
	if len(does) == 0 {
		return append(out, yamlfile.Errorf("", "does nothing: add one of status, latency, drop, tls, offline, limit, stale, stuck, truncate, invalidJSON, lengthError, patch, set, body, wire or code"))
	}
	site := does[0].site
	for _, e := range does[1:] {
		need(e.site == site, e.field, "cannot be in a rule with %s: make two rules", does[0].field)
	}
	need(site != Connect && site != Datagram || r.Path == "", "path", "has no effect on %s: there is no path yet", does[0].field)
	need(site == Request || site == Datagram || len(r.Method) == 0, "method", "has no effect on %s", does[0].field)
	for _, m := range r.Method {
		need(site != Datagram || m == In || m == Out, "method", "%q: of %s must be %s or %s", m, does[0].field, In, Out)
	}
	if does[0].state {
		need(r.After == 0, "after", "has no effect on %s, which lasts: use from and until", does[0].field)
		need(r.Count == 0, "count", "has no effect on %s, which lasts: use from and until", does[0].field)
		need(r.Probability == 0 || r.Probability == 1, "probability", "has no effect on %s, which lasts", does[0].field)
	}
	return out
}

func isObject(v any) bool {
	b, err := json.Marshal(v)
	return err == nil && len(b) > 0 && b[0] == '{'
}

func notOfID(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
}

func join[T ~string](all ...T) string {
	var s []string
	for _, v := range all {
		s = append(s, string(v))
	}
	return strings.Join(s, ", ")
}
