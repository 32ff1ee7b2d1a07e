package sandbox

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inMemory is a Store.
type inMemory struct{ b []byte }

func (m *inMemory) Load() ([]byte, error) { return m.b, nil }
func (m *inMemory) Save(b []byte) error   { m.b = b; return nil }

const cronTable = `SHELL=/bin/bash
MAILTO=""
# MINUTE HOUR DAY MONTH WEEKDAY USER COMMAND
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
25 6	* * *	root	cd / && run-parts --report /etc/cron.daily
*/20 1 * * * bob a % b \% c
`

// Jobs run in the system's time, and cron looks for new ones once a minute, as cron(8) does.
func TestCronRunsJobsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		s := New(Config{Base: Tree{}, Store: &inMemory{}, Now: time.Now, Report: func(l string) { told = append(told, l) }})
		put := func(files Tree) {
			if err := s.Put(files); err != nil {
				t.Fatal(err)
			}
		}
		put(Tree{
			"etc/passwd":          File(0o644, "root:x:0:0:root:/root:/bin/bash\nbob:x:1000:1000::/home/bob:/bin/sh\n"),
			"etc/crontab":         File(0o644, cronTable),
			"etc/cron.daily/job":  File(0o755, "#!/bin/sh\n"),
			"etc/cron.hourly/.no": File(0o755, "#!/bin/sh\n"),
			"etc/cron.d/boot":     File(0o644, "CRON_TZ=Asia/Tokyo\n@reboot root boot\n@daily nobody never\n"),
			"etc/cron.d/not.this": File(0o644, "* * * * * root x\n"),
			"etc/cron.d/open":     File(0o666, "* * * * * root x\n"),
			"etc/cron.d/bad":      File(0o644, "* * * * root\n\n61 * * * * root x\n"),
		})
		var ran []string
		begin := time.Now() // midnight, a Saturday
		ctx, cancel := context.WithCancel(t.Context())
		d := &cronDaemon{s: s, ctx: ctx, quit: ctx}
		d.start = func(j cronJob) {
			ran = append(ran, fmt.Sprintf("%s %s: %s", time.Since(begin), j.name, j.Command))
			if j.Command == "a " && (j.Input != " b % c\n" || !slices.Contains(j.Env, "SHELL=/bin/bash") || j.uid != 1000) {
				t.Errorf("bob's job is %+v", j)
			}
		}
		d.begin()
		<-time.After(90*time.Minute + 30*time.Second)
		put(Tree{"var/spool/cron/crontabs/bob": File(0o600, "* * * * * each\n30 1 * * * past\n31 1 * * sat x\n32 1 * * fri never\n")})
		<-time.After(2 * time.Minute)
		if err := s.Remove("var/spool/cron/crontabs/bob"); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Hour)
		cancel()
		<-time.After(24 * time.Hour)
		again, stop := context.WithCancel(t.Context())
		(&cronDaemon{s: s, ctx: again, quit: again, start: d.start, told: d.told}).begin()
		stop()
		want := []string{
			"0s root: boot", "1h0m0s bob: a ", "1h20m0s bob: a ", "1h31m0s bob: each", "1h31m0s bob: x", "1h32m0s bob: each", "1h40m0s bob: a ", "6h25m0s root: cd / && run-parts --report /etc/cron.daily",
		}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Error(diff)
		}
		wantTold := []string{
			"cron: Error: /etc/cron.d/bad:1: bad day-of-week; this crontab file will be ignored", "cron: CRON_TZ= has no effect here: /etc/cron.d/boot", "cron: (nobody) ORPHAN (no passwd entry): /etc/cron.d/boot",
			"cron: (*system*open) INSECURE MODE (group/other writable, or not root's): /etc/cron.d/open",
		}
		if diff := cmp.Diff(wantTold, told); diff != "" {
			t.Error(diff)
		}
	})
}

// A cron without a job wakes at nothing, and the wait for one makes no clock jump.
func TestCronWaitsLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		s := New(Config{Base: Tree{}, Store: &inMemory{}, Now: time.Now, After: func(d time.Duration, do func()) func() bool {
			waits = append(waits, d)
			return time.AfterFunc(d, do).Stop
		}, Sleep: func(context.Context, time.Duration) error { t.Error("it sleeps"); return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		d := &cronDaemon{s: s, ctx: ctx, quit: ctx, start: func(j cronJob) { t.Errorf("%s runs", j.Command) }}
		d.begin()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if len(waits) != 0 {
			t.Errorf("without a job it waits for %v", waits)
		}
		if err := s.Put(Tree{"etc/passwd": File(0o644, "root:x:0:0:root:/root:/bin/bash\n"), "etc/crontab": File(0o644, "17 1 * * * root x\n")}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		cancel()
		if want := []time.Duration{time.Minute, 76 * time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("it waits for %v, want %v", waits, want)
		}
	})
}
