package store

import (
	"testing"
	"time"
)

// BenchmarkSave is a save of a value of the size of most, with and without the mark of what was
// acknowledged, which is the floor.
func BenchmarkSave(b *testing.B) {
	for name, marked := range map[string]bool{"marked": true, "floor": false} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if !marked {
				s.log.mark = nil
			}
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for i := 0; b.Loop(); i++ {
				if err := s.Save(at, Put{Kind: Hosts, Key: "node-0", Value: map[string]int{"power": i}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
