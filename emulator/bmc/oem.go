package bmc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// OEMValues holds OEM state that only a vendor's service interprets: JSON
// values by name.
type OEMValues struct {
	Values map[string]json.RawMessage `json:"values"`
}

// Limits of OEMValues.
const (
	maxOEMValues    = 256
	maxOEMNameSize  = 1024     // bytes
	maxOEMValueSize = 64 << 10 // bytes of JSON
)

// All returns the values by name, which must not be changed; nil OEMValues has
// none.
func (k *OEMValues) All() map[string]json.RawMessage {
	if k == nil {
		return nil
	}
	return k.Values
}

// SetOEMValues sets values and deletes those that are nil, all of them or none.
type SetOEMValues struct{ Values map[string]any }

func (c SetOEMValues) apply(b *BMC, _ time.Time) ([]Event, error) {
	is := maps.Clone(b.st.OEM.All())
	if is == nil {
		is = map[string]json.RawMessage{}
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(c.Values)) {
		value := c.Values[name]
		old, known := is[name]
		if value == nil {
			delete(is, name)
			changed = changed || known
			continue
		}
		raw, err := json.Marshal(value)
		switch {
		case err != nil:
			return nil, fmt.Errorf("bmc: remember %.64q: %w", name, err)
		case len(raw) > maxOEMValueSize || len(name) > maxOEMNameSize:
			return nil, fmt.Errorf("%w: %.64q: %d bytes, %d at most", ErrFull, name, len(raw), maxOEMValueSize)
		}
		is[name] = raw
		changed = changed || !bytes.Equal(old, raw)
	}
	switch {
	case len(is) > maxOEMValues:
		return nil, fmt.Errorf("%w: %d values of the vendor's, %d at most", ErrFull, len(is), maxOEMValues)
	case !changed:
	case len(is) == 0:
		b.st.OEM = nil
	default:
		b.st.OEM = &OEMValues{Values: is}
	}
	return nil, nil
}
