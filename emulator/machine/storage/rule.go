package storage

import (
	"errors"
	"fmt"
	"slices"
)

// RAID describes what a kind of controller supports. It is a section of a
// hardware profile.
type RAID struct {
	Types        []TypeRule    `json:"types"`
	Strips       []int64       `json:"strips"`                 // bytes; the default first
	MaxVolumes   int           `json:"maxVolumes"`             // largest number of volumes
	MaxPerGroup  int           `json:"maxPerGroup,omitempty"`  // volumes on the same drives; 0: one
	MixProtocols bool          `json:"mixProtocols,omitempty"` // a volume may have drives of several protocols
	MixMedia     bool          `json:"mixMedia,omitempty"`     // a volume may have drives of several media types
	Metadata     int64         `json:"metadata,omitempty"`     // bytes at the end of each drive for the configuration
	Coercion     int64         `json:"coercion,omitempty"`     // drive sizes are rounded down to multiples of this, so that similar drives match
	CacheMiB     int           `json:"cacheMiB,omitempty"`     // size of the controller's own memory, in MiB
	Write        []WritePolicy `json:"write"`                  // the default first
	Read         []ReadPolicy  `json:"read"`                   // the default first
	Spares       bool          `json:"spares,omitempty"`       // supports hot spares
	// Lenient accepts a capacity that includes the controller's own space on
	// the drives, because clients only know the drives' sizes.
	Lenient     bool `json:"lenient,omitempty"`
	Passthrough bool `json:"passthrough,omitempty"` // presents unused drives to the system
	// Times are the apply times for creating, deleting and initializing
	// volumes, default first; none means both. JobSeconds is how long such a
	// job takes; 0: it is done at once.
	Times      []ApplyTime `json:"times,omitempty"`
	JobSeconds int         `json:"jobSeconds,omitempty"` // see Times
}

// ApplyTime is when a change takes effect; the values are Redfish's (DSP2046,
// Settings.OperationApplyTime).
type ApplyTime string

// The times.
const (
	AtOnce      ApplyTime = "Immediate" // when the request comes in
	AtNextStart ApplyTime = "OnReset"   // at the next start of the system
)

var anyTime = []ApplyTime{AtOnce, AtNextStart}

// When returns the apply times for volumes, default first.
func (r *RAID) When() []ApplyTime {
	if len(r.Times) == 0 {
		return anyTime
	}
	return r.Times
}

// TypeRule says how many drives a type takes; with a nested type, per span.
type TypeRule struct {
	Type     RAIDType `json:"type"`
	Min      int      `json:"min"`                // smallest number of drives
	Max      int      `json:"max"`                // largest number of drives
	MaxSpans int      `json:"maxSpans,omitempty"` // largest number of spans of a nested type
}

// Rates are a controller's full speeds through a drive, in bytes per second; 0:
// 200 MB/s.
type Rates struct {
	Rebuild    int64 `json:"rebuild,omitempty"`    // speed of a rebuild onto a drive
	Check      int64 `json:"check,omitempty"`      // speed of a consistency check
	Initialize int64 `json:"initialize,omitempty"` // speed of the initialization of a volume
	Expand     int64 `json:"expand,omitempty"`     // speed of the expansion of a volume
	Erase      int64 `json:"erase,omitempty"`      // speed of the erasure of a drive
}

const defaultRate = 200e6

// WritePolicy is a volume's write cache policy; the values are Redfish's
// (DSP2046, Volume.WriteCachePolicy).
type WritePolicy string

// The write policies.
const (
	WriteThrough         WritePolicy = "WriteThrough"         // to the drives before a write is confirmed
	ProtectedWriteBack   WritePolicy = "ProtectedWriteBack"   // write cache that survives a loss of power
	UnprotectedWriteBack WritePolicy = "UnprotectedWriteBack" // write cache that a loss of power empties
	WriteCacheOff        WritePolicy = "Off"                  // no write cache
)

// ReadPolicy is a volume's read cache policy; the values are Redfish's
// (DSP2046, Volume.ReadCachePolicy).
type ReadPolicy string

// The read policies.
const (
	ReadAhead         ReadPolicy = "ReadAhead"         // always
	AdaptiveReadAhead ReadPolicy = "AdaptiveReadAhead" // when reads are sequential
	ReadCacheOff      ReadPolicy = "Off"               // no read-ahead
)

// Rule returns the rule of a type; false when the controller does not support
// it.
func (r *RAID) Rule(t RAIDType) (TypeRule, bool) {
	i := slices.IndexFunc(r.Types, func(x TypeRule) bool { return x.Type == t })
	if i < 0 {
		return TypeRule{}, false
	}
	return r.Types[i], true
}

// Usable returns the number of bytes of a drive that volumes can use.
func (r *RAID) Usable(m *Model) int64 {
	unit := max(r.Coercion, int64(m.BlockSize), 1)
	return max(0, (m.Capacity-r.Metadata)/unit*unit)
}

// Field is a field of a command.
type Field string

// The fields.
const (
	FieldType       Field = "type"
	FieldDrives     Field = "drives"
	FieldCapacity   Field = "capacity"
	FieldStrip      Field = "strip"
	FieldSpan       Field = "span" // drives per span
	FieldName       Field = "name"
	FieldWrite      Field = "write"
	FieldRead       Field = "read"
	FieldSpares     Field = "spares"
	FieldVolumes    Field = "volumes"
	FieldMethod     Field = "method"
	FieldModel      Field = "model"
	FieldRate       Field = "rate"
	FieldSMART      Field = "smart"
	FieldController Field = "controller"
)

// Why is why a value is refused.
type Why string

// The reasons.
const (
	Unknown     Why = "there is no such thing"
	Unsupported Why = "the controller cannot do that"
	Twice       Why = "it is named more than once"
	InUse       Why = "it is in use"
	Faulty      Why = "it has failed"
	IsForeign   Why = "it holds a foreign configuration"
	Mixed       Why = "it is of another kind than the first"
	TooFew      Why = "there are too few"
	TooMany     Why = "there are too many"
	Uneven      Why = "they do not make equal spans"
	TooSmall    Why = "it is too small"
	TooLarge    Why = "it is too large"
	Incomplete  Why = "drives are missing"
)

// ErrRule is wrapped by every RuleError.
var ErrRule = errors.New("storage: against the rules")

// RuleError says which value of a command is refused and why.
type RuleError struct {
	Field Field
	Index int    // in a list; -1: the entire value
	Value string // as given; "": none
	Why   Why
	Limit int64 // the limit that was exceeded, if any: a count or bytes
}

// Error implements error.
func (e *RuleError) Error() string {
	text := fmt.Sprintf("storage: %s %s: %s", e.Field, e.Value, e.Why)
	if e.Limit != 0 {
		text += fmt.Sprintf(" (%d)", e.Limit)
	}
	return text
}

// Unwrap makes every RuleError an ErrRule.
func (e *RuleError) Unwrap() error { return ErrRule }

// against returns a RuleError for an entire value.
func against(f Field, value any, w Why, limit ...int64) error {
	e := &RuleError{Field: f, Index: -1, Value: fmt.Sprint(value), Why: w}
	if len(limit) > 0 {
		e.Limit = limit[0]
	}
	return e
}

// Flaw is an error in a controller model.
type Flaw struct{ Field, Must string }

// Flaws returns the errors of a profile's controller section, with the
// profile's field names.
func (m *ControllerModel) Flaws() []Flaw {
	var out []Flaw
	need := func(ok bool, field, must string, args ...any) {
		if !ok {
			out = append(out, Flaw{fmt.Sprintf(field, args...), must})
		}
	}
	for i, d := range m.Bays {
		need(d.BlockSize == 512 || d.BlockSize == 4096, "bays[%d].blockSize", "be 512 or 4096", i)
		need(d.Capacity > 0 && d.BlockSize > 0 && d.Capacity%int64(d.BlockSize) == 0, "bays[%d].capacity", "be whole blocks", i)
		need(d.Protocol.Known(), "bays[%d].protocol", "be SATA, SAS or NVMe", i)
		need(d.Media.Known(), "bays[%d].media", "be HDD or SSD", i)
		for j, s := range d.Sanitize {
			need(s == BlockErase || s == CryptographicErase || s == Overwrite, "bays[%d].sanitize[%d]", "be BlockErase, CryptographicErase or Overwrite", i, j)
		}
	}
	r := m.Rates
	need(min(r.Rebuild, r.Check, r.Initialize, r.Expand, r.Erase) >= 0, "rates", "not be negative")
	if m.RAID != nil {
		m.RAID.flaws(need)
	}
	return out
}

func (r *RAID) flaws(need func(ok bool, field, must string, args ...any)) {
	need(len(r.Types) > 0, "raid.types", "not be empty")
	seen := map[RAIDType]bool{}
	for i, t := range r.Types {
		need(t.Type.Known() && !seen[t.Type], "raid.types[%d].type", "be RAID0, 1, 5, 6, 10, 50 or 60, each once", i)
		seen[t.Type] = true
		least := levels[t.Type].parity + 1
		if levels[t.Type].mirror || levels[t.Type].parity > 0 {
			least = max(2, levels[t.Type].parity+2) // a mirror has two sides; parity needs two data drives
		}
		need(t.Min >= least && t.Max >= t.Min, "raid.types[%d].min", fmt.Sprintf("be at least %d and not above max", least), i)
		need((t.MaxSpans >= 2) == t.Type.Nested(), "raid.types[%d].maxSpans", "be at least 2 for a nested type, and absent otherwise", i)
	}
	need(len(r.Strips) > 0, "raid.strips", "not be empty")
	for i, s := range r.Strips {
		need(s >= 4096 && s%4096 == 0 && s <= maxStrip, "raid.strips[%d]", "be a multiple of 4096 up to 1 MiB", i)
	}
	need(r.MaxVolumes > 0, "raid.maxVolumes", "be positive")
	need(r.MaxPerGroup >= 0, "raid.maxPerGroup", "not be negative")
	need(r.Metadata >= 0 && r.Metadata%4096 == 0, "raid.metadata", "be a multiple of 4096")
	need(r.Coercion >= 0 && r.Coercion%4096 == 0, "raid.coercion", "be a multiple of 4096")
	need(r.CacheMiB >= 0, "raid.cacheMiB", "not be negative")
	for i, when := range r.Times {
		need(slices.Contains(anyTime, when) && slices.Index(r.Times, when) == i, "raid.times[%d]", "be Immediate or OnReset, each once", i)
	}
	need(r.JobSeconds >= 0, "raid.jobSeconds", "not be negative")
	need(len(r.Write) > 0, "raid.write", "not be empty")
	for i, w := range r.Write {
		need(slices.Contains([]WritePolicy{WriteThrough, ProtectedWriteBack, UnprotectedWriteBack, WriteCacheOff}, w), "raid.write[%d]",
			"be WriteThrough, ProtectedWriteBack, UnprotectedWriteBack or Off", i)
	}
	need(len(r.Read) > 0, "raid.read", "not be empty")
	for i, x := range r.Read {
		need(slices.Contains([]ReadPolicy{ReadAhead, AdaptiveReadAhead, ReadCacheOff}, x), "raid.read[%d]", "be ReadAhead, AdaptiveReadAhead or Off", i)
	}
}

// maxStrip bounds the memory for one row of a volume.
const maxStrip = 1 << 20
