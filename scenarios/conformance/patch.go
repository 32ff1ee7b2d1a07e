package conformance

import (
	"context"
	"net/http"
	"strings"
)

// match returns the header If-Match with the resource's ETag, or none.
func (r *Run) match(ctx context.Context, uri string) http.Header {
	resp, err := r.Do(ctx, Request{URI: uri})
	if err != nil || resp.Status != http.StatusOK || resp.Header.Get("ETag") == "" {
		return nil
	}
	return http.Header{"If-Match": {resp.Header.Get("ETag")}}
}

// patch sends a PATCH as clients do that know BMCs: with the resource's ETag, and
// where that is refused with its bare form, and without.
func (r *Run) patch(ctx context.Context, c Change) (*Response, error) {
	c.Method = http.MethodPatch
	var resp *Response
	for _, match := range r.matches(ctx, c.URI) {
		c.Header = match
		var err error
		if resp, err = r.Change(ctx, c); err != nil {
			return nil, err
		}
		if resp.Status != http.StatusPreconditionFailed && resp.Status != http.StatusPreconditionRequired {
			break
		}
	}
	return resp, nil
}

// matches returns the headers If-Match to try in turn.
func (r *Run) matches(ctx context.Context, uri string) []http.Header {
	first := r.match(ctx, uri)
	if first == nil {
		return []http.Header{nil}
	}
	bare := strings.Trim(strings.TrimPrefix(first.Get("If-Match"), "W/"), `"`)
	return []http.Header{first, {"If-Match": {bare}}, nil}
}
