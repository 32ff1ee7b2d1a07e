package sandbox

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// spanUnits are the units of time spans (systemd.time(7), "Parsing Time Spans").
var spanUnits = map[string]time.Duration{
	"us": time.Microsecond, "usec": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond,
	"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day, "w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	"M": month, "month": month, "months": month, "y": year, "year": year, "years": year,
}

const (
	day      = 24 * time.Hour
	month    = 2629800 * time.Second  // 30.44 days
	year     = 31557600 * time.Second // 365.25 days
	infinity = time.Duration(math.MaxInt64)
)

// parseSpan reads a time span, such as "1min 5s", of which seconds are the default unit.
func parseSpan(text string) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if text == "infinity" {
		return infinity, true
	}
	sum, found := 0.0, false
	for text != "" {
		digits := 0
		for digits < len(text) && (text[digits] >= '0' && text[digits] <= '9' || text[digits] == '.') {
			digits++
		}
		n, err := strconv.ParseFloat(text[:digits], 64)
		if err != nil {
			return 0, false
		}
		text = strings.TrimLeft(text[digits:], " \t")
		letters := strings.IndexAny(text, " \t0123456789.")
		if letters < 0 {
			letters = len(text)
		}
		each, ok := spanUnits[text[:letters]]
		if !ok {
			return 0, false
		}
		sum, found = sum+n*float64(each), true
		text = strings.TrimLeft(text[letters:], " \t")
	}
	if sum >= float64(infinity) {
		return infinity, found
	}
	return time.Duration(sum), found
}

// formatSpan writes a time span as systemctl shows it: "1min 30s".
func formatSpan(d time.Duration) string {
	if d == infinity {
		return "infinity"
	}
	if d == 0 {
		return "0"
	}
	var out []string
	for _, u := range []struct {
		name string
		d    time.Duration
	}{{"y", year}, {"month", month}, {"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if n := d / u.d; n > 0 {
			out, d = append(out, strconv.FormatInt(int64(n), 10)+u.name), d%u.d
		}
	}
	return strings.Join(out, " ")
}
