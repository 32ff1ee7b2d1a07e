package fru

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func sample() Image {
	return Image{
		Chassis: NewChassis(0x17, "C-1", "CS1"),
		Board:   NewBoard(time.Date(1996, 1, 1, 1, 0, 0, 0, time.UTC), "Maker", "Board", "BS1", "B-1"),
		Product: NewProduct("Maker", "Product", "P-1", "", "PS1", "tag"),
	}
}

func withRecords() Image {
	i := sample()
	i.Records = []Record{SystemID([16]byte{1, 2, 3}), {0xc0, []byte("OEM")}}
	return i
}

func TestRecordsOfAnImage(t *testing.T) {
	b, err := withRecords().Append(nil, 256)
	if err != nil {
		t.Fatal(err)
	}
	at := int(b[5]) * 8
	if want := []byte("\x03\x02\x11\xf3\xf7\x07\x01\x02\x03"); at != 96 || !bytes.Equal(b[at:at+9], want) {
		t.Errorf("records at %d: % x, want % x", at, b[at:at+9], want)
	}
	got, err := Parse(b)
	if d := cmp.Diff(withRecords(), got, cmpopts.EquateEmpty()); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for spoilt, want := range map[int]int{at: 0, at + 7: 0, at + 22: 1, at + 28: 1} {
		b := bytes.Clone(b)
		b[spoilt]++
		if got, err := Parse(b); err != nil || len(got.Records) != want || got.Product == nil {
			t.Errorf("spoilt at %d: %v, %d records, want %d", spoilt, err, len(got.Records), want)
		}
	}
}

func TestImageBytes(t *testing.T) {
	got, err := sample().Append(nil, 128)
	if err != nil {
		t.Fatal(err)
	}
	summed := func(b []byte) []byte { return append(b, checksum(b)) }
	want := summed([]byte{1, 0, 1, 3, 7, 0, 0})
	want = append(want, summed([]byte("\x01\x02\x17\xc3C-1\xc3CS1\xc1\x00\x00\x00"))...)
	want = append(want, summed([]byte("\x01\x04\x19\x3c\x00\x00\xc5Maker\xc5Board\xc3BS1\xc3B-1\xc0\xc1"+strings.Repeat("\x00", 3)))...)
	want = append(want, summed([]byte("\x01\x05\x19\xc5Maker\xc7Product\xc3P-1\xc0\xc3PS1\xc3tag\xc0\xc1"+strings.Repeat("\x00", 7)))...)
	want = append(want, make([]byte, 128-len(want))...)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSupplyRecord(t *testing.T) {
	got := Supply(1100, 200, 240, 47, 63)
	want := Record{0, []byte("\x4c\x04\xff\xff\xff\x00\x20\x4e\xc0\x5d\x00\x00\x00\x00\x2f\x3f\x0c\x0e\xff\x0f\x00\x00\x00\x00")}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if big := Supply(1e6, 1e6, 1e6, 0, 0); big.Data[1] != 0x0f || big.Data[7] != 0x7f {
		t.Errorf("more than fits: % x", big.Data)
	}
}

func TestImagesSurviveEncodingAndParsing(t *testing.T) {
	b, err := sample().Append([]byte("before"), 256)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b[6:])
	if d := cmp.Diff(sample(), got, cmpopts.EquateEmpty()); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if got.Product.Text(ProductSerial) != "PS1" || got.Product.Text(99) != "" || (*Area)(nil).Text(0) != "" {
		t.Errorf("serial number %q", got.Product.Text(ProductSerial))
	}
	other := got.With(ProductTag, "another tag")
	if other.Product.Text(ProductTag) != "another tag" || got.Product.Text(ProductTag) != "tag" {
		t.Errorf("tags %q and %q", other.Product.Text(ProductTag), got.Product.Text(ProductTag))
	}
	if none := (Image{}).With(ProductTag, "x"); none.Product != nil {
		t.Error("a product from nowhere")
	}
}

func TestParseRefusesInvalidImages(t *testing.T) {
	good, err := sample().Append(nil, 256)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) { b[7] = 0; b[7] = checksum(b[:7]) }
	for name, tt := range map[string]struct {
		spoil func(b []byte) []byte
		err   error
	}{
		"nothing":        {func([]byte) []byte { return nil }, ErrHeader},
		"zeros":          {func(b []byte) []byte { return make([]byte, len(b)) }, ErrHeader},
		"sum of header":  {func(b []byte) []byte { b[7]++; return b }, ErrHeader},
		"other version":  {func(b []byte) []byte { b[0] = 2; sum(b); return b }, ErrHeader},
		"sum of area":    {func(b []byte) []byte { b[30]++; return b }, ErrArea},
		"area outside":   {func(b []byte) []byte { b[3] = 200; sum(b); return b }, ErrArea},
		"area in zeros":  {func(b []byte) []byte { b[3] = 20; sum(b); return b }, ErrArea},
		"area is cut":    {func(b []byte) []byte { return b[:40] }, ErrArea},
		"internal":       {func(b []byte) []byte { b[1] = 20; sum(b); return b }, ErrOther},
		"field too long": {func(b []byte) []byte { b[11] = 0xff; b[23] = 0; b[23] = checksum(b[8:23]); return b }, ErrArea},
		"area without end": {func(b []byte) []byte {
			b[19] = 0xc3
			b[23] = 0
			b[23] = checksum(b[8:23])
			return b
		}, ErrArea},
	} {
		if _, err := Parse(tt.spoil(bytes.Clone(good))); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
	}
	if _, err := sample().Append(nil, 64); !errors.Is(err, ErrRoom) {
		t.Errorf("too little room: %v", err)
	}
	big := &Area{Head: []byte{1}}
	for range 40 {
		big.Fields = append(big.Fields, Text(strings.Repeat("x", 63)))
	}
	if _, err := (Image{Chassis: big}).Append(nil, 1<<16); !errors.Is(err, ErrRoom) {
		t.Errorf("too long an area: %v", err)
	}
}

// The type/length byte of a text of one character is the end-of-area marker C1h;
// it is read as text where mandatory fields must follow.
func TestTextOfOneCharacter(t *testing.T) {
	i := sample()
	i.Product.Fields[ProductSerial] = Field{Latin, []byte("X")}
	b, err := i.Append(nil, 256)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b)
	if err != nil || got.Product.Text(ProductSerial) != "X" || got.Product.Text(ProductTag) != "tag" {
		t.Errorf("%v: %q, then %q", err, got.Product.Text(ProductSerial), got.Product.Text(ProductTag))
	}
	if b, err = got.Append(nil, 256); err != nil || !bytes.Contains(b, []byte("\xc2X\x00\xc3tag")) {
		t.Errorf("%v: written again % x", err, b)
	}
	i.Product.Fields = nil // somebody has left them out
	if b, err = i.Append(nil, 256); err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(b); err != nil || len(got.Product.Fields) != 0 {
		t.Errorf("%v: %v", err, got.Product)
	}
}

func TestFieldsOfText(t *testing.T) {
	for _, tt := range []struct {
		f    Field
		want string
	}{
		{Text(""), ""}, {Text("A"), "A"}, {Text("Größe"), "Größe"}, {Text("鍵"), "鍵"},
		{Text(strings.Repeat("鍵", 30)), strings.Repeat("鍵", 20)}, {Text(strings.Repeat("x", 80)), strings.Repeat("x", 63)},
		{Field{BCD, []byte{0x12, 0xb3}}, "12-3"}, {Field{Packed, []byte{0x29, 0xdc, 0xa6}}, "IPMI"}, {Field{Packed, []byte{0x29}}, "I"},
		{Field{Binary, []byte{1, 2}}, ""},
	} {
		if got := tt.f.String(); got != tt.want || len(tt.f.Data) == 1 && tt.f.Coding == Latin || len(tt.f.Data) > maxField {
			t.Errorf("%v % x: %q, want %q", tt.f.Coding, tt.f.Data, got, tt.want)
		}
	}
	if got := Decode([]byte(BOM + "a\xe9")); got != "a" {
		t.Errorf("half a character: %q", got)
	}
}

// An image that parses is equal after it is encoded and parsed again.
func FuzzParse(f *testing.F) {
	b, err := sample().Append(nil, 256)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:64])
	if b, err = withRecords().Append(nil, 256); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := Parse(b)
		if err != nil {
			t.Skip()
		}
		out, err := i.Append(nil, 1<<13)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out)
		if d := cmp.Diff(i, again, cmpopts.EquateEmpty()); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
		for _, a := range i.areas() {
			for n := range 9 {
				(*a).Text(n)
			}
		}
	})
}
