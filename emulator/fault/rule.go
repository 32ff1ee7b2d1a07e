package fault

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// Rule is one fault: where, when and what goes wrong. Counts apply to each BMC
// separately. A rule has at least one field below "What", and all that it has
// apply to the same: a connection, a request, a task, a datagram or an IPMI command.
type Rule struct {
	ID string `json:"id,omitempty"` // up to 63 of a-z, A-Z, 0-9, - _ and .; "": the plan makes one

	// Where.

	BMC    string  `json:"bmc,omitempty"`    // name of a host, or a pattern with * ? [a-z]; "" is every host
	Path   string  `json:"path,omitempty"`   // URI; * is a part of a segment, ** any number of segments, a / at the end everything below; /ipmi/NETFN/CMD in hexadecimal digits for IPMI commands
	Method Methods `json:"method,omitempty"` // HTTP methods, or IN and OUT for datagrams; none is every method
	Sends  Values  `json:"sends,omitempty"`  // values that the JSON body of the request has, by JSON pointers (RFC 6901): {/ResetType: ForceOff}

	// When.

	After       int      `json:"after,omitempty"`       // how many matches pass before the first hit
	Count       int      `json:"count,omitempty"`       // hits at most; 0 is no limit
	Probability float64  `json:"probability,omitempty"` // probability of a hit, above 0 and at most 1; absent is 1
	From        Duration `json:"from,omitzero"`         // since the rule was added
	Until       Duration `json:"until,omitzero"`        // since the rule was added; 0 is for ever

	// What.

	Latency     Latency  `json:"latency,omitempty"`     // delay of the response: 200ms, 100ms..2s, or p50=200ms,p99=3s
	Status      int      `json:"status,omitempty"`      // HTTP status of an error response in place of the service's, 200 to 599
	RetryAfter  Duration `json:"retryAfter,omitzero"`   // header Retry-After of that response
	Message     string   `json:"message,omitempty"`     // text of that response's error
	MessageID   string   `json:"messageID,omitempty"`   // MessageId of that response's error: "Base.1.22.GeneralError"
	Performed   bool     `json:"performed,omitempty"`   // with status, drop or code: the request is carried out all the same
	Limit       Limit    `json:"limit,omitempty"`       // rate, such as 10/s, beyond which requests are answered 429, or status
	Drop        Drop     `json:"drop,omitempty"`        // how the connection ends: connect, silent, reset, close, hang or body
	TLS         TLS      `json:"tls,omitempty"`         // how the TLS handshake fails: refused, expired, wrong-name, self-signed, not-yet, sha1 or old
	Offline     bool     `json:"offline,omitempty"`     // the BMC is off the network
	Stale       bool     `json:"stale,omitempty"`       // responses show the state before the last change
	Stuck       bool     `json:"stuck,omitempty"`       // tasks do not end
	Truncate    Cut      `json:"truncate,omitempty"`    // how much of the body is sent: a number of bytes, or 50%
	InvalidJSON bool     `json:"invalidJSON,omitempty"` // the body is no valid JSON
	Headers     Headers  `json:"headers,omitempty"`     // headers of the response that are set, by name; an empty text removes one
	LengthError int      `json:"lengthError,omitempty"` // bytes by which Content-Length is too large, or too small if negative
	Patch       any      `json:"patch,omitempty"`       // object that is merged into the body (RFC 7396)
	Set         Values   `json:"set,omitempty"`         // values that are set in the body, by JSON pointers (RFC 6901); null sets null
	Body        *string  `json:"body,omitempty"`        // replaces the body
	ContentType string   `json:"contentType,omitempty"` // header Content-Type with body; "" leaves it
	Wire        Wire     `json:"wire,omitempty"`        // what happens to IPMI datagrams: lose, double, swap, spoil or late
	Code        byte     `json:"code,omitempty"`        // completion code that IPMI commands are answered with: 0xc0
}

// Headers are the headers of a response by name; an empty text is no header.
type Headers map[string]string

// Values are JSON values by JSON pointers.
type Values map[string]any

// Validate checks a rule. The error joins a yamlfile.Error for each mistake.
func (r *Rule) Validate() error {
	var errs []error
	for _, p := range r.Problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// effect is one kind of fault that a rule can have.
type effect struct {
	field string
	site  Site
	state bool // it lasts for a time, instead of hitting single requests
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
		{"headers", Request, false, len(r.Headers) > 0},
		{"lengthError", Request, false, r.LengthError != 0},
		{"patch", Request, false, r.Patch != nil},
		{"set", Request, false, len(r.Set) > 0},
		{"body", Request, false, r.Body != nil},
		{"wire", Datagram, false, r.Wire != ""},
		{"code", Command, false, r.Code != 0},
	}
}

// Effects returns the fields below "What" that the rule has.
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

// Problems lists the mistakes in a rule.
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
	_, err = r.Sends.parse()
	needs(err, "sends")
	need(r.After >= 0, "after", "%d: must not be negative", r.After)
	need(r.Count >= 0, "count", "%d: must not be negative", r.Count)
	need(r.Probability >= 0 && r.Probability <= 1, "probability", "%v: must be above 0 and at most 1", r.Probability)
	need(r.From.Duration >= 0, "from", "%v: must not be negative", r.From)
	need(r.Until.Duration >= 0, "until", "%v: must not be negative", r.Until)
	need(r.Until.Duration == 0 || r.Until.Duration > r.From.Duration, "until", "%v: must be after from, %v", r.Until, r.From)
	return append(out, r.effectProblems()...)
}

// effectProblems lists the mistakes in the fields below "What".
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
	for name, text := range r.Headers { // one mistake of each is found, whatever the order
		need(name != "" && strings.IndexFunc(name, notOfID) < 0, "headers", "%q: use the name of a header, such as OData-Version", name)
		need(!strings.ContainsAny(text, "\r\n"), "headers", "%s: must be one line", name)
	}

	var does []effect
	for _, e := range r.effects() {
		if e.set {
			does = append(does, e)
		}
	}
	if len(does) == 0 {
		return append(out, yamlfile.Errorf("", "does nothing: add one of status, latency, drop, tls, offline, limit, stale, stuck, truncate, invalidJSON, headers, lengthError, patch, set, body, wire or code"))
	}
	site := does[0].site
	for _, e := range does[1:] {
		need(e.site == site, e.field, "cannot be in a rule with %s: make two rules", does[0].field)
	}
	need(site != Connect && site != Datagram || r.Path == "", "path", "has no effect on %s: there is no path yet", does[0].field)
	need(site == Request || site == Datagram || len(r.Method) == 0, "method", "has no effect on %s", does[0].field)
	need(site == Request || len(r.Sends) == 0, "sends", "has no effect on %s", does[0].field)
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
