package main

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/fstest"
	"time"
)

// A client that sends a body slowly holds a connection of module serve only until the
// deadline of the request.
func TestModuleServerCutsASlowBody(t *testing.T) {
	files := fstest.MapFS{"m-1.0.0.tgz": {Data: []byte("archive")}}
	srv := newArchiveServer(files)
	if srv.ReadTimeout != requestTimeout {
		t.Fatalf("ReadTimeout = %v, want %v", srv.ReadTimeout, requestTimeout)
	}
	srv.ReadTimeout = 200 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	defer func() {
		srv.Close()
		<-ended
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // limit of the test
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET /m-1.0.0.tgz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n0123456789")); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for { // until the server closes
		if _, err := r.ReadByte(); err != nil {
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("the connection is open 20 s after the deadline of the body")
			}
			return
		}
	}
}
