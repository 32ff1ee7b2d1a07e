package wire_test

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

func raw(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lit is raw where there is no test yet.
func lit(s string) []byte { return raw(nil, s) }

// codec is one kind of message: how it is parsed, and examples.
type codec struct {
	name  string
	parse func([]byte) (encoding.BinaryAppender, error)
	good  []example
	bad   []mistake
}

type example struct {
	from string // which client sent it, or which table says so
	hex  string
	want encoding.BinaryAppender
	lax  bool // it is taken, but sent otherwise
}

type mistake struct {
	name, hex string
	err       error
}

func of[T encoding.BinaryAppender](parse func([]byte) (T, error)) func([]byte) (encoding.BinaryAppender, error) {
	return func(b []byte) (encoding.BinaryAppender, error) { return parse(b) }
}

// datagram is an RMCP message of class IPMI whole.
type datagram struct {
	head wire.RMCP
	data []byte
}

func (d datagram) AppendBinary(b []byte) ([]byte, error) {
	b, err := d.head.AppendBinary(b)
	return append(b, d.data...), err
}

func parseDatagram(b []byte) (datagram, error) {
	h, data, err := wire.ParseRMCP(b)
	return datagram{h, data}, err
}

// Codes of trailers in the examples are of 12 bytes, as with suite 3.
func parseTrailer(b []byte) (wire.Trailer, error) { return wire.ParseTrailer(b, 12) }

var codecs = []codec{
	{
		name: "RMCP", parse: of(parseDatagram),
		good: []example{
			{from: "ipmitool 1.8.19", hex: "0600ff07", want: datagram{wire.RMCP{Sequence: 0xff, Class: wire.ClassIPMI}, []byte{}}},
			{from: "table 13-5", hex: "06000586", want: datagram{wire.RMCP{Sequence: 5, ACK: true, Class: wire.ClassASF}, []byte{}}},
		},
		bad: []mistake{{"cut", "0600ff", wire.ErrShort}, {"another version", "0500ff07", wire.ErrField}},
	},
	{
		name: "ASF ping", parse: of(wire.ParsePing),
		good: []example{{from: "ipmitool 1.8.19", hex: "000011be 80 00 00 00", want: wire.Ping{}}},
		bad: []mistake{
			{"cut", "000011be 80 00 00", wire.ErrShort},
			{"long", "000011be 80 00 00 00 00", wire.ErrLong},
			{"another enterprise", "000011bf 80 00 00 00", wire.ErrField},
			{"a pong", "000011be 40 00 00 00", wire.ErrField},
			{"with data", "000011be 80 00 00 01 00", wire.ErrField},
		},
	},
	{
		name: "ASF pong", parse: of(wire.ParsePong),
		good: []example{{
			from: "DCMI v1.5, table 6-13", hex: "000011be 40 09 00 10 00008e71 00000000 81 00 000000000000",
			want: wire.Pong{Tag: 9, Enterprise: wire.IANADCMI, Entities: wire.PongIPMI},
		}},
		bad: []mistake{{"cut", "000011be 40 09 00 10 00008e71 00000000 81 00 0000000000", wire.ErrShort}},
	},
	{
		name: "RMCP+ packet", parse: of(wire.ParsePacket),
		good: []example{
			{
				from: "FreeIPMI 1.6.9, suite 11",
				hex:  "06 40 8399ecbe 01000000 0800 2018c881e03b0460 ffff0207 ca9b3dd33c7c387d0cc69538d67b1ad1",
				want: wire.Packet{
					Authenticated: true, Session: 0xbeec9983, Sequence: 1, Body: lit("2018c881e03b0460"),
					Trailer: lit("ffff0207 ca9b3dd33c7c387d0cc69538d67b1ad1"),
				},
			},
			{
				from: "table 13-8, OEM explicit", hex: "06 02 a2020000 0700 00000000 00000000 0100 aa",
				want: wire.Packet{Type: wire.PayloadOEM, Enterprise: 674, OEM: 7, Body: []byte{0xaa}},
			},
		},
		bad: []mistake{
			{"of IPMI 1.5", "00 00000000 00000000 09 2018c88104380e0431", wire.ErrField},
			{"cut in the body", "06 00 00000000 00000000 0200 aa", wire.ErrShort},
			{"bytes after a body that is not signed", "06 00 00000000 00000000 0100 aabb", wire.ErrLong},
			{"nothing", "", wire.ErrShort},
		},
	},
	{
		name: "RMCP+ trailer", parse: of(parseTrailer),
		good: []example{{from: "ipmitool 1.8.19, suite 3", hex: "ffff0207 0102030405060708090a0b0c", want: wire.Trailer{Pad: 2, Code: lit("0102030405060708090a0b0c")}}},
		bad: []mistake{
			{"without code", "0007", wire.ErrShort},
			{"pad is not FFh", "ff000207 0102030405060708090a0b0c", wire.ErrField},
			{"pad is longer", "ffff0307 0102030405060708090a0b0c", wire.ErrField},
			{"another next header", "ffff0206 0102030405060708090a0b0c", wire.ErrField},
			{"nothing", "", wire.ErrShort},
		},
	},
	{
		name: "IPMI 1.5 packet", parse: of(wire.ParsePacketV15),
		good: []example{
			{from: "ipmitool 1.8.19", hex: "00 00000000 00000000 09 2018c88104380e0431", want: wire.PacketV15{Body: lit("2018c88104380e0431")}},
			{
				from: "ipmitool 1.8.19, MD5", hex: "02 75b52352 298c97ae 03138935ca1048cd3660de311f6cc9d3 08 2018c881103b0430",
				want: wire.PacketV15{
					Auth: wire.AuthMD5, Sequence: 0x5223b575, Session: 0xae978c29,
					Code: lit("03138935ca1048cd3660de311f6cc9d3"), Body: lit("2018c881103b0430"),
				},
			},
			{from: "table 13-8, note 1", hex: "00 00000000 00000000 01 aa 00", want: wire.PacketV15{Body: []byte{0xaa}, Pad: true}},
		},
		bad: []mistake{
			{"of RMCP+", "06 00 00000000 00000000 0000", wire.ErrField},
			{"two bytes more", "00 00000000 00000000 01 aa 0000", wire.ErrLong},
			{"cut in the code", "02 75b52352 298c97ae 0313", wire.ErrShort},
		},
	},
	{
		name: "Open Session Request", parse: of(wire.ParseOpenRequest),
		good: []example{
			{
				from: "ipmitool 1.8.19, suite 17", hex: "00000000 a4a3a2a0 0000000803000000 0100000804000000 0200000801000000",
				want: wire.OpenRequest{Console: 0xa0a2a3a4, Proposals: []wire.Proposal{
					{Kind: wire.KindAuthentication, Algorithm: 3}, {Kind: wire.KindIntegrity, Algorithm: 4},
					{Kind: wire.KindConfidentiality, Algorithm: 1},
				}},
			},
			{
				from: "table 13-9, the BMC chooses", hex: "07040000 01000000 0000000000000000",
				want: wire.OpenRequest{Tag: 7, Privilege: wire.Administrator, Console: 1, Proposals: []wire.Proposal{{Any: true}}},
			},
		},
		bad: []mistake{
			{"cut", "00000000 a4a3a2", wire.ErrShort},
			{"cut in a proposal", "00000000 a4a3a2a0 00000008030000", wire.ErrShort},
			{"a proposal of 9 bytes", "00000000 a4a3a2a0 000000090300000000", wire.ErrField},
			{"too many proposals", "00000000 a4a3a2a0" + strings.Repeat("0000000803000000", 33), wire.ErrLong},
		},
	},
	{
		name: "Open Session Response", parse: of(wire.ParseOpenResponse),
		good: []example{
			{
				from: "table 13-10", hex: "05000400 a4a3a2a0 298c97ae 0000000801000000 0100000801000000 0200000801000000",
				want: wire.OpenResponse{
					Tag: 5, Privilege: wire.Administrator, Console: 0xa0a2a3a4, BMC: 0xae978c29,
					Suite: wire.Suites[3],
				},
			},
			{from: "table 13-10, an error", hex: "05110000 a4a3a2a0", want: wire.OpenResponse{Tag: 5, Status: wire.StatusNoSuite, Console: 0xa0a2a3a4}},
		},
		bad: []mistake{
			{"an error with a session", "05110000 a4a3a2a0 298c97ae", wire.ErrLong},
			{"success without", "05000400 a4a3a2a0", wire.ErrShort},
			{"algorithms in another order", "05000400 a4a3a2a0 298c97ae 0100000801000000 0000000801000000 0200000801000000", wire.ErrField},
		},
	},
	{
		name: "RAKP 1", parse: of(wire.ParseRAKP1),
		good: []example{
			{
				from: "FreeIPMI 1.6.9", hex: "e9000000 8399ecbe 30728a2bb3226786cee114170efe6306 140000 05 41444d494e",
				want: wire.RAKP1{Tag: 0xe9, Session: 0xbeec9983, Random: [16]byte(lit("30728a2bb3226786cee114170efe6306")), Role: 0x14, Name: []byte("ADMIN")},
			},
			{
				from: "a client that sends all 16 bytes of the name", hex: "e9000000 8399ecbe 30728a2bb3226786cee114170efe6306 040000 01 41 000000000000000000000000000000",
				want: wire.RAKP1{Tag: 0xe9, Session: 0xbeec9983, Random: [16]byte(lit("30728a2bb3226786cee114170efe6306")), Role: 4, Name: []byte("A")},
				lax:  true,
			},
		},
		bad: []mistake{
			{"name is cut", "e9000000 8399ecbe 30728a2bb3226786cee114170efe6306 140000 05 41444d49", wire.ErrShort},
			{"name of 17 bytes", "e9000000 8399ecbe 30728a2bb3226786cee114170efe6306 140000 11 4142434445464748494a4b4c4d4e4f5051", wire.ErrName},
			{"long", "e9000000 8399ecbe 30728a2bb3226786cee114170efe6306 140000 00 4142434445464748494a4b4c4d4e4f5051", wire.ErrLong},
		},
	},
	{
		name: "RAKP 2", parse: of(wire.ParseRAKP2),
		good: []example{
			{
				from: "table 13-12", hex: "01000000 a4a3a2a0 000102030405060708090a0b0c0d0e0f 101112131415161718191a1b1c1d1e1f a1a2a3",
				want: wire.RAKP2{
					Tag: 1, Console: 0xa0a2a3a4, Random: [16]byte(lit("000102030405060708090a0b0c0d0e0f")),
					GUID: [16]byte(lit("101112131415161718191a1b1c1d1e1f")), Code: []byte{0xa1, 0xa2, 0xa3},
				},
			},
			{from: "table 13-12, an error", hex: "010d0000 a4a3a2a0", want: wire.RAKP2{Tag: 1, Status: wire.StatusUnauthorizedName, Console: 0xa0a2a3a4}},
		},
		bad: []mistake{{"an error with more", "010d0000 a4a3a2a0 00", wire.ErrLong}, {"cut", "01000000 a4a3a2a0 00", wire.ErrShort}},
	},
	{
		name: "RAKP 3", parse: of(wire.ParseRAKP3),
		good: []example{
			{from: "FreeIPMI 1.6.9", hex: "ea000000 8399ecbe 440d3d5c466c7f5bbba8da314c0ca1ea", want: wire.RAKP3{Tag: 0xea, Session: 0xbeec9983, Code: lit("440d3d5c466c7f5bbba8da314c0ca1ea")}},
			{from: "table 13-13, an error", hex: "000f0000 8399ecbe", want: wire.RAKP3{Status: wire.StatusInvalidCode, Session: 0xbeec9983, Code: []byte{}}},
		},
		bad: []mistake{{"cut", "ea000000 8399ec", wire.ErrShort}},
	},
	{
		name: "RAKP 4", parse: of(wire.ParseRAKP4),
		good: []example{
			{from: "table 13-14", hex: "ea000000 a4a3a2a0 0102030405060708090a0b0c", want: wire.RAKP4{Tag: 0xea, Console: 0xa0a2a3a4, Code: lit("0102030405060708090a0b0c")}},
			{from: "table 13-14, an error", hex: "ea0f0000 a4a3a2a0", want: wire.RAKP4{Tag: 0xea, Status: wire.StatusInvalidCode, Console: 0xa0a2a3a4}},
		},
		bad: []mistake{{"cut", "ea000000", wire.ErrShort}, {"an error with more", "ea0f0000 a4a3a2a0 01", wire.ErrLong}},
	},
	{
		name: "head of a handshake's message", parse: of(wire.ParseHead),
		good: []example{{from: "ipmitool 1.8.19", hex: "00140000 a4a3a2a0", want: wire.RequestHead{Second: 0x14, Session: 0xa0a2a3a4}}},
		bad:  []mistake{{"cut", "00140000 a4a3a2", wire.ErrShort}},
	},
	{
		name: "request", parse: of(wire.ParseRequest),
		good: []example{{
			from: "ipmitool 1.8.19", hex: "2018c881103b0430",
			want: wire.Request{To: 0x20, NetFn: wire.App, From: 0x81, Seq: 4, Cmd: 0x3b, Data: []byte{4}},
		}},
		bad: []mistake{
			{"cut", "2018c881103b", wire.ErrShort},
			{"first checksum", "2018c781103b0430", wire.ErrChecksum},
			{"second checksum", "2018c881103b0431", wire.ErrChecksum},
			{"an answer", "811c6320103b000491", wire.ErrField},
		},
	},
	{
		name: "response", parse: of(wire.ParseResponse),
		good: []example{{
			from: "taken by ipmitool 1.8.19", hex: "811c6320103b000491",
			want: wire.Response{To: 0x81, NetFn: wire.App | 1, From: 0x20, Seq: 4, Cmd: 0x3b, Data: []byte{4}},
		}},
		bad: []mistake{{"a request", "2018c881103b0430", wire.ErrField}, {"without a code", "811c6320103b95", wire.ErrShort}},
	},
	{
		name: "Activate Session", parse: of(wire.ParseActivation),
		good: []example{{
			from: "ipmitool 1.8.19", hex: "0204 238b4f6817e38386068efe57345bc91b 2209c279",
			want: wire.Activation{Auth: wire.AuthMD5, Privilege: wire.Administrator, Challenge: [16]byte(lit("238b4f6817e38386068efe57345bc91b")), Outbound: 0x79c20922},
		}},
		bad: []mistake{{"cut", "0204 238b4f6817e38386068efe57345bc91b 2209c2", wire.ErrShort}},
	},
	{
		name: "SOL", parse: of(wire.ParseSOL),
		good: []example{
			{from: "table 15-2, a key", hex: "01000000 61", want: wire.SOL{Seq: 1, Data: []byte("a")}},
			{from: "table 15-2, acknowledgement with break", hex: "00051910", want: wire.SOL{Ack: 5, Accepted: 0x19, Flags: wire.SOLBreak, Data: []byte{}}},
		},
		bad: []mistake{{"cut", "010000", wire.ErrShort}},
	},
}

func TestMessageEncodings(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			for _, e := range c.good {
				b := raw(t, e.hex)
				got, err := c.parse(b)
				if err != nil {
					t.Errorf("%s: parse(% x) error = %v", e.from, b, err)
					continue
				}
				if diff := cmp.Diff(e.want, got, cmp.AllowUnexported(datagram{})); diff != "" {
					t.Errorf("%s: parse(% x) (-want +got):\n%s", e.from, b, diff)
				}
				back, err := got.AppendBinary([]byte{0xee})
				if err != nil || !e.lax && !bytes.Equal(back, append([]byte{0xee}, b...)) {
					t.Errorf("%s: AppendBinary(ee) = % x, %v, want ee and % x", e.from, back, err, b)
				}
			}
			for _, m := range c.bad {
				b := raw(t, m.hex)
				if got, err := c.parse(b); !errors.Is(err, m.err) {
					t.Errorf("%s: parse(% x) = %+v, %v, want %v", m.name, b, got, err, m.err)
				}
			}
		})
	}
}

func TestTruncatedMessagesAreRefused(t *testing.T) {
	for _, c := range codecs {
		for _, e := range c.good {
			b := raw(t, e.hex)
			for n := range b {
				reencodes(t, c, b[:n])
			}
		}
	}
}

// reencodes checks that what parses can be sent, parses again to the same, and
// is sent in the same way again.
func reencodes(t *testing.T, c codec, b []byte) {
	t.Helper()
	got, err := c.parse(b)
	if err != nil {
		return
	}
	once, err := got.AppendBinary(nil)
	if err != nil {
		t.Fatalf("%s: parse(% x) = %+v, AppendBinary error = %v", c.name, b, got, err)
	}
	again, err := c.parse(once)
	if err != nil {
		t.Fatalf("%s: parse(% x) error = %v, of what % x was sent as", c.name, once, err, b)
	}
	if diff := cmp.Diff(got, again, cmp.AllowUnexported(datagram{})); diff != "" {
		t.Fatalf("%s: % x and % x differ (-first +second):\n%s", c.name, b, once, diff)
	}
	twice, err := again.AppendBinary(nil)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("%s: sent % x, then % x (%v)", c.name, once, twice, err)
	}
}

func fuzz(f *testing.F, name string) {
	for _, c := range codecs {
		if c.name != name {
			continue
		}
		for _, e := range c.good {
			f.Add(raw(f, e.hex))
		}
		for _, m := range c.bad {
			f.Add(raw(f, m.hex))
		}
		f.Fuzz(func(t *testing.T, b []byte) { reencodes(t, c, b) })
		return
	}
	f.Fatalf("no codec %q", name)
}

func FuzzRMCP(f *testing.F)         { fuzz(f, "RMCP") }
func FuzzPing(f *testing.F)         { fuzz(f, "ASF ping") }
func FuzzPong(f *testing.F)         { fuzz(f, "ASF pong") }
func FuzzPacket(f *testing.F)       { fuzz(f, "RMCP+ packet") }
func FuzzTrailer(f *testing.F)      { fuzz(f, "RMCP+ trailer") }
func FuzzPacketV15(f *testing.F)    { fuzz(f, "IPMI 1.5 packet") }
func FuzzOpenRequest(f *testing.F)  { fuzz(f, "Open Session Request") }
func FuzzOpenResponse(f *testing.F) { fuzz(f, "Open Session Response") }
func FuzzRAKP1(f *testing.F)        { fuzz(f, "RAKP 1") }
func FuzzRAKP2(f *testing.F)        { fuzz(f, "RAKP 2") }
func FuzzRAKP3(f *testing.F)        { fuzz(f, "RAKP 3") }
func FuzzRAKP4(f *testing.F)        { fuzz(f, "RAKP 4") }
func FuzzHead(f *testing.F)         { fuzz(f, "head of a handshake's message") }
func FuzzRequest(f *testing.F)      { fuzz(f, "request") }
func FuzzResponse(f *testing.F)     { fuzz(f, "response") }
func FuzzActivation(f *testing.F)   { fuzz(f, "Activate Session") }
func FuzzSOL(f *testing.F)          { fuzz(f, "SOL") }

func TestResponseGoesToTheRequester(t *testing.T) {
	q := wire.Request{To: 0x20, ToLUN: 1, NetFn: wire.App, From: 0x81, FromLUN: 2, Seq: 9, Cmd: 0x01, Data: []byte{1}}
	b := q.AppendResponse([]byte{0xee}, 0xc1, []byte{7, 8})
	if b[0] != 0xee {
		t.Fatalf("AppendResponse(ee) = % x, want ee in front", b)
	}
	got, err := wire.ParseResponse(b[1:])
	want := wire.Response{To: 0x81, ToLUN: 2, NetFn: 0x07, From: 0x20, FromLUN: 1, Seq: 9, Cmd: 1, Code: 0xc1, Data: []byte{7, 8}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("AppendResponse (-want +got), %v:\n%s", err, diff)
	}
}

func TestPaddingAlignsAuthenticatedData(t *testing.T) {
	for n := range 9 {
		b := wire.AppendPadding(make([]byte, 3+n), 3)
		tr, err := wire.ParseTrailer(b[3+n:], 0)
		if err != nil || (len(b)-3)%4 != 0 || tr.Pad > 3 {
			t.Errorf("AppendPadding of %d bytes = % x (%v), want a multiple of 4 with 3 bytes of pad at most", n, b, err)
		}
	}
}

func TestSetsOfAuthenticationTypes(t *testing.T) {
	s := wire.AuthTypes(0).With(wire.AuthMD5, wire.AuthPassword)
	if s != 0x14 || !s.Has(wire.AuthMD5) || s.Has(wire.AuthMD2) || s.Has(0xff) {
		t.Errorf("With(MD5, password) = %02xh, want 14h (table 22-16)", s)
	}
}
