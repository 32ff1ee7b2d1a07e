package ipmi

import (
	"bytes"
	"crypto/aes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Test vectors of RFC 1319.
func TestMD2(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "8350e5a3e24c153df2275c9f80692773",
		"a":                          "32ec01ec4a6dac72c0ab96fb34c0b5d1",
		"abc":                        "da853b0d3f88d99b30283a69e6ded6bb",
		"message digest":             "ab4f496bfb2a530b219ff33031fe06b0",
		"abcdefghijklmnopqrstuvwxyz": "4e8ddff3650292ab5a4108c3aa47940b",
		"12345678901234567890123456789012345678901234567890123456789012345678901234567890": "d5976f79d83d3a0dc9806c3c66f3efd8",
	} {
		if got := md2([]byte(in)); hex.EncodeToString(got[:]) != want {
			t.Errorf("md2(%q) = %x, want %s", in, got, want)
		}
	}
}

func TestParsePacket(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want packet
		err  error
	}{
		{
			name: "v1.5, outside of a session", // ipmitool's first packet
			in:   "06 00 ff 07 00 00 00 00 00 00 00 00 00 09 20 18 c8 81 00 38 8e 04 b5",
			want: packet{Header: Header{V15: true}, body: unhex(t, "20 18 c8 81 00 38 8e 04 b5"), trailer: []byte{}},
		},
		{
			name: "v1.5, MD5",
			in:   "06 00 ff 07 02 01 00 00 00 04 03 02 01 000102030405060708090a0b0c0d0e0f 02 aa bb",
			want: packet{
				Header: Header{V15: true, Auth: AuthMD5, Sequence: 1, Session: 0x01020304},
				code:   unhex(t, "000102030405060708090a0b0c0d0e0f"), body: []byte{0xaa, 0xbb}, trailer: []byte{},
			},
		},
		{
			name: "RMCP+, signed and encrypted",
			in:   "06 00 ff 07 06 c1 04 03 02 01 09 00 00 00 01 00 aa ff ff 02 07 bb",
			want: packet{
				Header: Header{Payload: PayloadSOL, Encrypted: true, Authenticated: true, Session: 0x01020304, Sequence: 9},
				body:   []byte{0xaa}, trailer: unhex(t, "ff ff 02 07 bb"),
			},
		},
		{
			name: "OEM payload",
			in:   "06 00 ff 07 06 02 a2 02 00 00 05 00 00 00 00 00 00 00 00 00 00 00",
			want: packet{Header: Header{Payload: PayloadOEM}, oem: unhex(t, "a2 02 00 00 05 00"), body: []byte{}, trailer: []byte{}},
		},
		{name: "cut in the header", in: "06 00 ff", err: ErrMalformed},
		{name: "cut in the payload", in: "06 00 ff 07 06 00 00 00 00 00 00 00 00 00 05 00 aa", err: ErrMalformed},
		{name: "another class", in: "06 00 ff 06 00", err: ErrMalformed},
		{name: "v1.5, too long", in: "06 00 ff 07 00 00 00 00 00 00 00 00 00 01 aa bb cc", err: ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := unhex(t, tt.in)
			got, err := parsePacket(in)
			if !errors.Is(err, tt.err) {
				t.Fatalf("parsePacket(% x) error = %v, want %v", in, err, tt.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(packet{})); diff != "" {
				t.Errorf("parsePacket(% x) (-want +got):\n%s", in, diff)
			}
			if out, err := got.AppendBinary(nil); err != nil || !bytes.Equal(out, in) {
				t.Errorf("AppendBinary() = % x, %v, want % x", out, err, in)
			}
		})
	}
}

func TestParseMessage(t *testing.T) {
	in := unhex(t, "81 1c 63 20 04 01 00 20 81 5a") // the beginning of an answer to Get Device ID
	in[len(in)-1] = checksum(in[3 : len(in)-1])
	got, err := parseMessage(in)
	want := message{To: 0x81, NetFn: App | 1, From: 0x20, Sequence: 1, Command: 0x01, Data: []byte{0, 0x20, 0x81}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("parseMessage(% x) = %+v, %v, want %+v", in, got, err, want)
	}
	for at := range in {
		bad := bytes.Clone(in)
		bad[at] ^= 0x08
		if _, err := parseMessage(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("parseMessage(% x) error = %v, want %v", bad, err, ErrMalformed)
		}
	}
	for cut := range in {
		if _, err := parseMessage(in[:cut]); !errors.Is(err, ErrMalformed) {
			t.Errorf("parseMessage(% x) error = %v, want %v", in[:cut], err, ErrMalformed)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	for _, seed := range []string{
		"0600ff07000000000000000000092018c88100388e04b5",
		"0600ff070200000001040302010001020304050607", "0600ff0706c1040302010900000001000affff0207bb",
		"0600ff070602a2020000050000000000000000000000",
	} {
		f.Add(unhex(f, seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := parsePacket(in)
		if err != nil {
			return
		}
		if out, err := p.AppendBinary(nil); err != nil || !bytes.Equal(out, in) {
			t.Fatalf("% x is read as %+v and written % x, %v", in, p, out, err)
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	f.Add(unhex(f, "2018c88100388e04b5"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := parseMessage(in)
		if err != nil {
			return
		}
		if out, err := m.AppendBinary(nil); err != nil || !bytes.Equal(out, in) {
			t.Fatalf("% x is read as %+v and written % x, %v", in, m, out, err)
		}
	})
}

// No packet of a BMC makes a session panic.
func FuzzOpen(f *testing.F) {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		f.Fatal(err)
	}
	s := &Session{ID: 1, console: 1, conn: &Conn{}, block: block, sums: newIntegrity(integritySHA1, []byte("k1"), nil)}
	b, err := s.encode(PayloadIPMI, unhex(f, "2018c88100388e04b5"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, in []byte) {
		for _, sums := range []integrity{nil, s.sums} {
			fresh := &Session{console: 1, conn: &Conn{}, block: block, sums: sums}
			if _, body, err := fresh.open(in); err == nil {
				_, _ = parseMessage(body)
				_, _ = parseSOL(body)
			}
		}
		_, _ = parseSuites(in)
	})
}

// What is sealed opens again, whatever its length, once.
func TestSeal(t *testing.T) {
	for _, std := range Suites {
		h := &Handshake{suite: std, rakp: rakps[std.Auth], login: Login{Password: "secret"}, conn: &Conn{}, ID: 7, Console: 7}
		h.keys()
		a, err := h.session()
		if err != nil {
			t.Fatal(err)
		}
		b, err := h.session()
		if err != nil {
			t.Fatal(err)
		}
		for n := range 70 {
			body := bytes.Repeat([]byte{0xA5}, n)
			sealed, err := a.encode(PayloadIPMI, body)
			if err != nil {
				t.Fatal(err)
			}
			if a.sums != nil && (len(sealed)-4-len(a.sums(nil)))%4 != 0 {
				t.Errorf("suite %d: %d signed bytes, which is no multiple of 4", std.ID, len(sealed)-4-len(a.sums(nil)))
			}
			_, got, err := b.open(sealed)
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("suite %d: %d bytes are sealed and opened as % x, %v", std.ID, n, got, err)
			}
			if _, _, err := b.open(sealed); !errors.Is(err, ErrMalformed) {
				t.Fatalf("suite %d: a packet opens twice: %v", std.ID, err)
			}
			if a.sums == nil {
				continue
			}
			sealed[len(sealed)/2] ^= 1
			if _, _, err := b.open(sealed); !errors.Is(err, ErrMalformed) {
				t.Fatalf("suite %d: a changed packet opens: %v", std.ID, err)
			}
		}
	}
}

func TestWindow(t *testing.T) {
	var w window
	for _, tt := range []struct {
		n    uint32
		take bool
	}{
		{0, false}, {100, true}, {100, false}, {101, true}, {99, true}, {99, false}, {116, true}, {100, false},
		{110, true}, {132, false}, {131, true}, {115, true}, {114, false}, {131, false}, {1 << 31, false},
	} {
		if got := w.take(tt.n); got != tt.take {
			t.Errorf("take(%d) = %v with %+v, want %v", tt.n, got, w, tt.take)
		}
	}
}

func TestParseSuites(t *testing.T) {
	got, err := parseSuites(unhex(t, "c0 03 01 41 81 c0 11 03 44 81 c1 80 a2 02 00 01 40 80 c0 00 00 40 80"))
	want := []Suite{{3, 1, 1, 1}, {17, 3, 4, 1}, {0x80, 1, 0, 0}, {0, 0, 0, 0}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("parseSuites() = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"03", "c0", "c1 80 a2"} {
		if got, err := parseSuites(unhex(t, bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("parseSuites(%s) = %v, %v, want %v", bad, got, err, ErrMalformed)
		}
	}
}
