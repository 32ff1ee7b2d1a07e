package ipmi

import (
	"context"
	"encoding/hex"
	"strings"
)

// fruInventory holds the fields of the server's own FRU by area (Platform
// Management FRU Information Storage Definition 1.0 rev 1.3, §8). A missing area
// is nil.
type fruInventory struct {
	chassisArea, boardArea, productArea []string
}

func (f fruInventory) chassis(i int) string { return fieldAt(f.chassisArea, i) }
func (f fruInventory) board(i int) string   { return fieldAt(f.boardArea, i) }
func (f fruInventory) product(i int) string { return fieldAt(f.productArea, i) }

func fieldAt(fields []string, i int) string {
	if i >= len(fields) {
		return ""
	}
	return fields[i]
}

// fru reads the areas of FRU 0 that identify the server.
func (s *session) fru(ctx context.Context) (fruInventory, error) {
	var f fruInventory
	b, err := s.command(ctx, getFRU, 0)
	if err != nil {
		return f, err
	}
	if len(b) < 3 {
		return f, shortResponse(getFRU, b)
	}
	r := fruReader{session: s, size: int(b[0]) | int(b[1])<<8, words: b[2]&1 != 0}
	head, err := r.read(ctx, 0, 8)
	if err != nil || len(head) < 8 || head[0]&0x0F != 1 || checksum(head) != 0 {
		return f, err // not a FRU format that this driver knows
	}
	for _, area := range []struct {
		place int // index in the common header
		skip  int // bytes before the first field
		out   *[]string
	}{{2, 3, &f.chassisArea}, {3, 6, &f.boardArea}, {4, 3, &f.productArea}} {
		offset := int(head[area.place]) * 8
		if offset == 0 {
			continue
		}
		begin, err := r.read(ctx, offset, 2)
		if err != nil {
			return f, err
		}
		if len(begin) < 2 {
			continue
		}
		content, err := r.read(ctx, offset, int(begin[1])*8)
		if err != nil {
			return f, err
		}
		if len(content) == int(begin[1])*8 && len(content) > area.skip && checksum(content) == 0 {
			*area.out = parseFields(content[area.skip : len(content)-1])
		}
	}
	return f, nil
}

func checksum(b []byte) byte {
	var s byte
	for _, x := range b {
		s += x
	}
	return s
}

// fruReader reads a FRU in chunks of the size that the BMC permits.
type fruReader struct {
	session *session
	size    int
	words   bool // offsets and counts are in words
	chunk   int  // bytes; 0 before the first read
}

const minChunk = 8

// read reads n bytes at offset, fewer at the end of the FRU.
func (r *fruReader) read(ctx context.Context, offset, n int) ([]byte, error) {
	if r.chunk == 0 {
		r.chunk = 64
	}
	unit := 1
	if r.words {
		unit = 2
	}
	var out []byte
	for len(out) < n && offset+len(out) < r.size {
		from := offset + len(out)
		count := min(r.chunk, n-len(out), r.size-from)
		count += count % unit
		place := from / unit
		b, err := r.session.command(ctx, readFRU, 0, byte(place), byte(place>>8), byte(count/unit))
		if hasCode(err, 0xC7, 0xC8, 0xCA) && r.chunk > minChunk {
			r.chunk /= 2
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(b) < 2 || int(b[0])*unit > len(b)-1 || b[0] == 0 {
			return nil, shortResponse(readFRU, b)
		}
		out = append(out, b[1:1+int(b[0])*unit]...)
	}
	return out[:min(n, len(out))], nil
}

// parseFields returns the fields of an area, each preceded by its type/length
// byte, up to the end marker (§13).
func parseFields(b []byte) []string {
	const end = 0xC1
	var out []string
	for len(b) > 0 && b[0] != end {
		kind, n := b[0]>>6, int(b[0]&0x3F)
		if n > len(b)-1 {
			break
		}
		out = append(out, decodeText(kind, b[1:1+n]))
		b = b[1+n:]
	}
	return out
}

// decodeText decodes a field by its type code: binary, BCD plus, 6-bit ASCII, or
// 8-bit text.
func decodeText(kind byte, b []byte) string {
	switch kind {
	case 0:
		return hex.EncodeToString(b)
	case 1:
		const digits = "0123456789 -.???"
		var s strings.Builder
		for _, x := range b {
			s.WriteByte(digits[x>>4])
			s.WriteByte(digits[x&0x0F])
		}
		return strings.TrimSpace(s.String())
	case 2:
		var s strings.Builder
		for i := 0; i*6+6 <= len(b)*8; i++ {
			bit := i * 6
			x := uint16(b[bit/8])
			if bit/8+1 < len(b) {
				x |= uint16(b[bit/8+1]) << 8
			}
			s.WriteByte(byte(x>>(bit%8)&0x3F) + 0x20)
		}
		return strings.TrimSpace(s.String())
	}
	return strings.TrimSpace(strings.ToValidUTF8(strings.Map(printable, strings.TrimRight(string(b), "\x00")), ""))
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7F {
		return -1
	}
	return r
}
