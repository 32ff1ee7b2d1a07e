package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"time"
)

// pushTimeout bounds one upload: images have up to some hundred MB, and BMCs have
// slow network ports and slower flash.
const pushTimeout = 30 * time.Minute

// Push uploads an image: with its update parameters where the service has a
// MultipartHttpPushUri (DSP0266, "Multipart HTTP push updates"), otherwise as the
// plain body of a POST to HttpPushUri. It returns the URI of the task, "" if the
// BMC reports none.
func (c *client) Push(ctx context.Context, component, name string, image io.Reader, size int64) (string, error) {
	u, err := c.updateService(ctx, "Push")
	if err != nil {
		return "", err
	}
	_, entry, err := c.findComponent(ctx, "Push", component)
	if err != nil {
		return "", err
	}
	var a response
	switch {
	case u.Multipart != "":
		parameters := map[string]any{"Targets": []string{}}
		if entry.uri != "" {
			parameters["Targets"] = []string{entry.uri}
		}
		head, tail, kind := multipartEnvelope(parameters, name)
		if size >= 0 {
			size += int64(len(head) + len(tail))
		}
		a, err = c.upload(ctx, u.Multipart, kind, io.MultiReader(bytes.NewReader(head), image, bytes.NewReader(tail)), size)
	case u.Push != "":
		a, err = c.upload(ctx, u.Push, "application/octet-stream", image, size)
	default:
		return "", unsupported("Push", "the update service takes no images")
	}
	if err != nil {
		return "", err
	}
	return taskURI(a), nil
}

// multipartEnvelope returns the bytes before and after the image in a multipart
// push, and the Content-Type of the whole.
func multipartEnvelope(parameters map[string]any, name string) (head, tail []byte, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(disposition, kind string, body []byte) {
		// A write into memory does not fail.
		p, _ := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {kind}})
		_, _ = p.Write(body)
	}
	about, _ := json.Marshal(parameters) // a map of strings always encodes
	part(`form-data; name="UpdateParameters"`, "application/json", about)
	part(fmt.Sprintf(`form-data; name="UpdateFile"; filename=%q`, name), "application/octet-stream", nil)
	n := b.Len()
	_ = w.Close()
	return b.Bytes()[:n:n], b.Bytes()[n:], w.FormDataContentType()
}

// upload posts a body that is not JSON. It sends it once, without retries, because
// the body can be read only once.
func (c *client) upload(ctx context.Context, uri, kind string, body io.Reader, size int64) (response, error) {
	api, session, err := c.connection()
	if err != nil {
		return response{}, err
	}
	rec := &outcome{timeout: pushTimeout}
	req, err := http.NewRequestWithContext(withOutcome(ctx, rec), http.MethodPost, c.address.URL()+localPath(uri), body)
	if err != nil {
		return response{}, fmt.Errorf("redfish: POST %s: %w", uri, err)
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OData-Version", "4.0")
	req.SetBasicAuth(c.credentials.Username, c.credentials.Password)
	if session {
		s, err := api.GetSession()
		if err != nil {
			return response{}, fmt.Errorf("redfish: POST %s: %w", uri, err)
		}
		req.Header.Del("Authorization")
		req.Header.Set("X-Auth-Token", s.Token)
	}
	resp, err := c.transport.RoundTrip(req)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if rec.status/100 == 2 {
		return response{status: rec.status, header: rec.header, body: rec.body}, nil
	}
	return response{}, c.responseError(ctx, "POST "+localPath(uri), rec, err)
}
