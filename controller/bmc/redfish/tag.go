package redfish

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// etag is the tag of a resource: its header, else its property. The suffix
// that a compressing server adds (iDRAC 9) is not part of what it compares.
func etag(a answer) string {
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

// tagForms are the forms in which services take their own tags: they compare
// weakly, strongly, with quotes, without or never (gofish issues 171 and 174,
// ansible-collections/community.general issues 3268 and 11270). Without this
// ladder a BMC that cannot compare its own tags cannot be changed at all.
var tagForms = []struct {
	name string
	of   func(tag string) string
}{
	{"as sent", func(tag string) string { return tag }},
	{"strong", func(tag string) string { return strings.TrimPrefix(tag, "W/") }},
	{"without If-Match", func(string) string { return "" }},
	{"in quotes once", func(tag string) string { return `"` + bareTag(tag) + `"` }},
	{"without quotes", bareTag},
	{"If-Match: *", func(string) string { return "*" }},
}

func bareTag(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// patch changes a resource whose tag was last seen as tag.
func (c *client) patch(ctx context.Context, uri, tag string, body any) (answer, error) {
	return c.change(ctx, http.MethodPatch, uri, tag, body)
}

// remove deletes a resource. Most services want no precondition for that.
func (c *client) remove(ctx context.Context, uri string, body any) (answer, error) {
	return c.change(ctx, http.MethodDelete, uri, "", body)
}

// change sends a request that a precondition may have to go with. One that is
// refused for it is sent again with a fresh tag, in one form after the other.
func (c *client) change(ctx context.Context, method, uri, tag string, body any) (answer, error) {
	known, first := c.lessons.Way(aboutTags), tag
	for _, f := range tagForms {
		if f.name == known && tag != "" {
			first = f.of(tag)
		}
	}
	a, err := c.do(ctx, method, uri, body, ifMatch(first))
	if !refusesTag(err) {
		return a, err
	}
	current, e := c.do(ctx, http.MethodGet, uri, nil, nil)
	if e != nil {
		return answer{}, e
	}
	fresh, tried := etag(current), map[string]bool{first: true}
	send := func(match string) bool {
		if match == `""` || tried[match] {
			return false
		}
		tried[match] = true
		a, err = c.do(ctx, method, uri, body, ifMatch(match))
		return !refusesTag(err)
	}
	for i, f := range tagForms {
		if send(f.of(fresh)) {
			if err == nil && (fresh != "" || i > 0) {
				c.lessons.Learn(bmc.Lesson{Topic: aboutTags, Way: f.name, Odd: i > 0})
			}
			break
		}
	}
	return a, err
}

func refusesTag(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusPreconditionFailed || e.status == http.StatusPreconditionRequired)
}

func ifMatch(tag string) map[string]string {
	if tag == "" {
		return nil
	}
	return map[string]string{"If-Match": tag}
}
