package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
)

// encodingsServed reads the service root and a registry with and without gzip.
func encodingsServed(ctx context.Context, r *Run) Outcome {
	uris := []string{"/redfish/v1/"}
	if root, err := r.Page(ctx, "/redfish/v1/"); err == nil {
		document, err := r.firstRegistry(ctx, root)
		if err != nil {
			return Judge(err)
		}
		if document != "" {
			uris = append(uris, document)
		}
	}
	for _, uri := range uris {
		for _, encoding := range []string{"identity", "gzip"} {
			resp, err := r.Do(ctx, Request{URI: uri, Header: http.Header{"Accept-Encoding": {encoding}}})
			if err != nil {
				return Judge(err)
			}
			switch {
			case resp.Status == http.StatusNotAcceptable && encoding == "identity":
				return Warned("%s is served with gzip only: Accept-Encoding identity is answered 406", uri).Quirky("identity-406")
			case resp.Status != http.StatusOK:
				return Failed("%s with Accept-Encoding %s: %s", uri, encoding, resp.Problem())
			case resp.Header.Get("Content-Encoding") == "gzip" && encoding == "identity":
				return Failed("%s is compressed although the client accepts identity only", uri)
			case resp.Header.Get("Content-Encoding") == "gzip":
				z, err := gzip.NewReader(bytes.NewReader(resp.Body))
				if err == nil {
					_, err = io.Copy(io.Discard, io.LimitReader(z, 4*maxBody))
				}
				if err != nil {
					return Failed("%s: the gzip body is broken: %v", uri, err)
				}
			}
		}
	}
	return Passed("")
}

// firstRegistry returns the URI of the document of a registry of the BMC, or
// nothing when there is none.
func (r *Run) firstRegistry(ctx context.Context, root Value) (string, error) {
	uri, err := root.At("Registries").Link()
	if err != nil {
		return "", nil
	}
	files, err := r.Members(ctx, uri)
	if err != nil {
		return "", err
	}
	for _, f := range files[:min(len(files), 10)] {
		v, err := r.Page(ctx, f)
		if err != nil {
			return "", err
		}
		locations, err := v.At("Location").List()
		if err != nil {
			continue
		}
		for _, l := range locations {
			if document := l.At("Uri").TextOr(""); strings.HasPrefix(document, "/") {
				return document, nil
			}
		}
	}
	return "", nil
}
