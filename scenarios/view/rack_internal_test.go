package view

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// BenchmarkUnchanged measures a look at 10,000 servers none of which has changed.
func BenchmarkUnchanged(b *testing.B) {
	r := rackfile.Default(10_000)
	l := racktest.Start(b, rack.Config{Rack: &r})
	s := newRackState(l.Rack, clock.RealClock{})
	_, version := s.changes(0)
	for b.Loop() {
		s.rest = time.Time{}
		if tiles, _ := s.changes(version); tiles != nil {
			b.Fatalf("%d tiles have changed", len(tiles))
		}
	}
}
