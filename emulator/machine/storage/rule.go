package storage

import (
	"errors"
	"fmt"
	"slices"
)

// RAID is what a kind of controller can do with drives, and what it does not
// allow. A hardware profile has it.
type RAID struct {
	Types        []TypeRule    `json:"types"`
	Strips       []int64       `json:"strips"` // bytes; the default first
	MaxVolumes   int           `json:"maxVolumes"`
	MaxPerGroup  int           `json:"maxPerGroup,omitempty"` // volumes on the same drives; 0 is one
	MixProtocols bool          `json:"mixProtocols,omitempty"`
	MixMedia     bool          `json:"mixMedia,omitempty"`
	Metadata     int64         `json:"metadata,omitempty"` // bytes at the end of each drive that hold the configuration
	Coercion     int64         `json:"coercion,omitempty"` // drives count as multiples of so many bytes, so that near sizes are alike
	CacheMiB     int           `json:"cacheMiB,omitempty"` // of the controller's own memory
	Write        []WritePolicy `json:"write"`              // the default first
	Read         []ReadPolicy  `json:"read"`               // the default first
	Spares       bool          `json:"spares,omitempty"`   // takes hot spares
	// Lenient takes a capacity that counts what the controller itself needs of
	// the drives for all there is: clients know the size of the drives only.
	Lenient     bool `json:"lenient,omitempty"`
	Passthrough bool `json:"passthrough,omitempty"` // shows drives to the system that it does not use itself
	// Times are when it makes, deletes and initialises volumes, the default
	// first; none stands for both. JobSeconds is how long it takes over that,
	// as a job; 0 is at once.
	Times      []ApplyTime `json:"times,omitempty"`
	JobSeconds int         `json:"jobSeconds,omitempty"`
}

// ApplyTime is when a change takes effect; the values are Redfish's (DSP2046,
// Settings.OperationApplyTime).
type ApplyTime string

// The times.
const (
	AtOnce      ApplyTime = "Immediate"
	AtNextStart ApplyTime = "OnReset"
)

var anyTime = []ApplyTime{AtOnce, AtNextStart}

// When is when the controller changes volumes, the default first.
func (r *RAID) When() []ApplyTime {
	if len(r.Times) == 0 {
		return anyTime
	}
	return r.Times
}

// TypeRule says how many drives a type takes. For a nested type both numbers
// are of one span.
type TypeRule struct {
	Type     RAIDType `json:"type"`
	Min      int      `json:"min"`
	Max      int      `json:"max"`
	MaxSpans int      `json:"maxSpans,omitempty"` // of a nested type
}

// Rates are how fast a controller works through a drive at full speed, in bytes
// per second. Zero is 200 MB/s.
type Rates struct {
	Rebuild    int64 `json:"rebuild,omitempty"`
	Check      int64 `json:"check,omitempty"`
	Initialize int64 `json:"initialize,omitempty"`
	Expand     int64 `json:"expand,omitempty"`
	Erase      int64 `json:"erase,omitempty"`
}

const defaultRate = 200e6

// WritePolicy is how a controller's cache treats writes; the values are
// Redfish's (DSP2046, Volume.WriteCachePolicy).
type WritePolicy string

// The write policies.
const (
	WriteThrough         WritePolicy = "WriteThrough"
	ProtectedWriteBack   WritePolicy = "ProtectedWriteBack"
	UnprotectedWriteBack WritePolicy = "UnprotectedWriteBack"
	WriteCacheOff        WritePolicy = "Off"
)

// ReadPolicy is how a controller's cache reads ahead; the values are Redfish's
// (DSP2046, Volume.ReadCachePolicy).
type ReadPolicy string

// The read policies.
const (
	ReadAhead         ReadPolicy = "ReadAhead"
	AdaptiveReadAhead ReadPolicy = "AdaptiveReadAhead"
	ReadCacheOff      ReadPolicy = "Off"
)

// Rule is the rule of a type; false when the controller does not have it.
func (r *RAID) Rule(t RAIDType) (TypeRule, bool) {
	i := slices.IndexFunc(r.Types, func(x TypeRule) bool { return x.Type == t })
	if i < 0 {
		return TypeRule{}, false
	}
	return r.Types[i], true
}

// Usable is how many bytes of a drive volumes can have.
func (r *RAID) Usable(m *Model) int64 {
	unit := max(r.Coercion, int64(m.BlockSize), 1)
	return max(0, (m.Capacity-r.Metadata)/unit*unit)
}

// Field is a part of a command that a rule can be against.
type Field string

// The fields.
const (
	FieldType       Field = "type"
	FieldDrives     Field = "drives"
	FieldCapacity   Field = "capacity"
	FieldStrip      Field = "strip"
	FieldSpan       Field = "span" // drives of one span
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

// Why is why a value is against the rules.
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

// ErrRule is what every RuleError is.
var ErrRule = errors.New("storage: against the rules")

// RuleError says which value of a command is against which rule.
type RuleError struct {
	Field Field
	Index int    // in a list; -1 when the whole value is meant
	Value string // as the command had it; "" when it had none
	Why   Why
	Limit int64 // that was passed, where there is one: a count or bytes
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

// against is a RuleError of a whole value.
func against(f Field, value any, w Why, limit ...int64) error {
	e := &RuleError{Field: f, Index: -1, Value: fmt.Sprint(value), Why: w}
	if len(limit) > 0 {
		e.Limit = limit[0]
	}
	return e
}

// Flaw is something that is wrong with a controller model.
type Flaw struct{ Field, Must string }

// Flaws say what is missing or wrong in what a hardware profile says of a
// controller; the fields are as the profile spells them.
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
			least = max(2, levels[t.Type].parity+2) // a mirror has two sides; parity needs two drives of data
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

// maxStrip bounds what one row of a volume can take in memory.
const maxStrip = 1 << 20
