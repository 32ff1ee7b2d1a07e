package redfish

import (
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// comparison is how ETags are compared (RFC 9110, §8.8.3.2).
type comparison bool

const (
	strongly comparison = false // a weak one equals nothing
	weakly   comparison = true
)

// matches says whether an If-Match or If-None-Match header names an ETag, or
// any with "*" (RFC 9110, §13.1).
func matches(header []string, etag string, how comparison) bool {
	for _, line := range header {
		for {
			line = strings.TrimLeft(line, ", \t")
			if line == "" {
				break
			}
			if line[0] == '*' {
				return true
			}
			rest, weak := strings.CutPrefix(line, "W/")
			if !strings.HasPrefix(rest, `"`) {
				break // no ETag, and what follows cannot be told
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				break
			}
			tag := rest[:end+2]
			line = strings.TrimLeft(rest[end+2:], " \t")
			if line != "" && line[0] != ',' {
				break // what follows belongs to it, and it is no ETag
			}
			if tag == etag && (how == weakly || !weak) {
				return true
			}
		}
	}
	return false
}

// ifMatchHolds says whether a header names the ETag of a page, or that of the page as
// it is packed, as a vendor's service compares them.
func ifMatchHolds(header []string, etag string, as dialect.ETags, how comparison) bool {
	star := matchesAny(header)
	plain := render.StrongETag(etag)
	switch {
	case as.Comparison == dialect.Never:
		return false
	case star:
		return !as.RejectStar
	case as.Format == dialect.Empty: // not even by one that is empty
		return false
	case as.Comparison == dialect.Unquoted:
		return slices.ContainsFunc(header, func(line string) bool { return strings.TrimSpace(line) == strings.Trim(plain, `"`) })
	case as.Format == dialect.DoubleQuoted:
		return slices.ContainsFunc(header, func(line string) bool { return strings.TrimSpace(line) == etag })
	case as.Format == dialect.Weak: // or nothing that it gave out would match
		how = weakly
	}
	return matches(header, plain, how) || !as.GzipSuffix && matches(header, render.GzipETag(plain), how)
}

// matchesAny says whether a header names any ETag.
func matchesAny(header []string) bool {
	return slices.ContainsFunc(header, func(line string) bool { return strings.TrimSpace(line) == "*" })
}

// ifNoneMatchHolds says whether If-None-Match names the ETag of a page. Of a vendor's
// whims only how ETags are written matters here.
func ifNoneMatchHolds(header []string, etag string, as dialect.ETags) bool {
	return ifMatchHolds(header, etag, dialect.ETags{Format: as.Format}, weakly)
}

// precondition checks what a write rests on (RFC 9110, §13.1; DSP0266, "ETags").
// When it does not hold, it is refused.
func (x *request) precondition(at *resource.Snapshot) bool {
	yes, no := x.r.Header["If-Match"], x.r.Header["If-None-Match"]
	as := at.Dialect.Protocol.ETags
	if len(yes) == 0 && len(no) == 0 {
		if x.match.GuardedBy(as) && x.r.Method != http.MethodPost && !(as.DeleteWithoutIfMatch && x.r.Method == http.MethodDelete) {
			x.refuse(http.StatusPreconditionRequired, message.PreconditionRequired.With())
			return false
		}
		return true
	}
	if x.match.Action != nil && as.RejectIfMatchOnActions {
		x.refuse(http.StatusPreconditionFailed, message.PreconditionFailed.With())
		return false
	}
	tag := ""
	switch {
	case slices.Contains(as.Volatile, resource.TypeName(x.match.Schema)): // nobody has been told it
	case len(no) > 0 || !matchesAny(yes): // or any will do
		tag = x.s.renderer.Representation(x.match, at).Tag()
	}
	if len(yes) > 0 && !ifMatchHolds(yes, tag, as, strongly) || len(no) > 0 && ifNoneMatchHolds(no, tag, as) {
		x.refuse(http.StatusPreconditionFailed, message.PreconditionFailed.With())
		return false
	}
	return true
}
