package report

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// identifying matches JSON properties whose texts identify a server, its owner or
// its network.
var identifying = regexp.MustCompile(`(?i)"((?:[a-z]*serialnumber|sku|servicetag|[a-z]*uuid|(?:permanent|base|manager)?macaddress|macaddresses|hostname|fqdn|assettag|wwnn?|wwpn|durablename|username|[a-z]*licen[cs]ekey|licensestring|entitlementid|(?:ip|ipv4|ipv6)?address|gateway|certificatestring|remoteaddress|clientoriginipaddress))"\s*:\s*"((?:[^"\\]|\\.)*)"`)

// general are values that identify nobody.
var general = []string{"", "unknown", "none", "n/a", "not specified", "default string", "to be filled by o.e.m.", "localhost", "0.0.0.0", "::", "127.0.0.1", "255.255.255.0"}

// macs matches MAC addresses wherever they stand, ids UUIDs.
var (
	macs = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b`)
	ids  = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
)

// redactor replaces what identifies a server, equal values by equal ones.
type redactor struct {
	host    string
	names   map[string]string // replacement by value
	counts  map[string]int
	replace *strings.Replacer
}

// maxNames bounds the values of one server.
const maxNames = 5000

// newRedactor collects the values from the evidence.
func newRedactor(target string, all []conformance.Exchange) *redactor {
	r := &redactor{names: map[string]string{}, counts: map[string]int{}}
	if u, err := url.Parse(target); err == nil {
		r.host = u.Host
		if u.Hostname() != "" && u.Hostname() != "localhost" {
			r.names[u.Hostname()] = "bmc"
		}
	}
	for _, x := range all {
		for _, m := range identifying.FindAllSubmatch(x.Body, -1) {
			r.note(string(m[1]), string(m[2]))
		}
		for _, m := range macs.FindAll(x.Body, -1) {
			r.note("macaddress", string(m))
		}
		for _, m := range ids.FindAll(x.Body, -1) {
			r.note("uuid", string(m))
		}
	}
	var pairs []string
	values := make([]string, 0, len(r.names))
	for v := range r.names {
		values = append(values, v)
	}
	// The longest first: one value may be part of another.
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for _, v := range values {
		pairs = append(pairs, v, r.names[v])
	}
	r.replace = strings.NewReplacer(pairs...)
	return r
}

// note gives a value its replacement. Texts that are too short or too general to
// identify a server, such as the user name admin, are replaced only as the value of
// their property.
func (r *redactor) note(name, value string) {
	if len(r.names) >= maxNames || slices.Contains(general, strings.ToLower(value)) || len(value) < 6 || !strings.ContainsAny(value, "0123456789") && !macs.MatchString(value) {
		return
	}
	if _, there := r.names[value]; there {
		return
	}
	kind := strings.ToLower(name)
	r.counts[kind]++
	text := fmt.Sprintf("%s-%d", kind, r.counts[kind])
	r.names[value] = text
}

func (r *redactor) text(s string) string { return r.replace.Replace(s) }

func (r *redactor) body(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	named := identifying.ReplaceAllFunc(b, func(m []byte) []byte {
		parts := identifying.FindSubmatch(m)
		value := string(parts[2])
		if slices.Contains(general, strings.ToLower(value)) {
			return m
		}
		text, there := r.names[value]
		if !there {
			text = strings.ToLower(string(parts[1]))
		}
		return fmt.Appendf(nil, "%q:%q", parts[1], text)
	})
	return []byte(r.text(string(named)))
}

func (r *redactor) exchange(x conformance.Exchange) conformance.Exchange {
	x.URL, x.Error = r.text(x.URL), r.text(x.Error)
	x.RequestBody, x.Body = r.body(x.RequestBody), r.body(x.Body)
	x.RequestHeader, x.Header = x.RequestHeader.Clone(), x.Header.Clone()
	for _, h := range []map[string][]string{x.RequestHeader, x.Header} {
		for _, values := range h {
			for i := range values {
				values[i] = r.text(values[i])
			}
		}
	}
	return x
}
