package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calendar is a calendar event expression (systemd.time(7), "Calendar Events").
type calendar struct {
	weekdays                               []time.Weekday // nil: all
	years, months, days, hours, mins, secs component
	fromEnd                                bool // days count from the end of the month
	zone                                   *time.Location
	once                                   time.Time // "@1700000000"; zero: none
}

// component is a field of an expression: any of its parts. nil: all values.
type component []part

// part is a value, a range, or a repetition.
type part struct {
	from, to int // to < 0: from alone, or without an end if every is set
	every    int // 0: once
}

func (c component) has(value, last int, fromEnd bool) bool {
	if c == nil {
		return true
	}
	return slices.ContainsFunc(c, func(p part) bool {
		from, to := p.from, p.to
		if fromEnd {
			from = last - from + 1
			if to >= 0 {
				to = last - to + 1
			}
		}
		switch {
		case to < 0 && p.every > 0:
			to = last
		case to < 0:
			to = from
		}
		return value >= from && value <= to && (p.every == 0 || (value-from)%p.every == 0)
	})
}

// calendarNames are expressions that have a name.
var calendarNames = map[string]string{
	"minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00", "monthly": "*-*-01 00:00:00", "weekly": "Mon *-*-* 00:00:00",
	"yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00", "quarterly": "*-01,04,07,10-01 00:00:00", "semiannually": "*-01,07-01 00:00:00",
	"biannually": "*-01,07-01 00:00:00", "bi-annually": "*-01,07-01 00:00:00", "semi-annually": "*-01,07-01 00:00:00", "anually": "*-01-01 00:00:00",
}

// parseCalendar reads an expression. zone is that of the server.
func parseCalendar(text string, zone *time.Location) (c calendar, err error) {
	bad := func() (calendar, error) {
		return calendar{}, fmt.Errorf("%q is no calendar event: see systemd.time(7)", text)
	}
	words := strings.Fields(text)
	c.zone = zone
	if n := len(words); n > 1 {
		if last := words[n-1]; last == "UTC" || strings.Contains(last, "/") && last[0] >= 'A' && last[0] <= 'Z' {
			if c.zone, err = time.LoadLocation(last); err != nil {
				return bad()
			}
			words = words[:n-1]
		}
	}
	if len(words) == 1 {
		if named := calendarNames[strings.ToLower(words[0])]; named != "" {
			words = strings.Fields(named)
		} else if seconds, ok := strings.CutPrefix(words[0], "@"); ok {
			n, err := strconv.ParseInt(seconds, 10, 40)
			if err != nil {
				return bad()
			}
			c.once = time.Unix(n, 0).In(c.zone)
			return c, nil
		}
	}
	if len(words) == 0 || len(words) > 3 {
		return bad()
	}
	if first := words[0][0]; first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' {
		var ok bool
		if c.weekdays, ok = parseWeekdays(strings.TrimSuffix(words[0], ",")); !ok {
			return bad()
		}
		words = words[1:]
	}
	zero := component{{0, -1, 0}}
	c.hours, c.mins, c.secs = zero, zero, zero
	for i, w := range words {
		var ok bool
		switch {
		case strings.Contains(w, ":") && i == len(words)-1:
			ok = c.parseTime(w)
		case i == 0 && strings.ContainsAny(w, "-~"):
			ok = c.parseDate(w)
		}
		if !ok {
			return bad()
		}
	}
	return c, nil
}

func (c *calendar) parseDate(w string) (ok bool) {
	w, day, fromEnd := strings.Cut(w, "~")
	fields := strings.Split(w, "-")
	if c.fromEnd = fromEnd; fromEnd {
		fields = append(fields, day)
	}
	if len(fields) == 2 {
		fields = append([]string{"*"}, fields...)
	}
	if len(fields) != 3 {
		return false
	}
	for i, into := range []*component{&c.years, &c.months, &c.days} {
		least, most := [3]int{0, 1, 1}[i], [3]int{2199, 12, 31}[i]
		if *into, ok = parseComponent(fields[i], least, most); !ok {
			return false
		}
	}
	for i, p := range c.years { // of two digits
		if p.from < 70 && p.every == 0 && c.years != nil {
			c.years[i].from += 2000
		}
	}
	return true
}

func (c *calendar) parseTime(w string) (ok bool) {
	fields := strings.Split(w, ":")
	if len(fields) == 2 {
		fields = append(fields, "0")
	}
	if len(fields) != 3 {
		return false
	}
	fields[2], _, _ = strings.Cut(fields[2], ".") // whole seconds do
	for i, into := range []*component{&c.hours, &c.mins, &c.secs} {
		if *into, ok = parseComponent(fields[i], 0, [3]int{23, 59, 59}[i]); !ok {
			return false
		}
	}
	return true
}

// parseComponent reads a field: "*", "5", "1,3", "9..17", "0/15", "*/2".
func parseComponent(text string, least, most int) (component, bool) {
	if text == "*" {
		return nil, true
	}
	var out component
	for w := range strings.SplitSeq(text, ",") {
		w, every, repeats := strings.Cut(w, "/")
		from, to, isRange := strings.Cut(w, "..")
		p := part{to: -1}
		var err error
		if p.from, err = strconv.Atoi(from); from == "*" && repeats {
			p.from, err = least, nil
		}
		if err == nil && isRange {
			p.to, err = strconv.Atoi(to)
		}
		if err == nil && repeats {
			if p.every, err = strconv.Atoi(every); p.every <= 0 {
				return nil, false
			}
		}
		if err != nil || p.from < least || p.from > most || p.to > most || isRange && p.to < p.from {
			return nil, false
		}
		out = append(out, p)
	}
	return out, true
}

func parseWeekdays(text string) (out []time.Weekday, ok bool) {
	day := func(name string) (time.Weekday, bool) {
		for d := time.Sunday; d <= time.Saturday; d++ {
			if full := strings.ToLower(d.String()); strings.ToLower(name) == full || strings.ToLower(name) == full[:3] {
				return d, true
			}
		}
		return 0, false
	}
	for w := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(w, "..")
		if !isRange {
			first, last, isRange = strings.Cut(w, "-")
		}
		from, ok := day(first)
		to := from
		if ok && isRange {
			to, ok = day(last)
		}
		if !ok {
			return nil, false
		}
		for d := from; ; d = (d + 1) % 7 {
			if out = append(out, d); d == to {
				break
			}
		}
	}
	return out, true
}

// maxYear is the last year in which an expression elapses, as systemd has it.
const maxYear = 2199

// next returns the first time after another one at which the expression elapses.
func (c calendar) next(after time.Time) (time.Time, bool) {
	if !c.once.IsZero() {
		return c.once, c.once.After(after)
	}
	t := after.In(c.zone).Truncate(time.Second).Add(time.Second)
	for t.Year() <= maxYear {
		y, m, d := t.Date()
		last := time.Date(y, m+1, 0, 0, 0, 0, 0, c.zone).Day()
		switch {
		case !c.years.has(y, maxYear, false):
			t = ahead(t, time.Date(y+1, 1, 1, 0, 0, 0, 0, c.zone))
		case !c.months.has(int(m), 12, false):
			t = ahead(t, time.Date(y, m+1, 1, 0, 0, 0, 0, c.zone))
		case !c.days.has(d, last, c.fromEnd) || c.weekdays != nil && !slices.Contains(c.weekdays, t.Weekday()):
			t = ahead(t, time.Date(y, m, d+1, 0, 0, 0, 0, c.zone))
		case !c.hours.has(t.Hour(), 23, false):
			t = ahead(t, time.Date(y, m, d, t.Hour()+1, 0, 0, 0, c.zone))
		case !c.mins.has(t.Minute(), 59, false):
			t = t.Add(time.Duration(60-t.Second()) * time.Second)
		case !c.secs.has(t.Second(), 59, false):
			t = t.Add(time.Second)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

// ahead returns a time behind another. Where clocks are set forward, the hour that is left out has no
// time of its own.
func ahead(t, next time.Time) time.Time {
	if next.After(t) {
		return next
	}
	return t.Add(time.Hour).Truncate(time.Minute)
}
