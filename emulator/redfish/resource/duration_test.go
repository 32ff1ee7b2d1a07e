package resource

import (
	"testing"
	"time"
)

func TestDurationParsing(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"PT0S": 0, "PT1H30M": 90 * time.Minute, "P1DT1S": 24*time.Hour + time.Second, "PT0.5S": time.Second / 2, "P2D": 48 * time.Hour,
		"": -1, "P": -1, "PT": -1, "1h": -1, "P1Y": -1, "PT-1S": -1, "P1DT": -1, "P99999999999D": -1,
	} {
		if got, ok := parseDuration(in); ok != (want >= 0) || ok && got != want {
			t.Errorf("duration(%s) = %s, %t", in, got, ok)
		}
	}
}
