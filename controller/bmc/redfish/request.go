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

// response is a 2xx response.
type response struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and reads the response. A response other than 2xx is a
// *statusError. POST, PATCH and DELETE are repeated while the BMC is busy (see
// retryBusy).
func (c *client) do(ctx context.Context, method, uri string, body any, header map[string]string) (response, error) {
	if method == http.MethodGet { // the transport repeats a GET
		return c.doOnce(ctx, method, uri, body, header)
	}
	return c.retryBusy(ctx, func() (response, error) { return c.doOnce(ctx, method, uri, body, header) })
}

func (c *client) doOnce(ctx context.Context, method, uri string, body any, header map[string]string) (response, error) {
	api, session, err := c.connection()
	if err != nil {
		return response{}, err
	}
	a, err := c.send(ctx, api, method, uri, body, header)
	if e := new(statusError); session && errors.As(err, &e) && e.status == http.StatusUnauthorized {
		// The service did nothing, so this is safe for a POST too.
		if err := c.relogin(ctx, api); err != nil {
			return response{}, err
		}
		if api, _, err = c.connection(); err != nil {
			return response{}, err
		}
		return c.send(ctx, api, method, uri, body, header)
	}
	return a, err
}

func (c *client) send(ctx context.Context, api *gofish.APIClient, method, uri string, body any, header map[string]string) (response, error) {
	rec := &outcome{}
	uri = localPath(uri)
	// Copy the client with this request's context: it holds the one it logged in
	// with.
	api = api.WithContext(withOutcome(ctx, rec))
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
		resp, err = sendDelete(api, uri, body, header)
	default:
		return response{}, fmt.Errorf("redfish: no request has method %s", method)
	}
	if resp != nil {
		_ = resp.Body.Close()
	}
	if rec.status/100 == 2 { // gofish reports some of these as errors
		return response{status: rec.status, header: rec.header, body: rec.body}, nil
	}
	return response{}, c.responseError(ctx, method+" "+uri, rec, err)
}

// sendDelete sends a DELETE, with a body if there is one: the apply time goes
// there (DSP0266, "Operation apply time").
func sendDelete(api *gofish.APIClient, uri string, body any, header map[string]string) (*http.Response, error) {
	if body == nil {
		return api.DeleteWithHeaders(uri, header)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return api.RunRawRequestWithHeaders(http.MethodDelete, uri, bytes.NewReader(raw), "application/json", header)
}

// get reads the resource at uri into v.
func (c *client) get(ctx context.Context, uri string, v any) (response, error) {
	a, err := c.do(ctx, http.MethodGet, uri, nil, nil)
	if err != nil {
		return response{}, err
	}
	if err := decode(a.body, v); err != nil {
		return response{}, fmt.Errorf("redfish: GET %s: %w", uri, err)
	}
	return a, nil
}

// decode decodes the first JSON document of body into v. When that is an error and
// a second document follows, it decodes the second, too: some BMCs report a
// missing licence before the resource
// (github.com/bb-Ricardo/check_redfish/issues/151). A property of the wrong type
// counts as absent.
func decode(body []byte, v any) error {
	var odd *json.SyntaxError // also for bytes after the document
	if err := ignoreTypeErrors(json.Unmarshal(body, v)); !errors.As(err, &odd) {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	err := ignoreTypeErrors(d.Decode(v))
	if err != nil || !d.More() {
		return err
	}
	var first struct {
		ID    string          `json:"@odata.id"`
		Error json.RawMessage `json:"error"`
	}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&first) == nil && first.ID == "" && first.Error != nil {
		return ignoreTypeErrors(d.Decode(v))
	}
	return nil
}

func ignoreTypeErrors(err error) error {
	if e := new(json.UnmarshalTypeError); errors.As(err, &e) && e.Field != "" {
		return nil // encoding/json has decoded the other properties
	}
	return err
}

// localPath returns the path and query of a URI that the service gave, absolute or
// not. gofish appends it to https://host: without a leading slash it would change
// the host.
func localPath(uri string) string {
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

// maxPages bounds the pages of one collection. Some services show a page of one
// member, and logs of thousands of entries 50 a page.
const maxPages = 1024

// memberObjects reads the members of a collection as it shows them, page by page
// (DSP0266, "Collection resource response"). Logs show their entries in full, other
// collections as links. A nextLink to a page that was read is an error: a part of
// the members would pass for all of them.
func (c *client) memberObjects(ctx context.Context, uri string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	read := map[string]bool{}
	for next := uri; next != ""; {
		location := localPath(next)
		switch {
		case read[location]:
			return nil, fmt.Errorf("redfish: GET %s: Members@odata.nextLink leads back to %s, a page that was read before", uri, location)
		case len(read) == maxPages:
			return nil, fmt.Errorf("redfish: GET %s: the collection has more than %d pages; the next is %s", uri, maxPages, location)
		}
		read[location] = true
		var page struct {
			Members []json.RawMessage `json:"Members"`
			Next    string            `json:"Members@odata.nextLink"`
		}
		if _, err := c.get(ctx, next, &page); err != nil {
			return nil, err
		}
		all, next = append(all, page.Members...), page.Next
	}
	return all, nil
}

// members reads the URIs of a collection's members.
func (c *client) members(ctx context.Context, uri string) ([]string, error) {
	all, err := c.memberObjects(ctx, uri)
	if err != nil {
		return nil, err
	}
	var uris []string
	for _, member := range all {
		var l link
		if err := ignoreTypeErrors(json.Unmarshal(member, &l)); err == nil && l.ID != "" {
			uris = append(uris, l.ID)
		}
	}
	return uris, nil
}
