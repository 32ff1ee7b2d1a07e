package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// fake is a BMC that answers each request with the request's data.
type fake struct {
	silent bool
	asked  []string
}

func (f *fake) Execute(_ context.Context, lun, fn, cmd byte, data []byte) (byte, []byte, bool) {
	f.asked = append(f.asked, fmt.Sprintf("%d %02x/%02x % x", lun, fn, cmd, data))
	return 0xc1, append([]byte{0xaa, 0xa0}, data...), !f.silent
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stream is one that has been heard whole.
type stream struct {
	io.Reader
	bytes.Buffer
}

func (s *stream) Read(b []byte) (int, error) { return s.Reader.Read(b) }

func TestMessagesAreAnswered(t *testing.T) {
	const hello = "ff 01 a1 "
	for _, tt := range []struct {
		name, in  string
		silent    bool
		asked, to string
	}{
		{"Get Device ID", "07 18 01 e0 a0", false, "0 06/01 ", "07 1c 01 c1 aa ba aa b0 d1 a0"},
		{"with escapes", "aa b0 1a aa b1 aa ba fb a0", false, "2 06/a1 aa", "aa b0 1e aa b1 c1 aa ba aa b0 aa ba ec a0"},
		{"bad checksum", "07 18 01 e1 a0", false, "", ""},
		{"short", "07 18 e1 a0", false, "", ""},
		{"ends in an escape", "07 18 01 e0 aa a0 07 18 01 e0 a0", false, "0 06/01 ", "07 1c 01 c1 aa ba aa b0 d1 a0"},
		{"too long", strings.Repeat("00", maxFrame+1) + "a0", false, "", ""},
		{"an answer", "07 1c 01 00 dc a0", false, "", ""},
		{"silence", "07 18 01 e0 a0", true, "0 06/01 ", ""},
		{"what a later version says", "ff 02 a1 77 a1", false, "", ""},
	} {
		f, s := &fake{silent: tt.silent}, &stream{Reader: bytes.NewReader(unhex(t, tt.in))}
		if err := New(s).Serve(t.Context(), f); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := fmt.Sprintf("% x", s.Bytes()); strings.TrimSpace(hello+tt.to) != got || strings.Join(f.asked, "; ") != tt.asked {
			t.Errorf("%s: asked %q, sent [%s]; want %q, [%s]", tt.name, f.asked, got, tt.asked, hello+tt.to)
		}
	}
}

func TestStreamThatBreaksOff(t *testing.T) {
	s := &stream{Reader: bytes.NewReader([]byte{7, 0x18})}
	if err := New(s).Serve(t.Context(), new(fake)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Serve = %v", err)
	}
}

func TestOperationNeedsCapability(t *testing.T) {
	bmc, machine := net.Pipe()
	l, restarts := New(bmc), make(chan bool, 1)
	l.Restarted = func() { restarts <- true }
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(t.Context(), new(fake)) }()
	r := bufio.NewReader(machine)
	want := func(want string) {
		t.Helper()
		b, err := r.ReadBytes(endCommand)
		if err != nil || fmt.Sprintf("% x", b) != want {
			t.Fatalf("the machine hears % x, %v; want %s", b, err, want)
		}
	}
	want("ff 01 a1")
	if err := l.Do(PowerOff); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Do of a machine that has said nothing = %v", err)
	}
	// The bytes with which QEMU begins, and those after a reset.
	if _, err := machine.Write(unhex(t, "ff 01 a1 08 3f a1 04 a1")); err != nil {
		t.Fatal(err)
	}
	<-restarts
	for _, op := range []Op{NoAttention, Attention, PowerOff, Reset, Interrupt, Shutdown} {
		sent := make(chan error, 1)
		go func() { sent <- l.Do(op) }()
		want(fmt.Sprintf("%02x a1", byte(op)))
		if err := <-sent; err != nil {
			t.Errorf("Do(%02X) = %v", byte(op), err)
		}
	}
	if err := machine.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if err := l.Do(Reset); err == nil {
		t.Error("a machine that is gone was reset")
	}
}

// Each frame decodes to the bytes that were encoded, and no input panics.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0xa0, 0xa1, 0xaa, 0xb0, 0})
	f.Add([]byte("\xaa\xa0\x07\x18\x01\xe0\xa0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= maxFrame {
			got, err := readFrame(bufio.NewReader(bytes.NewReader(appendFrame(nil, endMessage, b...))), nil)
			if err != nil || got.end != endMessage || !bytes.Equal(got.body, b) {
				t.Errorf("% x becomes %+v, %v", b, got, err)
			}
		}
		_ = New(&stream{Reader: bytes.NewReader(b)}).Serve(t.Context(), new(fake)) // what breaks off is an error
	})
}
