// Package fru encodes and decodes FRU data as the Platform Management FRU
// Information Storage Definition 1.0 defines it. It does not know which FRUs
// there are.
package fru

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Errors of FRU data.
var (
	ErrHeader = errors.New("fru: common header")
	ErrArea   = errors.New("fru: area")
	// ErrOther means that there is an internal use area, which only its owner
	// can read.
	ErrOther = errors.New("fru: internal area")
	ErrRoom  = errors.New("fru: no room")
)

// unit is the unit of lengths and offsets in bytes.
const unit = 8

// Field indexes by area.
const (
	ChassisPart   = 0
	ChassisSerial = 1

	ProductMaker  = 0
	ProductName   = 1
	ProductPart   = 2
	ProductSerial = 4
	ProductTag    = 5
)

// English is the language code for Latin 1 text (§15).
const English = 25

// Area is a chassis, board or product info area.
type Area struct {
	Head   []byte // type of a chassis, language and date of a board, language of a product
	Fields []Field
}

// areaLayouts holds, for each area in order, the length of its head and the
// number of mandatory fields.
var areaLayouts = [3]struct{ head, must int }{{1, 2}, {4, 5}, {1, 7}}

// Image is the FRU data of one device. A nil area is absent.
type Image struct {
	Chassis, Board, Product *Area
	Records                 []Record // multi-record area
}

// Record is a record of the multi-record area (§16).
type Record struct {
	Kind byte
	Data []byte
}

// SystemID returns the management access record with the system's UUID, in
// SMBIOS byte order (§18.4).
func SystemID(uuid [16]byte) Record { return Record{0x03, append([]byte{0x07}, uuid[:]...)} }

// Supply returns the record of a hot-swappable AC power supply (§18.1).
func Supply(watts, lowVolts, highVolts float64, lowHertz, highHertz byte) Record {
	const (
		unspecified           = 0xff
		hotSwap, switches, pf = 1 << 3, 1 << 2, 1 << 1
		milliseconds          = 12 // ride-through time
		anyPeak               = 0xfff
	)
	two := func(n uint16) []byte { return []byte{byte(n), byte(n >> 8)} }
	volts := func(v float64) []byte { return two(uint16(min(math.MaxInt16, v*100))) }
	return Record{0x00, slices.Concat(
		two(uint16(min(0xfff, watts))), []byte{unspecified, unspecified, unspecified, 0}, volts(lowVolts), volts(highVolts), two(0), two(0),
		[]byte{lowHertz, highHertz, milliseconds, hotSwap | switches | pf}, two(anyPeak), []byte{0, 0, 0, 0},
	)}
}

func (i *Image) areas() [3]**Area { return [3]**Area{&i.Chassis, &i.Board, &i.Product} }

// NewChassis returns a chassis info area. kind is the SMBIOS chassis type.
func NewChassis(kind byte, part, serial string) *Area {
	return &Area{[]byte{kind}, texts(part, serial)}
}

// NewBoard returns a board info area with a manufacturing date.
func NewBoard(made time.Time, maker, name, serial, part string) *Area {
	minutes := uint32(max(0, made.Sub(time.Date(1996, 1, 1, 0, 0, 0, 0, time.UTC))/time.Minute))
	return &Area{[]byte{English, byte(minutes), byte(minutes >> 8), byte(minutes >> 16)}, texts(maker, name, serial, part, "")}
}

// NewProduct returns a product info area.
func NewProduct(maker, name, part, version, serial, tag string) *Area {
	return &Area{[]byte{English}, texts(maker, name, part, version, serial, tag, "")}
}

func texts(all ...string) []Field {
	out := make([]Field, len(all))
	for i, s := range all {
		out[i] = Text(s)
	}
	return out
}

// Text returns the text of a field; "" when there is none.
func (a *Area) Text(place int) string {
	if a == nil || place >= len(a.Fields) {
		return ""
	}
	return a.Fields[place].String()
}

// With returns the image with a field of its product area replaced; unchanged
// when it has no product area.
func (i Image) With(place int, text string) Image {
	if i.Product == nil || place >= len(i.Product.Fields) {
		return i
	}
	product := *i.Product
	product.Fields = slices.Clone(product.Fields)
	product.Fields[place] = Text(text)
	i.Product = &product
	return i
}

// Append appends the image, zero-padded to size bytes.
func (i Image) Append(out []byte, size int) ([]byte, error) {
	start := len(out)
	out = append(out, 1, 0, 0, 0, 0, 0, 0, 0)
	for k, a := range i.areas() {
		if *a == nil {
			continue
		}
		at := len(out) - start
		if at/unit > 0xff {
			return nil, fmt.Errorf("%w: area at %d", ErrRoom, at)
		}
		out[start+2+k] = byte(at / unit)
		var err error
		if out, err = (*a).append(out); err != nil {
			return nil, err
		}
	}
	if len(i.Records) > 0 {
		at := len(out) - start
		if at/unit > 0xff {
			return nil, fmt.Errorf("%w: records at %d", ErrRoom, at)
		}
		out[start+5] = byte(at / unit)
		out = appendRecords(out, i.Records)
	}
	if len(out)-start > size {
		return nil, fmt.Errorf("%w: %d bytes, of %d", ErrRoom, len(out)-start, size)
	}
	out[start+7] = checksum(out[start : start+7])
	return append(out, make([]byte, size-(len(out)-start))...), nil
}

// append appends the area.
func (a *Area) append(out []byte) ([]byte, error) {
	start := len(out)
	out = append(append(out, 1, 0), a.Head...)
	for _, f := range a.Fields {
		out = f.append(out)
	}
	out = append(out, end)
	for (len(out)-start)%unit != unit-1 {
		out = append(out, 0)
	}
	n := (len(out) - start + 1) / unit
	if n > 0xff {
		return nil, fmt.Errorf("%w: %d bytes of an area", ErrRoom, n*unit)
	}
	out[start+1] = byte(n)
	return append(out, checksum(out[start:])), nil
}

// checksum returns the byte that makes the sum of all bytes 0.
func checksum(b []byte) byte {
	var sum byte
	for _, x := range b {
		sum += x
	}
	return -sum
}

// Parse parses FRU data. Bytes after the areas are ignored, as are invalid
// multi-records: clients move the areas there.
func Parse(b []byte) (Image, error) {
	var i Image
	if len(b) < unit || b[0] != 1 || b[6] != 0 || checksum(b[:unit]) != 0 {
		return i, ErrHeader
	}
	if b[1] != 0 {
		return i, ErrOther
	}
	for k, a := range i.areas() {
		at := int(b[2+k]) * unit
		if at == 0 {
			continue
		}
		parsed, err := parseArea(b[min(at, len(b)):], areaLayouts[k].head, areaLayouts[k].must)
		if err != nil {
			return Image{}, fmt.Errorf("%w at %d", err, at)
		}
		*a = parsed
	}
	if at := int(b[5]) * unit; at != 0 && at < len(b) {
		i.Records = parseRecords(b[at:])
	}
	return i, nil
}

// Fields of a multi-record header: the end-of-list flag, the format version and
// the length.
const (
	lastRecord    = 0x80
	recordVersion = 0x02
	recordHeader  = 5
)

func appendRecords(out []byte, all []Record) []byte {
	for n, r := range all {
		head := []byte{r.Kind, recordVersion, byte(len(r.Data)), checksum(r.Data)}
		if n == len(all)-1 {
			head[1] |= lastRecord
		}
		out = append(append(append(out, head...), checksum(head)), r.Data...)
	}
	return out
}

// parseRecords parses records up to the first invalid one, which hides those
// after it but is no error.
func parseRecords(b []byte) []Record {
	var all []Record
	for len(b) >= recordHeader && checksum(b[:recordHeader]) == 0 && b[1]&0x7f == recordVersion {
		end := recordHeader + int(b[2])
		if end > len(b) || checksum(b[recordHeader:end]) != b[3] {
			break
		}
		all = append(all, Record{b[0], append([]byte(nil), b[recordHeader:end]...)})
		if b[1]&lastRecord != 0 {
			break
		}
		b = b[end:]
	}
	return all
}

func parseArea(b []byte, head, must int) (*Area, error) {
	if len(b) < unit || b[0] != 1 {
		return nil, ErrArea
	}
	n := int(b[1]) * unit
	if n == 0 || n > len(b) || checksum(b[:n]) != 0 {
		return nil, ErrArea
	}
	all, err := fields(b[2+head:n-1], must)
	if err != nil {
		return nil, err
	}
	return &Area{append([]byte(nil), b[2:2+head]...), all}, nil
}
