package pxe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/job"
)

// requestTimeout is how long one request may take, in real time.
const requestTimeout = time.Minute

// client follows no redirect to another scheme, and keeps no connection: boots
// are rare.
var client = &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// get makes a request and checks its status.
func get(ctx context.Context, method string, at *url.URL, header, value string, want int) (*http.Response, error) {
	if at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("pxe: %s: only http and https are known", at.Redacted())
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("pxe: %w", err)
	}
	req.Header.Set("User-Agent", "UefiHttpBoot/1.0")
	if header != "" {
		req.Header.Set(header, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("pxe: %w", err)
	}
	if resp.StatusCode != want {
		resp.Body.Close()
		return nil, fmt.Errorf("pxe: %s: %s", at.Redacted(), resp.Status)
	}
	return resp, nil
}

// fetch gets a file whole.
func fetch(ctx context.Context, at *url.URL, most int) ([]byte, error) {
	resp, err := get(ctx, http.MethodGet, at, "", "", http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("pxe: %s: %w", at.Redacted(), err)
	case len(b) > most:
		return nil, fmt.Errorf("pxe: %s: longer than %d bytes", at.Redacted(), most)
	}
	return b, nil
}

// remoteFile is a file that is read in pieces, as firmware reads a disk over HTTP:
// what is asked for again is kept.
type remoteFile struct {
	ctx    context.Context //nolint:containedctx // of one boot; io.ReaderAt takes none
	at     *url.URL
	size   int64
	chunks map[int64][]byte
}

const (
	chunkSize = 64 << 10
	maxChunks = 256
)

// open asks for the size of a file.
func open(ctx context.Context, uri string) (*remoteFile, error) {
	at, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("pxe: %w", err)
	}
	resp, err := get(ctx, http.MethodHead, at, "", "", http.StatusOK)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if resp.ContentLength <= 0 {
		return nil, fmt.Errorf("pxe: %s: the server does not say how long it is", at.Redacted())
	}
	return &remoteFile{ctx: ctx, at: at, size: resp.ContentLength, chunks: map[int64][]byte{}}, nil
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
	resp, err := get(r.ctx, http.MethodGet, r.at, "Range", fmt.Sprintf("bytes=%d-%d", from, to-1), http.StatusPartialContent)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b := make([]byte, to-from)
	if _, err := io.ReadFull(resp.Body, b); err != nil {
		return nil, fmt.Errorf("pxe: %s: %w", r.at.Redacted(), err)
	}
	if len(r.chunks) >= maxChunks {
		clear(r.chunks)
	}
	r.chunks[i] = b
	return b, nil
}

// ReadISO finds the agent's configuration on an ISO.
func ReadISO(r io.ReaderAt, size int64) (job.Media, error) {
	iso, err := iso9660.Read(file.New(isoFile{io.NewSectionReader(r, 0, size)}, true), size, 0, 0)
	if err != nil {
		return job.Media{}, fmt.Errorf("no ISO 9660: %w", err)
	}
	f, err := iso.OpenFile(job.MediaConfigPath, os.O_RDONLY)
	if err != nil {
		return job.Media{}, fmt.Errorf("no agent: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, job.MaxBody))
	if err != nil {
		return job.Media{}, fmt.Errorf("%s: %w", job.MediaConfigPath, err)
	}
	return parseMedia(b)
}

// isoFile is an ISO as a file, which is what its reader asks for.
type isoFile struct{ *io.SectionReader }

// Stat implements fs.File.
func (isoFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Close implements fs.File.
func (isoFile) Close() error { return nil }

func parseMedia(b []byte) (job.Media, error) {
	var m job.Media
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w", job.MediaConfigPath, err)
	}
	if m.Server == "" || m.Token == "" {
		return m, fmt.Errorf("%s: names no server, or no token", job.MediaConfigPath)
	}
	return m, nil
}
