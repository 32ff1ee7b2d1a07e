package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/stmcginnis/gofish"
)

// answer is a successful answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and reads the answer. An answer that is no success is a
// *statusError.
func (c *client) do(ctx context.Context, method, uri string, body any, header map[string]string) (answer, error) {
	api, session, err := c.connection()
	if err != nil {
		return answer{}, err
	}
	a, err := c.send(ctx, api, method, uri, body, header)
	if e := new(statusError); session && errors.As(err, &e) && e.status == http.StatusUnauthorized {
		// The service did nothing, so this is safe for a POST too.
		if err := c.relogin(ctx, api); err != nil {
			return answer{}, err
		}
		if api, _, err = c.connection(); err != nil {
			return answer{}, err
		}
		return c.send(ctx, api, method, uri, body, header)
	}
	return a, err
}

func (c *client) send(ctx context.Context, api *gofish.APIClient, method, uri string, body any, header map[string]string) (answer, error) {
	rec := &record{}
	uri = local(uri)
	// A copy with a context of its own: the client has that of its login.
	api = api.WithContext(withRecord(ctx, rec))
	var (
		resp *http.Response
		err  error
	)
	switch method {
	case http.MethodGet:
		resp, err = api.GetWithHeaders(uri, header)
	case http.MethodPost:
		resp, err = api.PostWithHeaders(uri, body, header)
	case http.MethodPatch:
		resp, err = api.PatchWithHeaders(uri, body, header)
	case http.MethodDelete:
		resp, err = remove(api, uri, body, header)
	default:
		return answer{}, fmt.Errorf("redfish: no request has method %s", method)
	}
	if resp != nil {
		_ = resp.Body.Close()
	}
	if rec.status/100 == 2 { // gofish takes some of these for errors
		return answer{status: rec.status, header: rec.header, body: rec.body}, nil
	}
	return answer{}, c.explain(ctx, method+" "+uri, rec, err)
}

// remove sends a DELETE, with a body where there is one: annotations go there
// (DSP0266, "Operation apply time").
func remove(api *gofish.APIClient, uri string, body any, header map[string]string) (*http.Response, error) {
	if body == nil {
		return api.DeleteWithHeaders(uri, header)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return api.RunRawRequestWithHeaders(http.MethodDelete, uri, bytes.NewReader(raw), "application/json", header)
}

// get reads a resource into v.
func (c *client) get(ctx context.Context, uri string, v any) (answer, error) {
	a, err := c.do(ctx, http.MethodGet, uri, nil, nil)
	if err != nil {
		return answer{}, err
	}
	if err := decode(a.body, v); err != nil {
		return answer{}, fmt.Errorf("redfish: GET %s: %w", uri, err)
	}
	return a, nil
}

// decode reads the first document of body: some BMCs append a second one
// (github.com/bb-Ricardo/check_redfish/issues/151). A property of the wrong
// type counts as absent.
func decode(body []byte, v any) error {
	err := json.NewDecoder(bytes.NewReader(body)).Decode(v)
	if e := new(json.UnmarshalTypeError); errors.As(err, &e) && e.Field != "" {
		return nil // the rest is decoded
	}
	return err
}

// local is the path and query of a URI that the service gave, whether absolute
// or not. gofish appends it to https://host: without a leading slash it would
// change the host.
func local(uri string) string {
	if u, err := url.Parse(uri); err == nil && u.Host != "" {
		uri = u.RequestURI()
	}
	uri, _, _ = strings.Cut(uri, "#")
	return "/" + strings.TrimLeft(uri, "/")
}

// link is a reference to another resource.
type link struct {
	ID string `json:"@odata.id"`
}

// members reads the URIs of a collection, page by page.
func (c *client) members(ctx context.Context, uri string) ([]string, error) {
	const pages = 16 // no collection that is read here has more than a few members
	var uris []string
	for range pages {
		var page struct {
			Members []link `json:"Members"`
			Next    string `json:"Members@odata.nextLink"`
		}
		if _, err := c.get(ctx, uri, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Members {
			if m.ID != "" {
				uris = append(uris, m.ID)
			}
		}
		if page.Next == "" {
			break
		}
		uri = page.Next
	}
	return uris, nil
}

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

// patch changes a resource whose tag was last seen as tag. A service that
// refuses the precondition is asked again with a fresh tag, with the strong
// form of a weak one, and at last without: services compare weakly, strongly,
// with quotes or never (gofish issues 171 and 174, ansible-collections/
// community.general issues 3268 and 11270). Without this ladder a BMC that
// cannot compare its own tags cannot be changed at all.
func (c *client) patch(ctx context.Context, uri, tag string, body any) (answer, error) {
	a, err := c.do(ctx, http.MethodPatch, uri, body, ifMatch(tag))
	if !refusesTag(err) {
		return a, err
	}
	current, e := c.do(ctx, http.MethodGet, uri, nil, nil)
	if e != nil {
		return answer{}, e
	}
	tried := map[string]bool{tag: true}
	fresh := etag(current)
	for _, tag := range []string{fresh, strings.TrimPrefix(fresh, "W/"), "", "*"} {
		if tried[tag] {
			continue
		}
		tried[tag] = true
		if a, err = c.do(ctx, http.MethodPatch, uri, body, ifMatch(tag)); !refusesTag(err) {
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
