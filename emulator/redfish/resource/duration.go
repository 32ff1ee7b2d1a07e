package resource

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

// durationPattern matches DSP0266 durations ("Duration values"): days, hours,
// minutes and seconds.
var durationPattern = regexp.MustCompile(`^P(?:(\d+)D)?(T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// parseDuration parses a DSP0266 duration: P1D, PT1H30M, PT0.5S. It returns
// false for a string that is not one or overflows time.Duration.
func parseDuration(s string) (time.Duration, bool) {
	m := durationPattern.FindStringSubmatch(s)
	if m == nil || m[1] == "" && m[2] == "" || m[2] == "T" {
		return 0, false
	}
	seconds := 0.0
	for i, unit := range []float64{1: 86400, 3: 3600, 4: 60, 5: 1} {
		if unit > 0 && m[i] != "" {
			n, err := strconv.ParseFloat(m[i], 64)
			if err != nil {
				return 0, false
			}
			seconds += n * unit
		}
	}
	if seconds > math.MaxInt64/float64(time.Second) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
