package lab

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// pair is a connection to a BMC, and the client's end of it.
func pair(t *testing.T) (*bmcConn, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); c.Close() })
	return &bmcConn{TCPConn: c.(*net.TCPConn), of: &conns{}}, client
}

func TestAnAnswerThatIsThereAsAWholeIsSentAsOne(t *testing.T) {
	c, client := pair(t)
	write := func(text string) {
		t.Helper()
		if n, err := c.Write([]byte(text)); err != nil || n != len(text) {
			t.Fatalf("Write(%q) = %d, %v", text, n, err)
		}
	}
	var b [64]byte
	read := func(want string) {
		t.Helper()
		if n, err := client.Read(b[:]); err != nil || string(b[:n]) != want {
			t.Errorf("Read() = %q, %v, want %q", b[:n], err, want)
		}
	}
	write("of no answer")
	read("of no answer")
	for _, end := range []func(time.Time) error{c.SetWriteDeadline, c.SetDeadline, func(time.Time) error { return c.CloseWrite() }} {
		inWhole(withConn(t.Context(), c))
		write("one ")
		write("two ")
		write("three")
		if c.whole.held == nil || string(*c.whole.held) != "one two three" {
			t.Fatal("the parts are on their way one by one")
		}
		if err := end(time.Time{}); err != nil {
			t.Fatal(err)
		}
		read("one two three")
		if c.whole.held != nil {
			t.Error("the connection keeps a buffer")
		}
	}
	if n, err := client.Read(b[:]); !errors.Is(err, io.EOF) {
		t.Errorf("Read() = %q, %v, want the end", b[:n], err)
	}
}

// A client that reads slowly, or not at all, holds up nobody who wants to know
// of the connection or to end it.
func TestAnAnswerThatIsLongGoesOnItsWay(t *testing.T) {
	c, client := pair(t)
	inWhole(withConn(t.Context(), c))
	part := bytes.Repeat([]byte("0123456789"), 1000)
	const parts = 1000 // more than the system takes in
	sent := make(chan error)
	go func() {
		for range parts {
			if _, err := c.Write(part); err != nil {
				sent <- err
				return
			}
		}
		sent <- c.SetWriteDeadline(time.Time{})
	}()
	got := make([]byte, 3*len(part))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, bytes.Repeat(part, 3)) {
		t.Fatalf("the answer is another one, %v", err)
	}
	c.answering()
	c.answered()
	if n, err := io.CopyN(io.Discard, client, (parts-3)*int64(len(part))); err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	inWhole(withConn(t.Context(), c))
	if _, err := c.Write([]byte("never")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("of an answer that nobody has finished: %q, %v", rest, err)
	}
}

// Bodies of any length get there, over a connection that is kept.
func TestLongAnswersAreComplete(t *testing.T) {
	l := open(t, Config{})
	serve(t, l)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	for _, uri := range []string{"/redfish/v1/", "/redfish/v1/$metadata", "/redfish/v1/openapi.yaml", "/redfish/v1/Systems/1", "/redfish/v1/$metadata"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.hosts[0].URL()+uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := l.hosts[0].Admin()
		r.SetBasicAuth(a.Name, a.Password)
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(w.Body)
		w.Body.Close()
		if err != nil || w.StatusCode != http.StatusOK || int64(len(body)) != w.ContentLength && w.ContentLength >= 0 {
			t.Errorf("%s: %s, %d of %d bytes, %v", uri, w.Status, len(body), w.ContentLength, err)
		}
	}
}
