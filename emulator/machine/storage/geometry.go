package storage

// RAIDType is the layout of a volume on its drives; the values are Redfish's
// (DSP2046, Volume.RAIDType).
type RAIDType string

// The supported types.
const (
	RAID0  RAIDType = "RAID0"  // striping
	RAID1  RAIDType = "RAID1"  // mirroring
	RAID5  RAIDType = "RAID5"  // striping with one parity block
	RAID6  RAIDType = "RAID6"  // striping with two parity blocks
	RAID10 RAIDType = "RAID10" // striping over mirrors
	RAID50 RAIDType = "RAID50" // striping over RAID5 spans
	RAID60 RAIDType = "RAID60" // striping over RAID6 spans
)

// levels describes the layout of each type within a span, and whether it
// stripes over spans.
var levels = map[RAIDType]struct {
	mirror bool // every drive holds all data; otherwise it is striped
	parity int  // parity strips per row
	nested bool
}{
	RAID0:  {},
	RAID1:  {mirror: true},
	RAID5:  {parity: 1},
	RAID6:  {parity: 2},
	RAID10: {mirror: true, nested: true},
	RAID50: {parity: 1, nested: true},
	RAID60: {parity: 2, nested: true},
}

// Known reports whether a type is supported.
func (t RAIDType) Known() bool { _, ok := levels[t]; return ok }

// Nested reports whether a type stripes over spans of drives.
func (t RAIDType) Nested() bool { return levels[t].nested }

// Redundant reports whether a volume of a type survives the loss of a drive.
func (t RAIDType) Redundant() bool { return levels[t].mirror || levels[t].parity > 0 }

// Geometry maps a volume's bytes to its drives. The volume is divided into
// rows, which its spans hold in turn; a row is divided into strips, one on each
// drive of its span, at the same offset of each drive.
type Geometry struct {
	Type  RAIDType `json:"type"`
	Strip int64    `json:"strip"` // bytes
	Spans int      `json:"spans"` // 1 unless nested
	Width int      `json:"width"` // drives per span
}

// Drives returns the number of drives.
func (g Geometry) Drives() int { return g.Spans * g.Width }

// data returns the number of data strips per row.
func (g Geometry) data() int {
	if levels[g.Type].mirror {
		return 1
	}
	return g.Width - levels[g.Type].parity
}

// spare returns the number of drives per span that can be lost.
func (g Geometry) spare() int {
	if levels[g.Type].mirror {
		return g.Width - 1
	}
	return levels[g.Type].parity
}

// Row returns the number of data bytes per row.
func (g Geometry) Row() int64 { return int64(g.data()) * g.Strip }

// Capacity returns the size of a volume with that many rows per span.
func (g Geometry) Capacity(rows int64) int64 { return rows * int64(g.Spans) * g.Row() }

// RowsFor returns the number of rows per span of a volume of at least that
// size.
func (g Geometry) RowsFor(capacity int64) int64 {
	all := g.Row() * int64(g.Spans)
	return (capacity + all - 1) / all
}

// place is the position of a part of a row.
type place struct {
	row    int64 // within the span
	span   int
	column int   // number of the data column, counted from 0
	in     int64 // bytes from the start of the strip
}

// locate returns the position of a byte of the volume.
func (g Geometry) locate(off int64) place {
	row := off / g.Row()
	in := off % g.Row()
	return place{
		row: row / int64(g.Spans), span: int(row % int64(g.Spans)),
		column: int(in / g.Strip), in: in % g.Strip,
	}
}

// offset is the inverse of locate.
func (g Geometry) offset(p place) int64 {
	return (p.row*int64(g.Spans)+int64(p.span))*g.Row() + int64(p.column)*g.Strip + p.in
}

// column returns the drive, counted within its span, that holds a column of a
// row; the columns after the data are P and Q. Parity rotates from the last
// drive to the first, and data follows it (left-symmetric, as in Linux).
func (g Geometry) column(row int64, column int) int {
	parity := levels[g.Type].parity
	if parity == 0 {
		return column
	}
	p := g.Width - 1 - int(row%int64(g.Width))
	if data := g.data(); column >= data {
		return (p + column - data) % g.Width
	}
	return (p + parity + column) % g.Width
}
