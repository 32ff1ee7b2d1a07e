package rack

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// quirks are the deviations of BMCs beyond those of their dialects.
type quirks struct {
	mu  sync.Mutex
	set map[string][]quirk.Setting // by host; set at run time, in place of the rack's
	// records caches dialect records with quirks: hosts that behave alike share one.
	records map[recordKey]*dialect.Record
}

type recordKey struct {
	of     *dialect.Record
	quirks string
}

const quirksKey = "quirks"

// openQuirks restores the quirks that were set at run time.
func (l *Rack) openQuirks() error {
	q := &l.quirks
	q.set, q.records = map[string][]quirk.Setting{}, map[recordKey]*dialect.Record{}
	if _, err := l.store.Load(store.Meta, quirksKey, &q.set); err != nil {
		return err
	}
	return nil
}

// recordWith returns a record with quirks applied.
func (q *quirks) recordWith(r *dialect.Record, all []quirk.Setting) (*dialect.Record, error) {
	if len(all) == 0 {
		return r, nil
	}
	var text []string
	for _, s := range all {
		text = append(text, s.String())
	}
	k := recordKey{r, strings.Join(text, "\n")}
	if record, ok := q.records[k]; ok {
		return record, nil
	}
	record, err := quirk.Apply(r, all)
	if err != nil {
		return nil, err
	}
	q.records[k] = record
	return record, nil
}

// quirksOf returns a host's quirks: those set at run time, else the rack's.
func (q *quirks) quirksOf(name string, rack []quirk.Setting) []quirk.Setting {
	if set, ok := q.set[name]; ok {
		return set
	}
	return rack
}

// parseQuirks parses the quirks of a group of hosts.
func parseQuirks(texts []string) ([]quirk.Setting, error) {
	var all []quirk.Setting
	for i, text := range texts {
		s, err := quirk.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("quirks[%d]: %w", i, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// Quirks returns the host's quirks, without the deviations of its dialect.
func (h *Host) Quirks() []quirk.Setting {
	q := &h.rack.quirks
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.quirksOf(h.Name(), h.model.quirks))
}

// SetQuirks replaces the host's quirks. They are stored and in force when it
// returns.
func (h *Host) SetQuirks(all []quirk.Setting) error {
	for i, s := range all {
		if slices.ContainsFunc(all[:i], func(o quirk.Setting) bool { return o.ID == s.ID }) {
			return fmt.Errorf("quirk %s: is there twice", s.ID)
		}
	}
	l, q := h.rack, &h.rack.quirks
	q.mu.Lock()
	defer q.mu.Unlock()
	record, err := q.recordWith(h.model.record, all)
	if err != nil {
		return err
	}
	was, had := q.set[h.Name()]
	q.set[h.Name()] = append([]quirk.Setting{}, all...) // an empty list is stored too
	if err := l.save(l.clock.Now(), store.Put{Kind: store.Meta, Key: quirksKey, Value: q.set}); err != nil {
		if q.set[h.Name()] = was; !had {
			delete(q.set, h.Name())
		}
		return fmt.Errorf("quirks: %w", err)
	}
	h.setDialect(record)
	var names []string
	for _, s := range all {
		names = append(names, s.String())
	}
	l.journal.Add(journal.Entry{At: l.clock.Now(), Kind: journal.Control, Host: h.Name(), What: "quirks.set", Text: strings.Join(names, ", ")})
	return nil
}

// setDialect makes the BMC behave as a record says, from the next request on.
func (h *Host) setDialect(r *dialect.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.record.Store(r)
	h.bmc.ChangeSpec(&r.BMC)
	h.publish()
}
