package rackfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Speed is the speed of the lab's time: a factor of real time such as "60x" or
// "0.5x", at most 1000000x, or "max", which skips the time in which nothing happens.
type Speed string

// The speeds that have a name.
const (
	DefaultSpeed Speed = "60x"
	Max          Speed = "max" // idle time is skipped
)

// Factor returns how much faster than real time the lab runs. For max, skipIdle is true
// and the factor is 1.
func (s Speed) Factor() (factor float64, skipIdle bool, err error) {
	if s == Max {
		return 1, true, nil
	}
	number, ok := strings.CutSuffix(string(s), "x")
	f, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(f > 0) || f > 1e6 {
		return 0, false, fmt.Errorf("speed %q: use a form like 1x, 60x or 0.5x, at most 1000000x, or max", s)
	}
	return f, false, nil
}
