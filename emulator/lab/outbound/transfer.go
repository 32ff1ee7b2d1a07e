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

// How often a transfer that was cut short is taken up again without a byte
// more having come, and how much longer it waits each time.
const (
	maxAttemptsInVain = 3
	retryPause        = 200 * time.Millisecond
)

// transfer is an image on its way, by one request or by several: a connection
// that breaks is no reason to begin again, if the server can go on from there
// (RFC 9110, §14).
type transfer struct {
	watchdog *watchdog
	client   *http.Client
	url      string
	img      Image
	to       io.Writer
	maxSize  int64

	done           int64  // bytes that are there
	total          int64  // bytes of the image; -1 when the server does not say
	tag            string // that the server knows the image by; "" when it cannot go on
	attemptsInVain int    // attempts since the last byte
}

// run asks for what is missing. Again says whether it can be asked for once
// more after the error.
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
	case body.err != nil: // of the connection, and not of where the image goes
		return t.tag != "" && t.done > 0 && t.done <= t.maxSize, body.err
	case err != nil:
		return false, err
	case t.done > t.maxSize:
		return false, tooLong
	}
	return false, nil
}

// checkResponse looks at the head of an answer.
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
	case resp.StatusCode >= 500: // it may come back
		return true, &statusError{code: resp.StatusCode}
	}
	return false, &statusError{code: resp.StatusCode}
}

// rangeStart is where the part begins that a Content-Range header speaks of.
func rangeStart(header string) (int64, bool) {
	rest, ok := strings.CutPrefix(header, "bytes ")
	first, _, ok2 := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return n, ok && ok2 && err == nil
}

// bodyReader remembers why reading failed.
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
