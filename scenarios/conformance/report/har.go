package report

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// HAR 1.2; data without a field there stands in fields that begin with an underscore.
type (
	har struct {
		Log harLog `json:"log"`
	}
	harLog struct {
		Version string     `json:"version"`
		Creator harCreator `json:"creator"`
		Entries []harEntry `json:"entries"`
	}
	harCreator struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harEntry struct {
		ID       int         `json:"_id"`
		Check    string      `json:"_check"`
		Error    string      `json:"_error,omitempty"`
		Started  time.Time   `json:"startedDateTime"`
		Time     float64     `json:"time"`
		Request  harRequest  `json:"request"`
		Response harResponse `json:"response"`
		Cache    struct{}    `json:"cache"`
		Timings  harTimings  `json:"timings"`
	}
	harRequest struct {
		Method      string     `json:"method"`
		URL         string     `json:"url"`
		HTTPVersion string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Query       []harPair  `json:"queryString"`
		PostData    *harPosted `json:"postData,omitempty"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int        `json:"bodySize"`
	}
	harPosted struct {
		MimeType string `json:"mimeType"`
		Text     string `json:"text"`
	}
	harResponse struct {
		Status      int        `json:"status"`
		StatusText  string     `json:"statusText"`
		HTTPVersion string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		RedirectURL string     `json:"redirectURL"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int64      `json:"bodySize"`
	}
	harContent struct {
		Size     int64  `json:"size"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text,omitempty"`
		Encoding string `json:"encoding,omitempty"`
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

// HAR writes the evidence as an HTTP archive, which browsers open.
func HAR(w io.Writer, tool string, all []conformance.Exchange) error {
	h := har{harLog{Version: "1.2", Creator: harCreator{"labctl conformance", tool}, Entries: []harEntry{}}}
	for _, x := range all {
		e := harEntry{
			ID: x.ID, Check: x.Check, Error: x.Error, Started: x.Began.UTC(), Time: millis(x.Took),
			Request: harRequest{
				Method: x.Method, URL: x.URL, HTTPVersion: "HTTP/1.1", Cookies: []harPair{}, Headers: pairs(x.RequestHeader), Query: query(x.URL),
				HeadersSize: -1, BodySize: len(x.RequestBody),
			},
			Response: harResponse{
				Status: x.Status, StatusText: http.StatusText(x.Status), HTTPVersion: "HTTP/1.1", Cookies: []harPair{}, Headers: pairs(x.Header),
				RedirectURL: x.Header.Get("Location"), HeadersSize: -1, BodySize: x.Size,
				Content: harContent{Size: x.Size, MimeType: x.Header.Get("Content-Type")},
			},
			Timings: harTimings{Wait: millis(x.TTFB), Receive: max(0, millis(x.Took-x.TTFB))},
		}
		if len(x.RequestBody) > 0 {
			e.Request.PostData = &harPosted{x.RequestHeader.Get("Content-Type"), string(x.RequestBody)}
		}
		if utf8.Valid(x.Body) {
			e.Response.Content.Text = string(x.Body)
		} else {
			e.Response.Content.Text, e.Response.Content.Encoding = base64.StdEncoding.EncodeToString(x.Body), "base64"
		}
		h.Log.Entries = append(h.Log.Entries, e)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	if err := enc.Encode(h); err != nil {
		return fmt.Errorf("har: %w", err)
	}
	return nil
}

func pairs(h http.Header) []harPair {
	out := []harPair{}
	for name, values := range h {
		for _, v := range values {
			out = append(out, harPair{name, v})
		}
	}
	slices.SortFunc(out, func(a, b harPair) int {
		if a.Name < b.Name || a.Name == b.Name && a.Value < b.Value {
			return -1
		}
		return 1
	})
	return out
}

func query(raw string) []harPair {
	out := []harPair{}
	u, err := url.Parse(raw)
	if err != nil {
		return out
	}
	for name, values := range u.Query() {
		for _, v := range values {
			out = append(out, harPair{name, v})
		}
	}
	return out
}

// LoadHAR reads the evidence again.
func LoadHAR(path string) ([]conformance.Exchange, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var h har
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []conformance.Exchange
	for _, e := range h.Log.Entries {
		x := conformance.Exchange{
			ID: e.ID, Check: e.Check, Error: e.Error, Began: e.Started, Method: e.Request.Method, URL: e.Request.URL,
			RequestHeader: header(e.Request.Headers), Status: e.Response.Status, Header: header(e.Response.Headers), Size: e.Response.BodySize,
			TTFB: duration(e.Timings.Wait), Took: duration(e.Time),
		}
		if e.Request.PostData != nil {
			x.RequestBody = []byte(e.Request.PostData.Text)
		}
		x.Body = []byte(e.Response.Content.Text)
		if e.Response.Content.Encoding == "base64" {
			if x.Body, err = base64.StdEncoding.DecodeString(e.Response.Content.Text); err != nil {
				return nil, fmt.Errorf("%s: entry %d: %w", path, e.ID, err)
			}
		}
		all = append(all, x)
	}
	return all, nil
}

func header(all []harPair) http.Header {
	h := http.Header{}
	for _, p := range all {
		h.Add(p.Name, p.Value)
	}
	return h
}

func duration(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}
