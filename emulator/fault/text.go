package fault

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration in Go's notation: "90s", "2m". It is at most a year.
type Duration struct{ time.Duration }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	d.Duration, err = span(string(b))
	return err
}

// span parses a duration of at most a year.
func span(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d > 365*24*time.Hour {
		return 0, fmt.Errorf("%q: use a form like 90s or 2m, at most a year", s)
	}
	return d, nil
}

// Methods are HTTP methods. In YAML a single one may stand without a list.
type Methods []string

// UnmarshalScalar implements yamlfile.ScalarUnmarshaler.
func (m *Methods) UnmarshalScalar(text string) error {
	*m = Methods{text}
	return nil
}

// Latency is the distribution of a delay: 200ms for a constant delay, 100ms..2s for a
// uniform one, p50=200ms,p99=3s for a lognormal one with that median and 99th
// percentile, which ,max=10s bounds.
type Latency string

// distribution is a parsed Latency. It is between low and high, or lognormal
// with the median exp(mu) in nanoseconds.
type distribution struct {
	low, high time.Duration
	lognormal bool
	mu, sigma float64
	longest   time.Duration // upper bound of a lognormal latency; 0 is no bound
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

func (l Latency) parse() (distribution, error) {
	wrong := func() (distribution, error) {
		return distribution{}, fmt.Errorf("%q: use a form like 200ms, 100ms..2s or p50=200ms,p99=3s,max=10s", string(l))
	}
	if l == "" {
		return distribution{}, nil
	}
	if !strings.Contains(string(l), "=") {
		low, high, between := strings.Cut(string(l), "..")
		a, err := span(low)
		b := a
		if err == nil && between {
			b, err = span(high)
		}
		if err != nil || a < 0 || b < a {
			return wrong()
		}
		return distribution{low: a, high: b}, nil
	}
	got := map[string]time.Duration{}
	for part := range strings.SplitSeq(string(l), ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		d, err := span(value)
		if _, twice := got[name]; twice || err != nil || d <= 0 || name != "p50" && name != "p99" && name != "max" {
			return wrong()
		}
		got[name] = d
	}
	p50, p99, longest := got["p50"], got["p99"], got["max"]
	if p50 == 0 || p99 < p50 || longest != 0 && longest < p50 {
		return wrong()
	}
	mu := math.Log(float64(p50))
	return distribution{lognormal: true, mu: mu, sigma: (math.Log(float64(p99)) - mu) / z99, longest: longest}, nil
}

// random reports whether draws can differ.
func (d distribution) random() bool { return d.lognormal || d.low != d.high }

// draw returns one delay.
func (d distribution) draw(r *rand.Rand) time.Duration {
	if !d.lognormal {
		if d.low == d.high {
			return d.low
		}
		return d.low + time.Duration(r.Int64N(int64(d.high-d.low)+1))
	}
	v := math.Exp(d.mu + d.sigma*r.NormFloat64())
	longest := d.longest
	if longest == 0 {
		longest = 365 * 24 * time.Hour
	}
	return time.Duration(min(v, float64(longest)))
}

// Limit is a rate of requests: 10/s, 100/5m.
type Limit string

// rate is a parsed Limit: n requests per interval, all of which may come at once.
type rate struct {
	n   int
	per time.Duration
}

func (l Limit) parse() (rate, error) {
	if l == "" {
		return rate{}, nil
	}
	number, per, _ := strings.Cut(string(l), "/")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	per = strings.TrimSpace(per)
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, derr := span(per)
	if err != nil || derr != nil || n < 1 || n > 1e9 || d <= 0 || d < time.Duration(n) {
		return rate{}, fmt.Errorf("%q: use a form like 10/s or 100/5m", string(l))
	}
	return rate{n: n, per: d}, nil
}

// take counts a request at now against a rate. tat is the state of the rate: the
// theoretical arrival time of the generic cell rate algorithm (ITU-T I.371, annex
// A). take returns how long the client must wait; 0 lets the request pass.
func (r rate) take(tat *time.Time, now time.Time) time.Duration {
	next := *tat
	if next.Before(now) {
		next = now
	}
	next = next.Add(r.per / time.Duration(r.n))
	if wait := next.Sub(now) - r.per; wait > 0 {
		return wait
	}
	*tat = next
	return 0
}

// Cut is how much of a body is sent: a number of bytes, or a part such as 50%.
type Cut string

// cut is a parsed Cut.
type cut struct {
	set     bool
	percent bool
	n       int
}

func (c Cut) parse() (cut, error) {
	if c == "" {
		return cut{}, nil
	}
	number, percent := strings.CutSuffix(string(c), "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || percent && n >= 100 {
		return cut{}, fmt.Errorf("%q: use a number of bytes, or a part like 50%%", string(c))
	}
	return cut{set: true, percent: percent, n: n}, nil
}

// of returns the part of a body that is sent.
func (c cut) of(body []byte) []byte {
	n := c.n
	if c.percent {
		n = len(body) * c.n / 100
	}
	return body[:min(n, len(body))]
}
