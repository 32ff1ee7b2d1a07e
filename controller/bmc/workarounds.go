package bmc

import (
	"slices"
	"strings"
	"sync"
)

// Workaround records which of several variants of an operation one BMC accepts. It
// holds no secret.
type Workaround struct {
	Topic       string // "boot override"
	Variant     string // "target, enabled and mode together"
	Nonstandard bool   // neither the standard nor the driver prefers this variant
}

func (w Workaround) String() string { return w.Topic + ": " + w.Variant }

// Workarounds holds the workarounds of one BMC. A caller passes it to every Client
// that it opens for that BMC, so that no variant is tried twice. The zero value is
// ready to use; a nil Workarounds records nothing.
type Workarounds struct {
	mu  sync.Mutex
	all []Workaround // sorted by topic
}

// Record stores a workaround and replaces an earlier one on the same topic.
func (ws *Workarounds) Record(w Workaround) {
	if ws == nil {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	i, known := slices.BinarySearchFunc(ws.all, w.Topic, func(w Workaround, topic string) int { return strings.Compare(w.Topic, topic) })
	if known {
		ws.all[i] = w
		return
	}
	ws.all = slices.Insert(ws.all, i, w)
}

// Variant returns the variant recorded for a topic; "" if there is none.
func (ws *Workarounds) Variant(topic string) string {
	if ws == nil {
		return ""
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, one := range ws.all {
		if one.Topic == topic {
			return one.Variant
		}
	}
	return ""
}

// Nonstandard returns the workarounds that set the BMC apart from others, sorted
// by topic.
func (ws *Workarounds) Nonstandard() []Workaround {
	if ws == nil {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var odd []Workaround
	for _, one := range ws.all {
		if one.Nonstandard {
			odd = append(odd, one)
		}
	}
	return odd
}

// WorkaroundReporter is a Client that reports the workarounds of its BMC. Every
// Client of a Pool implements it.
type WorkaroundReporter interface {
	// Workarounds returns the workarounds that set the BMC apart from others.
	Workarounds() []Workaround
}

var _ WorkaroundReporter = (*pooled)(nil)

// Workarounds implements WorkaroundReporter.
func (c *pooled) Workarounds() []Workaround { return c.entry.workarounds.Nonstandard() }
