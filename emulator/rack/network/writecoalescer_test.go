package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// pair returns both ends of a connection: that of a BMC and that of a client.
func pair(t *testing.T) (*Conn, net.Conn) {
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
	return &Conn{TCPConn: c.(*net.TCPConn), of: &Connections{}}, client
}

func TestCoalescedResponseIsSentInOneWrite(t *testing.T) {
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
	write("not coalesced")
	read("not coalesced")
	for _, end := range []func(time.Time) error{c.SetWriteDeadline, c.SetDeadline, func(time.Time) error { return c.CloseWrite() }} {
		Coalesce(WithConn(t.Context(), c))
		write("one ")
		write("two ")
		write("three")
		if c.coalescer.held == nil || string(*c.coalescer.held) != "one two three" {
			t.Fatal("the parts were sent one by one")
		}
		if err := end(time.Time{}); err != nil {
			t.Fatal(err)
		}
		read("one two three")
		if c.coalescer.held != nil {
			t.Error("the connection keeps its buffer")
		}
	}
	if n, err := client.Read(b[:]); !errors.Is(err, io.EOF) {
		t.Errorf("Read() = %q, %v, want the end", b[:n], err)
	}
}

// A client that reads slowly, or not at all, does not block calls that ask about
// the connection or close it.
func TestSlowClientBlocksOnlyItsWriter(t *testing.T) {
	c, client := pair(t)
	Coalesce(WithConn(t.Context(), c))
	part := bytes.Repeat([]byte("0123456789"), 1000)
	const parts = 1000 // more than the socket buffers hold
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
		t.Fatalf("the response differs, %v", err)
	}
	c.ResponseBegins()
	c.responseEnds()
	if n, err := io.CopyN(io.Discard, client, (parts-3)*int64(len(part))); err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	Coalesce(WithConn(t.Context(), c))
	if _, err := c.Write([]byte("never")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("of a response that was never finished: %q, %v", rest, err)
	}
}

// BenchmarkWriteCoalescer compares a GET of 6 KB over TLS with and without the
// coalescer.
func BenchmarkWriteCoalescer(b *testing.B) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 6<<10/16)
	for _, way := range []string{"coalesced", "plain"} {
		b.Run(way, func(b *testing.B) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if way == "coalesced" {
					Coalesce(r.Context())
				}
				_, _ = w.Write(body)
			}))
			server.Listener = &Listener{Listener: server.Listener, Admit: func(c *net.TCPConn) net.Conn { return new(Connections).Add(c, 0) }}
			server.Config.ConnContext, server.Config.ConnState = WithConn, ConnState
			server.StartTLS()
			defer server.Close()
			client := server.Client()
			for b.Loop() {
				resp, err := client.Get(server.URL)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != int64(len(body)) {
					b.Fatalf("%d bytes, %v", n, err)
				}
				resp.Body.Close()
			}
		})
	}
}
