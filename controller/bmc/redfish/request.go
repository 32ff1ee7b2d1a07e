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
// *statusError. What changes something is sent again while the BMC says that it
// is busy.
func (c *client) do(ctx context.Context, method, uri string, body any, header map[string]string) (answer, error) {
	if method == http.MethodGet { // transport has the patience for it
		return c.once(ctx, method, uri, body, header)
	}
	return c.patiently(ctx, func() (answer, error) { return c.once(ctx, method, uri, body, header) })
}

func (c *client) once(ctx context.Context, method, uri string, body any, header map[string]string) (answer, error) {
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
		resp, err = sendDelete(api, uri, body, header)
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

// sendDelete sends a DELETE, with a body where there is one: annotations go there
// (DSP0266, "Operation apply time").
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

// decode reads the first document of body, or, when that is an error and another
// one follows, the second, too: some BMCs tell of a missing licence before what
// they show all the same (github.com/bb-Ricardo/check_redfish/issues/151). A
// property of the wrong type counts as absent.
func decode(body []byte, v any) error {
	var odd *json.SyntaxError // of what follows the document, too
	if err := tolerant(json.Unmarshal(body, v)); !errors.As(err, &odd) {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	err := tolerant(d.Decode(v))
	if err != nil || !d.More() {
		return err
	}
	var first struct {
		ID    string          `json:"@odata.id"`
		Error json.RawMessage `json:"error"`
	}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&first) == nil && first.ID == "" && first.Error != nil {
		return tolerant(d.Decode(v))
	}
	return nil
}

func tolerant(err error) error {
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
