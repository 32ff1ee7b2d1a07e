package vendor

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/odata"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// ClosesConnections reports whether the service closes each connection after one
// response.
func (v *Vendor) ClosesConnections() bool { return v.d.Protocol.CloseAfterResponse }

// SupportsGzip reports whether the service compresses responses for clients that
// accept it.
func (v *Vendor) SupportsGzip() bool { return v.d.Protocol.Gzip }

// MaxImageBytes returns the size of the largest firmware image that the service
// accepts, in bytes.
func (v *Vendor) MaxImageBytes() int64 { return v.d.MaxImageBytes }

// Uploads returns how the service takes pushed images.
func (v *Vendor) Uploads() dialect.Uploads { return v.d.Uploads }

// Registries returns the versions of the message registries that the vendor uses.
func (v *Vendor) Registries() message.Versions { return v.d.Protocol.Registries }

// HasSuccessMessage reports whether the service answers a write with a message
// instead of the resource.
func (v *Vendor) HasSuccessMessage() bool { return v.d.Presentation.Errors.Success != nil }

// IfMatchRequired reports whether a request without If-Match and If-None-Match
// must be refused with 428 (DSP0266, "ETags").
func (v *Vendor) IfMatchRequired(method string, m *resource.Match) bool {
	as := v.d.Protocol.ETags
	exempt := method == http.MethodPost || as.DeleteWithoutIfMatch && method == http.MethodDelete
	return !exempt && m.GuardedBy(as)
}

// RejectsIfMatch reports whether the service answers 412 to any If-Match of a
// request for a route.
func (v *Vendor) RejectsIfMatch(m *resource.Match) bool {
	return m.Action != nil && v.d.Protocol.ETags.RejectIfMatchOnActions
}

// HasVolatileETag reports whether the resources of a schema have another ETag at
// each read, so that a client cannot know the present one.
func (v *Vendor) HasVolatileETag(schema string) bool {
	return slices.Contains(v.d.Protocol.ETags.Volatile, resource.TypeName(schema))
}

// IfMatchHolds reports whether an If-Match header names the ETag of a
// representation, or of its compressed form, in the way that the service compares
// them. etag is in the vendor's format.
func (v *Vendor) IfMatchHolds(header []string, etag string) bool {
	return etagMatches(header, etag, v.d.Protocol.ETags, resource.StrongComparison)
}

// IfNoneMatchHolds reports whether an If-None-Match header names the ETag of a
// representation. Of the vendor's deviations only the format of ETags applies.
func (v *Vendor) IfNoneMatchHolds(header []string, etag string) bool {
	return etagMatches(header, etag, dialect.ETags{Format: v.d.Protocol.ETags.Format}, resource.WeakComparison)
}

func etagMatches(header []string, etag string, as dialect.ETags, how resource.ETagComparison) bool {
	strong := resource.StrongETag(etag)
	switch {
	case as.Comparison == dialect.Never:
		return false
	case resource.MatchesAnyETag(header):
		return !as.RejectStar
	case as.Format == dialect.Empty: // an empty If-Match does not match either
		return false
	case as.Comparison == dialect.Unquoted:
		return hasLine(header, strings.Trim(strong, `"`))
	case as.Format == dialect.DoubleQuoted:
		return hasLine(header, etag)
	case as.Format == dialect.Weak: // compared strongly, no ETag of this service would match
		how = resource.WeakComparison
	}
	return resource.MatchesETag(header, strong, how) || !as.GzipSuffix && resource.MatchesETag(header, resource.GzipETag(strong), how)
}

// hasLine reports whether a header has a line with a text and nothing else.
func hasLine(header []string, text string) bool {
	return slices.ContainsFunc(header, func(line string) bool { return strings.TrimSpace(line) == text })
}

// PageSize returns the number of members that one response of a collection shows;
// 0 means all.
func (v *Vendor) PageSize() int { return v.d.Protocol.PageSize }

// ExpandOmits returns the properties that $expand leaves out of the members.
func (v *Vendor) ExpandOmits() []string { return v.d.Protocol.ExpandOmits }

// QuerySupport returns the query parameters that the service implements.
func (v *Vendor) QuerySupport() odata.Support {
	q := v.d.Protocol.Queries
	return odata.Support{
		TopSkip: q.TopSkip, Select: q.Select, Filter: q.Filter, Only: q.Only, Excerpt: q.Excerpt,
		ExpandAll: q.ExpandAll, ExpandLinks: q.ExpandLinks, ExpandRest: q.ExpandRest, Levels: q.MaxLevels,
		Lenient: q.Unknown == dialect.Ignored,
	}
}

// UnsupportedQueryStatus returns the status of the response to a query parameter
// that the service does not implement: 501, or 400 against DSP0266.
func (v *Vendor) UnsupportedQueryStatus() int {
	if v.d.Protocol.Queries.Unknown == dialect.NotImplemented {
		return http.StatusNotImplemented
	}
	return http.StatusBadRequest
}

// ETag returns the ETag of a body, in the vendor's format.
func (v *Vendor) ETag(body []byte) string {
	return resource.FormatETag(resource.ETag(body), v.d.Protocol.ETags)
}

// MissingTaskReads returns how many reads of a new task the service answers with
// 404.
func (v *Vendor) MissingTaskReads() int { return v.d.Tasks.MissingReads }

// LocationIsTask reports whether the Location of a 202 response names the task,
// not its monitor. A GET of the task then is answered as one of the monitor.
func (v *Vendor) LocationIsTask() bool { return v.d.Tasks.LocationIsTask }

// MonitorReadOnce reports whether a task monitor is removed by the first response
// that shows that its operation has ended.
func (v *Vendor) MonitorReadOnce() bool { return v.d.Tasks.MonitorReadOnce }

// ReplaceBody returns the body of a response to a GET where it differs from the
// resource's representation for a vendor's sake, or nil: a collection of a BMC that
// has just started has no members, and an error may stand in front of a resource.
// body is JSON and has the vendor's form.
func (v *Vendor) ReplaceBody(h resource.Host, m *resource.Match, body []byte) []byte {
	as := &v.d.Protocol
	if len(as.ErrorPrefixes) == 0 && as.EmptyCollectionsAfterBoot == 0 {
		return nil
	}
	kind := resource.TypeName(m.Schema)
	if strings.HasSuffix(kind, "Collection") && hasJustStarted(h.BMC().Life, h.Now(), as.EmptyCollectionsAfterBoot) {
		return withoutMembers(body)
	}
	i := slices.IndexFunc(as.ErrorPrefixes, func(p dialect.ErrorPrefix) bool { return p.ResourceType == kind })
	if i < 0 {
		return nil
	}
	return append(append(v.Error(NewMessage(as.ErrorPrefixes[i].Message)), '\n'), body...)
}

// hasJustStarted reports whether a BMC started less than a duration ago.
func hasJustStarted(life *bmc.Life, now time.Time, d time.Duration) bool {
	return d > 0 && life != nil && !life.Up.IsZero() && now.Sub(life.Up) < d
}

// withoutMembers returns the body of a collection without its members.
func withoutMembers(body []byte) []byte {
	o := resource.Decode(body)
	o["Members"], o["Members@odata.count"] = []any{}, 0
	delete(o, "Members@odata.nextLink")
	return resource.Encode(o)
}
