package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// etag returns the ETag of a resource: the header, else the property @odata.etag.
// It strips the suffix of a compressing server (iDRAC 9), which that does not
// compare.
func etag(a response) string {
	tag := a.header.Get("ETag")
	if tag == "" {
		var r struct {
			Tag string `json:"@odata.etag"`
		}
		_ = decode(a.body, &r)
		tag = r.Tag
	}
	if cut, ok := strings.CutSuffix(tag, `-gzip"`); ok {
		tag = cut + `"`
	}
	return tag
}

// etagForms lists the forms in which services accept their own ETags: they compare
// weakly, strongly, with quotes, without quotes or never (gofish issues 171 and
// 174, ansible-collections/community.general issues 3268 and 11270). Without these
// a BMC that cannot compare its own ETags could not be changed at all.
var etagForms = []struct {
	name    string
	convert func(tag string) string
}{
	{"as sent", func(tag string) string { return tag }},
	{"strong", func(tag string) string { return strings.TrimPrefix(tag, "W/") }},
	{"without If-Match", func(string) string { return "" }},
	{"in quotes once", func(tag string) string { return `"` + unquoteETag(tag) + `"` }},
	{"without quotes", unquoteETag},
	{"If-Match: *", func(string) string { return "*" }},
}

func unquoteETag(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// patch sends a PATCH of a resource whose last known ETag is tag.
func (c *client) patch(ctx context.Context, uri, tag string, body any) (response, error) {
	return c.sendWithETag(ctx, http.MethodPatch, uri, tag, body)
}

// deleteResource sends a DELETE. Most services require no precondition for it.
func (c *client) deleteResource(ctx context.Context, uri string, body any) (response, error) {
	return c.sendWithETag(ctx, http.MethodDelete, uri, "", body)
}

// sendWithETag sends a request with If-Match. After a 412 or 428 it reads the
// current ETag and tries its forms one after another.
func (c *client) sendWithETag(ctx context.Context, method, uri, tag string, body any) (response, error) {
	known, first := c.workarounds.Variant(topicETag), tag
	for _, f := range etagForms {
		if f.name == known && tag != "" {
			first = f.convert(tag)
		}
	}
	a, err := c.do(ctx, method, uri, body, ifMatch(first))
	if !refusesETag(err) {
		return a, err
	}
	current, e := c.do(ctx, http.MethodGet, uri, nil, nil)
	if e != nil {
		return response{}, e
	}
	fresh, tried := etag(current), map[string]bool{first: true}
	send := func(match string) bool {
		if match == `""` || tried[match] {
			return false
		}
		tried[match] = true
		a, err = c.do(ctx, method, uri, body, ifMatch(match))
		return !refusesETag(err)
	}
	for i, f := range etagForms {
		if send(f.convert(fresh)) {
			if err == nil && (fresh != "" || i > 0) {
				c.workarounds.Record(bmc.Workaround{Topic: topicETag, Variant: f.name, Nonstandard: i > 0})
			}
			break
		}
	}
	return a, err
}

func refusesETag(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusPreconditionFailed || e.status == http.StatusPreconditionRequired)
}

func ifMatch(tag string) map[string]string {
	if tag == "" {
		return nil
	}
	return map[string]string{"If-Match": tag}
}
