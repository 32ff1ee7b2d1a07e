package fru

import (
	"strings"
	"unicode/utf8"
)

// Coding is the type code of a field: how its bytes are encoded (FRU 1.0, §13).
type Coding byte

// The codings.
const (
	Binary Coding = 0
	BCD    Coding = 1 // digits and punctuation, two to a byte
	Packed Coding = 2 // 6 bits per character
	Latin  Coding = 3 // ASCII and Latin 1
)

// maxField is the longest field in bytes.
const maxField = 63

// end is the byte that ends an area's fields.
const end = 0xc1

// Field is a field of an area.
type Field struct {
	Coding Coding
	Data   []byte
}

// BOM begins text in UTF-8 (DCMI 1.5, §6.4.2).
const BOM = "\xef\xbb\xbf"

// Encode returns text in Latin 1, or in UTF-8 after a BOM when Latin 1 does not
// suffice.
func Encode(text string) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return append([]byte(BOM), text...)
		}
		out = append(out, byte(r))
	}
	return out
}

// Decode is the inverse of Encode. Invalid UTF-8 is left out.
func Decode(b []byte) string {
	if text, ok := strings.CutPrefix(string(b), BOM); ok {
		return strings.ToValidUTF8(text, "")
	}
	out := make([]rune, len(b))
	for i, c := range b {
		out[i] = rune(c)
	}
	return string(out)
}

// Text returns a text field, truncated to what fits. A single character is
// followed by a zero, since length 1 would end the area.
func Text(text string) Field {
	b := Encode(text)
	if len(b) > maxField {
		b = b[:maxField]
		if strings.HasPrefix(string(b), BOM) {
			for !utf8.Valid(b) {
				b = b[:len(b)-1]
			}
		}
	}
	if len(b) == 1 {
		b = append(b, 0)
	}
	return Field{Latin, b}
}

const bcd = "0123456789 -.:,_"

// String returns the text of a field; "" when it is binary.
func (f Field) String() string {
	switch f.Coding {
	case BCD:
		var out []byte
		for _, b := range f.Data {
			out = append(out, bcd[b>>4], bcd[b&0xf])
		}
		return strings.TrimRight(string(out), " ")
	case Packed:
		var out []byte
		for i := range len(f.Data) * 8 / 6 {
			at := i * 6
			two := uint16(f.Data[at/8])
			if at/8+1 < len(f.Data) {
				two |= uint16(f.Data[at/8+1]) << 8
			}
			out = append(out, byte(two>>(at%8))&0x3f+' ')
		}
		return strings.TrimRight(string(out), " ")
	case Latin:
		return Decode([]byte(strings.TrimRight(string(f.Data), "\x00")))
	}
	return ""
}

// append appends a field with its type/length byte.
func (f Field) append(out []byte) []byte {
	return append(append(out, byte(f.Coding)<<6|byte(len(f.Data))), f.Data...)
}

// fields parses fields up to the end mark. Some clients write a one-character
// text as such, which looks like the end mark: where mandatory fields are still
// missing it is read as text.
func fields(b []byte, must int) ([]Field, error) {
	all, err := fieldsFrom(b, must)
	if err != nil {
		return fieldsFrom(b, 0)
	}
	return all, nil
}

// fieldsFrom parses fields, of which the first must fields are mandatory.
func fieldsFrom(b []byte, must int) ([]Field, error) {
	var all []Field
	for at := 0; at < len(b); {
		head := b[at]
		if head == end && len(all) >= must {
			return all, nil
		}
		n := int(head & maxField)
		at++
		if at+n > len(b) {
			return nil, ErrArea
		}
		f := Field{Coding(head >> 6), append([]byte(nil), b[at:at+n]...)}
		if head == end {
			f.Data = append(f.Data, 0) // as the client should have written it
		}
		all = append(all, f)
		at += n
	}
	return nil, ErrArea
}
