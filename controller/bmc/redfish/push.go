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

// pushLimit bounds the time of a push: images have up to some hundred MB, and
// BMCs have slow network ports and slower flash.
const pushLimit = 30 * time.Minute

// Push sends an image with what is to be done with it (DSP0266, "Multipart HTTP
// push updates") or, where the service does not take that, alone.
func (c *client) Push(ctx context.Context, component, name string, image io.Reader, size int64) (string, error) {
	u, err := c.updateService(ctx, "Push")
	if err != nil {
		return "", err
	}
	_, entry, err := c.inventoried(ctx, "Push", component)
	if err != nil {
		return "", err
	}
	var a answer
	switch {
	case u.Multipart != "":
		parameters := map[string]any{"Targets": []string{}}
		if entry.uri != "" {
			parameters["Targets"] = []string{entry.uri}
		}
		head, tail, kind := enclose(parameters, name)
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
	return taskOf(a), nil
}

// enclose is what comes before and after an image in a multipart push.
func enclose(parameters map[string]any, name string) (head, tail []byte, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(disposition, kind string, body []byte) {
		// A write into memory does not fail.
		p, _ := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {kind}})
		_, _ = p.Write(body)
	}
	about, _ := json.Marshal(parameters) // of strings
	part(`form-data; name="UpdateParameters"`, "application/json", about)
	part(fmt.Sprintf(`form-data; name="UpdateFile"; filename=%q`, name), "application/octet-stream", nil)
	n := b.Len()
	_ = w.Close()
	return b.Bytes()[:n:n], b.Bytes()[n:], w.FormDataContentType()
}

// upload posts a body that is not JSON. It is sent once, whatever happens: it
// cannot be read again.
func (c *client) upload(ctx context.Context, uri, kind string, body io.Reader, size int64) (answer, error) {
	api, session, err := c.connection()
	if err != nil {
		return answer{}, err
	}
	rec := &record{limit: pushLimit}
	req, err := http.NewRequestWithContext(withRecord(ctx, rec), http.MethodPost, c.address.URL()+local(uri), body)
	if err != nil {
		return answer{}, fmt.Errorf("redfish: POST %s: %w", uri, err)
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OData-Version", "4.0")
	req.SetBasicAuth(c.credentials.Username, c.credentials.Password)
	if session {
		s, err := api.GetSession()
		if err != nil {
			return answer{}, fmt.Errorf("redfish: POST %s: %w", uri, err)
		}
		req.Header.Del("Authorization")
		req.Header.Set("X-Auth-Token", s.Token)
	}
	resp, err := c.transport.RoundTrip(req)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if rec.status/100 == 2 {
		return answer{status: rec.status, header: rec.header, body: rec.body}, nil
	}
	return answer{}, c.explain(ctx, "POST "+local(uri), rec, err)
}
