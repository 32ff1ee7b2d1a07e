package hostprograms

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Job is a line of a crontab (crontab(5)).
type Job struct {
	User    string // of a system's crontab; "": the crontab's owner
	Command string
	Input   string   // of its standard input
	Env     []string // that the lines above set
	Boot    bool     // it runs when cron starts for the first time in a boot, and never again

	at when
}

// when has the minutes of a job, each field as a set of bits.
type when struct {
	minutes, hours, days, months, weekdays uint64
	anyDay                                 bool // one of the fields of days is "*": both must match
}

// cronFields are the fields of a line.
var cronFields = []struct {
	name     string
	from, to int
	names    string
}{
	{"minute", 0, 59, ""}, {"hour", 0, 23, ""}, {"day-of-month", 1, 31, ""}, {"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"}, {"day-of-week", 0, 7, "sun mon tue wed thu fri sat"},
}

// cronNames are times with a name.
var cronNames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// maxJobs is how many jobs a crontab has.
const maxJobs = 1024

// ParseCrontab reads a crontab, whose lines name users if it is one of the system's. Its error has
// the line: "3: bad minute".
func ParseCrontab(text string, system bool) (jobs []Job, err error) {
	var env []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, value, ok := assignment(line); ok {
			env = append(env[:len(env):len(env)], name+"="+value)
			continue
		}
		j, problem := parseJob(line, system)
		if problem != "" {
			return nil, fmt.Errorf("%d: %s", number, problem)
		}
		if len(jobs) == maxJobs {
			return nil, fmt.Errorf("%d: more than %d jobs", number, maxJobs)
		}
		j.Env = env
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// assignment reads "NAME = VALUE", with or without quotes.
func assignment(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, "=")
	name, value = strings.Trim(strings.TrimSpace(name), `"'`), strings.TrimSpace(value)
	if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return "", "", false
	}
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return name, value, true
}

// word cuts the first word off a line.
func word(line string) (first, rest string) {
	line = strings.TrimLeft(line, " \t")
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.TrimLeft(line[i:], " \t")
	}
	return line, ""
}

func parseJob(line string, system bool) (j Job, problem string) {
	rest := line
	if line[0] == '@' {
		name, after := word(line)
		j.Boot = name == "@reboot"
		spec := cronNames[name]
		if !j.Boot && spec == "" {
			return j, "bad time specifier"
		}
		rest = spec + " " + after
	}
	if !j.Boot {
		sets := []*uint64{&j.at.minutes, &j.at.hours, &j.at.days, &j.at.months, &j.at.weekdays}
		for i, f := range cronFields {
			text, after := word(rest)
			set, ok := parseField(text, f.from, f.to, strings.Fields(f.names))
			if !ok {
				return j, "bad " + f.name
			}
			if (i == 2 || i == 4) && text[0] == '*' {
				j.at.anyDay = true
			}
			*sets[i], rest = set, after
		}
		if j.at.weekdays&(1<<7) != 0 {
			j.at.weekdays |= 1 // Sunday
		}
	}
	if system {
		if j.User, rest = word(rest); j.User == "" {
			return j, "bad username"
		}
	}
	if j.Command, j.Input = cutInput(strings.TrimSpace(rest)); j.Command == "" {
		return j, "bad command"
	}
	return j, ""
}

// cutInput cuts the standard input off a command, which stands behind a "%" without a backslash.
func cutInput(text string) (command, input string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '%':
			b.WriteByte('%')
			i++
		case text[i] == '%':
			b.WriteByte('\n')
		default:
			b.WriteByte(text[i])
		}
	}
	command, input, ok := strings.Cut(b.String(), "\n")
	if ok {
		input += "\n"
	}
	return command, input
}

// parseField reads a field: "*", numbers, names, ranges and steps with commas between them.
func parseField(text string, from, to int, names []string) (set uint64, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		values, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 || n > 100 {
				return 0, false
			}
			every = n
		}
		low, high := from, to
		if values != "*" {
			first, last, ranged := strings.Cut(values, "-")
			if low, ok = fieldValue(first, from, to, names); !ok {
				return 0, false
			}
			switch {
			case ranged:
				if high, ok = fieldValue(last, from, to, names); !ok || high < low {
					return 0, false
				}
			case !stepped:
				high = low
			}
		}
		for v := low; v <= high; v += every {
			set |= 1 << v
		}
	}
	return set, set != 0
}

func fieldValue(text string, from, to int, names []string) (int, bool) {
	for i, n := range names {
		if strings.EqualFold(text, n) {
			return from + i, true
		}
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= from && n <= to
}

// has reports whether a job runs in the minute of a time.
func (w when) has(t time.Time) bool {
	day := w.days&(1<<t.Day()) != 0
	weekday := w.weekdays&(1<<int(t.Weekday())) != 0
	if w.anyDay {
		day = day && weekday
	} else {
		day = day || weekday
	}
	return day && w.months&(1<<int(t.Month())) != 0 && w.hours&(1<<t.Hour()) != 0 && w.minutes&(1<<t.Minute()) != 0
}

// Next returns the first minute after a time in which a job runs. Zero: there is none within eight
// years, in which each date and weekday that exists has come.
func (j Job) Next(after time.Time) time.Time {
	if j.Boot {
		return time.Time{}
	}
	w, t := j.at, after.Truncate(time.Minute).Add(time.Minute)
	for end := after.AddDate(8, 0, 0); t.Before(end); {
		midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
		day := w
		day.hours, day.minutes = 1<<24-1, 1<<60-1
		if !day.has(midnight) {
			t = midnight.AddDate(0, 0, 1)
			continue
		}
		if w.hours&(1<<t.Hour()) == 0 {
			t = t.Truncate(time.Minute).Add(time.Duration(60-t.Minute()) * time.Minute)
			continue
		}
		if rest := w.minutes >> t.Minute(); rest != 0 {
			return t.Add(time.Duration(bits.TrailingZeros64(rest)) * time.Minute)
		}
		t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
	}
	return time.Time{}
}
