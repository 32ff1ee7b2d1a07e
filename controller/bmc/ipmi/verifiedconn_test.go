package ipmi

import (
	"bytes"
	"net"
	"testing"
)

// datagram is a connection that receives one datagram.
type datagram struct {
	net.Conn
	b []byte
}

func (d datagram) Read(b []byte) (int, error) { return copy(b, d.b), nil }

// OpenIPMI's simulator ends a refusal behind its status code. The receiver's buffer holds
// bytes of an earlier datagram there.
func TestShortRefusalIsPaddedWithZeros(t *testing.T) {
	refusal := []byte{6, 0, 0xFF, 7, 6, payloadOpen + 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x5A, 0x12} // tag, status 12h
	g := &verifiedConn{Conn: datagram{b: refusal}, sentPayload: payloadOpen}
	b := bytes.Repeat([]byte{0xEE}, 64)
	n, err := g.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	want := append(bytes.Clone(refusal), 0, 0, 0, 0, 0, 0)
	want[14] = refusalSize
	if got := b[:n]; !bytes.Equal(got, want) {
		t.Errorf("Read() = % x, want % x", got, want)
	}
}
