package sandbox

import (
	"testing"
	"time"
)

// The times are those of systemd-analyze calendar (systemd 252).
func TestCalendarEvents(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"daily": "2026-01-02 00:00:00", "weekly": "2026-01-05 00:00:00", "monthly": "2026-02-01 00:00:00", "quarterly": "2026-04-01 00:00:00",
		"yearly": "2027-01-01 00:00:00", "hourly": "2026-01-01 01:00:00", "Mon..Fri *-*-* 09:30": "2026-01-01 09:30:00", "Sat,Sun 12:05": "2026-01-03 12:05:00",
		"*-*-1/7 04:00:00": "2026-01-01 04:00:00", "*:0/15": "2026-01-01 00:15:00", "*-*-* *:0/7:30": "2026-01-01 00:00:30", "*-02~03": "2026-02-26 00:00:00",
		"Mon *-05~07/1": "2026-05-25 00:00:00", "*-*~1": "2026-01-31 00:00:00", "*-1,6-13..20/3 1,2:30": "2026-01-13 01:30:00", "Wed,Fri..Sun 00:00": "2026-01-02 00:00:00",
		"*-*-31 10:00": "2026-01-31 10:00:00", "*-02-29": "2028-02-29 00:00:00", "05:40:23.42": "2026-01-01 05:40:23", "daily Europe/Berlin": "2026-01-01 23:00:00",
		"*-*-* 8..18/2:00": "2026-01-01 08:00:00", "10-15": "2026-10-15 00:00:00", "@1800000000": "2027-01-15 08:00:00", "mon": "2026-01-05 00:00:00", "*:*:*": "2026-01-01 00:00:01",
		"*-*-* 00/6:00:00 UTC": "2026-01-01 06:00:00", "27-03-04": "2027-03-04 00:00:00",
		"2026-03-29 02:30 Europe/Berlin": "never", "Thu,Fri 2012-*-1..5 11:12:13": "never", "*-02-30": "never",
		"*-*-* 25:00": "", "foo": "", "*-13-01": "", "12": "", "": "", "2027-02-*~1 03:00": "", "*:0/0": "", "mon..foo": "", "@x": "", "*-*-* 1:2:3:4": "", "a b c d": "", "daily Nowhere/Land": "",
	} {
		c, err := parseCalendar(text, time.UTC)
		got := ""
		if err == nil {
			got = "never"
			if at, ok := c.next(from); ok {
				got = at.UTC().Format(time.DateTime)
			}
		}
		if got != want {
			t.Errorf("%q elapses at %q, %v, want %q", text, got, err, want)
		}
	}
}

// FuzzCalendar reads expressions of any form: what elapses does so later than the time that is asked
// for.
func FuzzCalendar(f *testing.F) {
	for _, text := range []string{"Mon..Fri *-*-* 09:30", "*-02~07/1 *:0/15 Europe/Berlin", "@1", "*-*-* 2:30 America/Sao_Paulo", "1970..2199/3-*-*"} {
		f.Add(text)
	}
	from := time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCalendar(text, time.UTC)
		if err != nil {
			return
		}
		if at, ok := c.next(from); ok && !at.After(from) {
			t.Errorf("%q elapses at %v after %v", text, at, from)
		}
	})
}
