package outbound

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of resuming a broken transfer: attempts without a further byte, and how
// much longer the pause gets with each.
const (
	maxAttemptsInVain = 3
	retryPause        = 200 * time.Millisecond
)

// transfer is the download of an image in one or several requests. After a broken
// connection it continues with a range request, when the server supports that (RFC
// 9110, §14).
type transfer struct {
	watchdog *watchdog
	client   *http.Client
	url      string
	img      Image
	to       io.Writer
	maxSize  int64

	done           int64  // bytes received
	total          int64  // size of the image in bytes; -1 when the server does not say
	tag            string // validator for If-Range; "" when the server cannot resume
	attemptsInVain int    // attempts since the last received byte
}

// run requests the bytes of the image that are missing. It returns whether the transfer
// can be resumed after the error.
func (t *transfer) run() (again bool, err error) {
	req, err := http.NewRequestWithContext(t.watchdog.ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return false, err
	}
	if t.img.User != "" {
		req.SetBasicAuth(t.img.User, t.img.Password)
	}
	if t.done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.done))
		req.Header.Set("If-Range", t.tag)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return t.done > 0, err
	}
	defer resp.Body.Close()
	if again, err := t.checkResponse(resp); err != nil {
		return again, err
	}
	tooLong := fmt.Errorf("the image is larger than %d bytes", t.maxSize)
	if t.total > t.maxSize {
		return false, tooLong
	}
	body := &bodyReader{r: t.watchdog.reader(io.LimitReader(resp.Body, t.maxSize+1-t.done))}
	n, err := io.Copy(t.to, body)
	t.done += n
	switch {
	case body.err != nil: // the connection failed, not the writer
		return t.tag != "" && t.done > 0 && t.done <= t.maxSize, body.err
	case err != nil:
		return false, err
	case t.done > t.maxSize:
		return false, tooLong
	}
	return false, nil
}

// checkResponse checks the status and headers of a response.
func (t *transfer) checkResponse(resp *http.Response) (again bool, err error) {
	switch {
	case t.done == 0 && resp.StatusCode == http.StatusOK:
		t.total, t.tag = resp.ContentLength, ""
		if tag := resp.Header.Get("ETag"); resp.Header.Get("Accept-Ranges") == "bytes" {
			if t.tag = resp.Header.Get("Last-Modified"); tag != "" && !strings.HasPrefix(tag, "W/") {
				t.tag = tag
			}
		}
		return false, nil
	case t.done == 0:
		return false, &statusError{code: resp.StatusCode}
	case resp.StatusCode == http.StatusPartialContent:
		if from, ok := rangeStart(resp.Header.Get("Content-Range")); !ok || from != t.done {
			return false, errors.New("the server sent another part of the image than asked for")
		}
		return false, nil
	case resp.StatusCode == http.StatusOK:
		return false, errors.New("the image has changed while it was fetched")
	case resp.StatusCode >= 500: // the server may recover
		return true, &statusError{code: resp.StatusCode}
	}
	return false, &statusError{code: resp.StatusCode}
}

// rangeStart returns the first byte position of a Content-Range header.
func rangeStart(header string) (int64, bool) {
	rest, ok := strings.CutPrefix(header, "bytes ")
	first, _, ok2 := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return n, ok && ok2 && err == nil
}

// bodyReader remembers the error of its reader.
type bodyReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *bodyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
	return n, err
}
