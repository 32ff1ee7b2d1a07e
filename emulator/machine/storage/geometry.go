package storage

// RAIDType says how a volume lies on its drives; the values are Redfish's
// (DSP2046, Volume.RAIDType).
type RAIDType string

// The types that there is arithmetic for.
const (
	RAID0  RAIDType = "RAID0"
	RAID1  RAIDType = "RAID1"
	RAID5  RAIDType = "RAID5"
	RAID6  RAIDType = "RAID6"
	RAID10 RAIDType = "RAID10"
	RAID50 RAIDType = "RAID50"
	RAID60 RAIDType = "RAID60"
)

// levels says what each type makes of the drives of one span, and whether it
// stripes over several spans.
var levels = map[RAIDType]struct {
	mirror bool // each drive holds everything; otherwise data is striped
	parity int  // strips of each row that hold parity
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

// Known tells whether there is arithmetic for a type.
func (t RAIDType) Known() bool { _, ok := levels[t]; return ok }

// Nested tells whether a type stripes over spans of drives.
func (t RAIDType) Nested() bool { return levels[t].nested }

// Redundant tells whether a volume of a type outlives the loss of a drive.
func (t RAIDType) Redundant() bool { return levels[t].mirror || levels[t].parity > 0 }

// Geometry is how bytes are spread over drives. A volume is cut into rows, which
// its spans hold in turn; a row is cut into strips, one to a drive of its span,
// all at the same place of each drive.
type Geometry struct {
	Type  RAIDType `json:"type"`
	Strip int64    `json:"strip"` // bytes
	Spans int      `json:"spans"` // 1 unless nested
	Width int      `json:"width"` // drives of one span
}

// Drives is how many drives there are in all.
func (g Geometry) Drives() int { return g.Spans * g.Width }

// data is how many strips of a row hold what was written, each once.
func (g Geometry) data() int {
	if levels[g.Type].mirror {
		return 1
	}
	return g.Width - levels[g.Type].parity
}

// spare is how many drives of one span can be lost.
func (g Geometry) spare() int {
	if levels[g.Type].mirror {
		return g.Width - 1
	}
	return levels[g.Type].parity
}

// Row is how many bytes of the volume one row holds.
func (g Geometry) Row() int64 { return int64(g.data()) * g.Strip }

// Capacity is the size of a volume that has that many rows in each span.
func (g Geometry) Capacity(rows int64) int64 { return rows * int64(g.Spans) * g.Row() }

// RowsFor is how many rows each span needs for a volume of at least that size.
func (g Geometry) RowsFor(capacity int64) int64 {
	all := g.Row() * int64(g.Spans)
	return (capacity + all - 1) / all
}

// place is where a part of a row is.
type place struct {
	row    int64 // of the span
	span   int
	column int   // of data
	in     int64 // bytes from the start of the strip
}

// locate finds a byte of the volume.
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

// column is the drive, counted within its span, that holds a column of data in
// a row; columns beyond the data are P and Q. Parity moves from the last drive
// to the first, and data follows it (left-symmetric, as Linux has it).
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
