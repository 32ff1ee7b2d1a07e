package pxe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// requestTimeout is how long an HTTP request may take, in real time.
const requestTimeout = time.Minute

// client keeps no connections: boots are rare.
var client = &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// public returns a URL for messages: its query has the boot's token.
func public(uri *url.URL) string {
	without := *uri
	without.RawQuery = ""
	return without.Redacted()
}

// get makes a request and checks its status.
func get(ctx context.Context, method string, uri *url.URL, header, value string, want int) (*http.Response, error) {
	if uri.Scheme != "http" && uri.Scheme != "https" {
		return nil, fmt.Errorf("%s: only http and https are known", public(uri))
	}
	req, err := http.NewRequestWithContext(ctx, method, uri.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "UefiHttpBoot/1.0")
	if header != "" {
		req.Header.Set(header, value)
	}
	resp, err := client.Do(req)
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) { // it names the URL
		err = urlErr.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", public(uri), err)
	}
	if resp.StatusCode != want {
		resp.Body.Close()
		err := errors.New(resp.Status)
		if resp.StatusCode == http.StatusServiceUnavailable { // the controller has just started
			err = ErrSilent
		}
		return nil, fmt.Errorf("%s: %w", public(uri), err)
	}
	return resp, nil
}

// fetch returns the content of a file of at most so many bytes.
func fetch(ctx context.Context, uri *url.URL, most int) ([]byte, error) {
	resp, err := get(ctx, http.MethodGet, uri, "", "", http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", public(uri), err)
	case len(b) > most:
		return nil, fmt.Errorf("%s: longer than %d bytes", public(uri), most)
	}
	return b, nil
}

// remoteFile is a file that is read by HTTP ranges, as firmware reads a disk. It
// caches the chunks that it has read.
type remoteFile struct {
	ctx    context.Context //nolint:containedctx // the context of one boot; io.ReaderAt takes none
	uri    *url.URL
	size   int64
	chunks map[int64][]byte
}

const (
	chunkSize = 64 << 10
	maxChunks = 256
)

// open returns a file, and determines its size with a HEAD request.
func open(ctx context.Context, uri string) (*remoteFile, error) {
	parsed, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	resp, err := get(ctx, http.MethodHead, parsed, "", "", http.StatusOK)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if resp.ContentLength <= 0 {
		return nil, fmt.Errorf("%s: the server does not say how long it is", public(parsed))
	}
	return &remoteFile{ctx: ctx, uri: parsed, size: resp.ContentLength, chunks: map[int64][]byte{}}, nil
}

// ReadAt implements io.ReaderAt.
func (r *remoteFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at < 0 || at >= r.size {
			return n, io.EOF
		}
		b, err := r.chunk(at / chunkSize)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], b[at%chunkSize:])
	}
	return n, nil
}

func (r *remoteFile) chunk(i int64) ([]byte, error) {
	if b := r.chunks[i]; b != nil {
		return b, nil
	}
	from, to := i*chunkSize, min((i+1)*chunkSize, r.size)
	resp, err := get(r.ctx, http.MethodGet, r.uri, "Range", fmt.Sprintf("bytes=%d-%d", from, to-1), http.StatusPartialContent)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b := make([]byte, to-from)
	if _, err := io.ReadFull(resp.Body, b); err != nil {
		return nil, fmt.Errorf("%s: %w", public(r.uri), err)
	}
	if len(r.chunks) >= maxChunks {
		clear(r.chunks)
	}
	r.chunks[i] = b
	return b, nil
}
