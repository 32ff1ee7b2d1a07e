package report

import (
	"testing"
	"time"
)

// Times of an archive are milliseconds with fractions, which binary numbers do not hold exactly.
func TestTimesOfArchivesAreReadAsWritten(t *testing.T) {
	for d := time.Duration(0); d < 20*time.Millisecond; d += 50 * time.Microsecond {
		if got := duration(millis(d)); got != d {
			t.Fatalf("duration(millis(%v)) = %v", d, got)
		}
	}
}
