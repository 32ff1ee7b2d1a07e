package main

import (
	"strings"
	"testing"
	"time"
)

// addAll counts work, after each of which some real time has passed.
func addAll(p *progress, clock *time.Time, counts []int, every time.Duration) {
	for _, n := range counts {
		*clock = clock.Add(every)
		p.add(n)
	}
	p.end()
}

// Bulk work reports its count: nothing when it is quick, a line now and then in a
// pipe, and the last count once, which is the total.
func TestProgressCounts(t *testing.T) {
	ones := func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = 1
		}
		return out
	}
	for _, tt := range []struct {
		name     string
		total    int
		terminal bool
		counts   []int
		every    time.Duration
		want     string
	}{
		{"quick work shows nothing", 5, false, ones(5), 100 * time.Millisecond, ""},
		{"quick work shows nothing on a terminal", 5, true, ones(5), 100 * time.Millisecond, ""},
		{"a line in ten seconds in a pipe", 30, false, ones(30), time.Second, "1 of 30 hosts\n11 of 30 hosts\n21 of 30 hosts\n30 of 30 hosts\n"},
		{"in place on a terminal", 4, true, ones(4), time.Second, "\r\x1b[K1 of 4 hosts\r\x1b[K2 of 4 hosts\r\x1b[K3 of 4 hosts\r\x1b[K4 of 4 hosts\n"},
		{"at most every tenth of a second on a terminal", 43, true, ones(43), 50 * time.Millisecond, terminalCounts()},
		{"counts of several", 40, false, []int{7, 13, 20}, 10 * time.Second, "7 of 40 hosts\n20 of 40 hosts\n40 of 40 hosts\n"},
		{"work that stops early ends with what was done", 9, false, []int{4}, 2 * time.Second, "4 of 9 hosts\n4 of 9 hosts\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			p := newProgress(&out, "hosts", tt.total)
			p.terminal, p.now, p.began = tt.terminal, func() time.Time { return clock }, clock
			addAll(p, &clock, tt.counts, tt.every)
			if got := out.String(); got != tt.want {
				t.Errorf("progress of %v every %v writes %q, want %q", tt.counts, tt.every, got, tt.want)
			}
		})
	}
}

// terminalCounts are the counts of 43 steps of 50 ms: from the first second on every
// second one.
func terminalCounts() string {
	out := ""
	for n := 20; n < 43; n += 2 {
		out += "\r\x1b[K" + count(n) + " of 43 hosts"
	}
	return out + "\r\x1b[K43 of 43 hosts\n"
}

func count(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }

// A status line is one line in place on a terminal, and ends once.
func TestStatusLine(t *testing.T) {
	var out strings.Builder
	s := statusLine{w: &out, terminal: true}
	for _, text := range []string{"rebuild 1 %", "rebuild 1 %", "rebuild 2 %"} {
		s.set(text)
	}
	s.end()
	if want := "\r\x1b[Krebuild 1 %\r\x1b[Krebuild 2 %\n"; out.String() != want {
		t.Errorf("on a terminal %q, want %q", out.String(), want)
	}
	out.Reset()
	pipe := statusLine{w: &out}
	pipe.set("rebuild 1 %")
	pipe.set("rebuild 2 %") // within five seconds
	pipe.end()
	if want := "rebuild 1 %\n"; out.String() != want {
		t.Errorf("in a pipe %q, want %q", out.String(), want)
	}
}
