package resource

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

// durations are of the form that DSP0266 gives them ("Duration values"): days
// and what is below them.
var durations = regexp.MustCompile(`^P(?:(\d+)D)?(T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// Duration reads a duration: P1D, PT1H30M, PT0.5S.
func Duration(s string) (time.Duration, bool) {
	m := durations.FindStringSubmatch(s)
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
