package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
)

func TestMediaServerServesAnImageAndTakesEvents(t *testing.T) {
	m, stop, err := serveMedia("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, scheme := range []string{"http", "https"} {
		url, err := m.URL(scheme, scheme+".iso")
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?token=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", "bytes=32769-32773")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "CD001" { // ECMA-119, §8.1.2
			t.Errorf("GET %s = %q, %v, want the mark of ISO 9660", url, body, err)
		}
		got := m.Requests(scheme + ".iso")
		if len(got) != 1 || got[0].Bytes != 5 || got[0].Range == "" || got[0].Method != http.MethodGet {
			t.Errorf("Requests(%s.iso) = %+v, want the GET of 5 bytes", scheme, got)
		}
	}
	if _, err := m.URL("ftp", "x"); err == nil {
		t.Error("URL(ftp) succeeds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	url, bodies, err := m.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Events(ctx); err == nil {
		t.Error("two checks listen to events")
	}
	for _, body := range []string{`{"Events": []}`, string(bytes.Repeat([]byte("x"), maxEventBody+1))} {
		resp, err := client.Post(url, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if got := string(<-bodies); got != `{"Events": []}` {
		t.Errorf("the event is %q", got)
	}
	cancel()
	if more, open := <-bodies; open {
		t.Errorf("another event: %.40q", more)
	}
	for _, bad := range []string{"", "0.0.0.0", "localhost"} {
		if _, _, err := serveMedia(bad); err == nil {
			t.Errorf("serveMedia(%q) succeeds", bad)
		}
	}
}
