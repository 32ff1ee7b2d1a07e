package event

import "testing"

// A client that does not read does not delay anybody else.
func TestBufferDropsSlowReader(t *testing.T) {
	b := newBuffer()
	for n := uint64(1); n <= EventsRetained+1; n++ {
		b.add(Notification{Number: n})
	}
	if _, lost, _ := b.After(0); !lost {
		t.Error("a stream that has missed an event goes on")
	}
	if all, lost, _ := b.After(1); lost || len(all) != EventsRetained {
		t.Errorf("a stream that has just kept up: lost %t, %d events", lost, len(all))
	}
	if all, lost, _ := b.After(EventsRetained + 1); lost || all != nil {
		t.Errorf("a stream that is up to date: lost %t, %d events", lost, len(all))
	}
}
