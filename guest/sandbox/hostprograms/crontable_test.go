package hostprograms

import (
	"strings"
	"testing"
	"time"
)

// Times of jobs (crontab(5)). They count from a Sunday.
func TestNextTimeOfAJob(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 30, 45, 0, time.UTC)
	for spec, want := range map[string]string{
		"* * * * *":         "2026-03-01 12:31",
		"*/7 * * * *":       "2026-03-01 12:35",
		"5-20/5,59 * * * *": "2026-03-01 12:59",
		"30 12 * * *":       "2026-03-02 12:30",
		"0 0 1 * *":         "2026-04-01 00:00",
		"0 0 31 * *":        "2026-03-31 00:00",
		"0 0 29 feb *":      "2028-02-29 00:00",
		"0 0 30 2 *":        "",
		"0 4 * * mon-FRI":   "2026-03-02 04:00",
		"0 4 * * 7":         "2026-03-08 04:00",
		"0 4 13 * 5":        "2026-03-06 04:00", // either day
		"0 4 */10 * 6":      "2026-03-21 04:00", // both
		"0 4 1-7 * *":       "2026-03-02 04:00",
		"40 13 * jan,dec *": "2026-12-01 13:40",
		"@hourly":           "2026-03-01 13:00",
		"@weekly":           "2026-03-08 00:00",
		"@yearly":           "2027-01-01 00:00",
		"15 10/4 * * *":     "2026-03-01 14:15",
	} {
		jobs, err := ParseCrontab(spec+" x\n", false)
		if err != nil || len(jobs) != 1 {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		got := ""
		if at := jobs[0].Next(from); !at.IsZero() {
			got = at.Format("2006-01-02 15:04")
		}
		if got != want {
			t.Errorf("%s runs at %q, want %q", spec, got, want)
		}
	}
	zone := time.FixedZone("half", 5*3600+1800)
	jobs, err := ParseCrontab("0 * * * * x\n", false)
	if err != nil {
		t.Fatal(err)
	}
	if got := jobs[0].Next(from.In(zone)).UTC().Format("15:04"); got != "13:30" {
		t.Errorf("the next full hour of UTC+5:30 is at %s UTC, want 13:30", got)
	}
}

func TestBadCrontabs(t *testing.T) {
	for text, want := range map[string]string{
		"60 * * * * x":                           "1: bad minute",
		"\n* 24 * * * x":                         "2: bad hour",
		"* * 0 * * x":                            "1: bad day-of-month",
		"* * * 13 * x":                           "1: bad month",
		"* * * * fry x":                          "1: bad day-of-week",
		"5-1 * * * * x":                          "1: bad minute",
		"*/0 * * * * x":                          "1: bad minute",
		"1,,2 * * * * x":                         "1: bad minute",
		"* * * * *":                              "1: bad command",
		"@never x":                               "1: bad time specifier",
		"*":                                      "1: bad hour",
		strings.Repeat("@reboot x\n", maxJobs+1): "1025: more than 1024 jobs",
	} {
		if _, err := ParseCrontab(text, false); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	if _, err := ParseCrontab("* * * * *\n", true); err == nil || err.Error() != "1: bad username" {
		t.Errorf("a system's job without a user: %v", err)
	}
}

func FuzzParseCrontab(f *testing.F) {
	f.Add("SHELL = /bin/sh\n*/5 1-3 * jan 7 root x % y\n@reboot root z\n", int64(1700000000))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		at := time.Unix(seconds%(1<<33), 0).UTC()
		for _, system := range []bool{true, false} {
			jobs, err := ParseCrontab(text, system)
			if err != nil {
				continue
			}
			for _, j := range jobs[:min(len(jobs), 4)] {
				if next := j.Next(at); !next.IsZero() && (!next.After(at) || !j.at.has(next)) {
					t.Errorf("after %v comes %v", at, next)
				}
			}
		}
	})
}

func FuzzAssign(f *testing.F) {
	f.Add("A=\"$B ${C:-d}\" 'x'\nexport A\nD=$(x)`y`\\\n")
	f.Fuzz(func(_ *testing.T, text string) {
		to := map[string]string{}
		_ = assign(text, to) // it says what it does not read
		_ = Cmdline(text)
		_, _ = normalRule(append([]string{"-a"}, auditWords(text)...)) // as above
	})
}
