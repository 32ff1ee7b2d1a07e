package sandbox

import (
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox/hostprograms"
)

// This file has cron(8). It runs in this process, in the system's time: a server at rest has neither a
// process nor a goroutine for it, and no timer without a job.

// daemonNames are the names of programs of services that run in this process: cron's.
var daemonNames = []string{"cron", "crond"}

// Bounds of what cron does for the user of a system: the jobs of all crontabs, and those that run at
// a time.
const (
	maxCronJobs    = 4096
	maxCrontabs    = 256
	maxCronRunning = 32
)

// startCron runs the jobs of /etc/crontab, /etc/cron.d and the users' crontabs until the unit stops.
func (s *System) startCron(u unit) (*started, error) {
	x := newIdle(u)
	x.sub, x.works = "running", &works{}
	x.ctx, x.cancel = context.WithCancelCause(context.Background())
	x.quit, x.stop = context.WithCancel(x.ctx)
	if ok, err := s.begin(x); !ok {
		return nil, err
	}
	d := &cronDaemon{s: s, ctx: x.ctx, quit: x.quit}
	d.start = d.run
	d.begin()
	return x, nil
}

// cronDaemon is a cron that runs.
type cronDaemon struct {
	s     *System
	ctx   context.Context // it ends when the system loses its power: jobs outlive cron
	quit  context.Context
	start func(cronJob) // run, or a test's

	mu      sync.Mutex
	last    time.Time   // those due until then were started
	due     time.Time   // when the first known job is due; zero: there is none
	looks   bool        // it looks at the next minute, whatever there is to do
	cancel  func() bool // cancels the next look; nil: there is none
	running int
	told    map[string]bool
}

// begin starts the jobs of a boot, and waits for the others.
func (d *cronDaemon) begin() {
	d.last = d.s.now()
	stop := d.s.Watch(func(Tree) { d.changed() })
	context.AfterFunc(d.quit, func() {
		stop()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.cancel != nil {
			d.cancel()
		}
	})
	jobs := d.read()
	d.s.values.Lock()
	again := d.s.values.cron // a restart of cron is no boot
	d.s.values.cron = true
	d.s.values.Unlock()
	for _, j := range jobs {
		if j.Boot && !again {
			d.start(j)
		}
	}
	d.await(jobs)
}

// changed looks for jobs at the next minute: files have changed. As cron does, it looks once a minute.
func (d *cronDaemon) changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.looks {
		d.looks = true
		now := d.s.now()
		if d.due.IsZero() || d.due.After(now) { // a new job was not due before
			d.last = now
		}
		d.lookAfter(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
	}
}

// await looks again when the first of some jobs is due.
func (d *cronDaemon) await(jobs []cronJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, at := d.last, time.Time{}
	for _, j := range jobs {
		if next := j.Next(last); !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	if d.due = at; !at.IsZero() && !d.looks {
		d.lookAfter(at.Sub(d.s.now()))
	}
}

// lookAfter looks after a time. The caller holds d.mu.
func (d *cronDaemon) lookAfter(wait time.Duration) {
	if d.cancel != nil {
		d.cancel()
	}
	if d.quit.Err() != nil {
		return
	}
	look := func() { d.s.goOn(d.look) }
	if d.s.c.After != nil {
		d.cancel = d.s.c.After(wait, look)
		return
	}
	ctx, cancel := context.WithCancel(d.quit)
	d.cancel = func() bool { cancel(); return true }
	go func() {
		if d.s.c.Sleep(ctx, wait) == nil && ctx.Err() == nil {
			look()
		}
	}()
}

// look starts the jobs that are due.
func (d *cronDaemon) look() {
	d.mu.Lock()
	d.looks = false
	d.mu.Unlock()
	if d.quit.Err() != nil {
		return
	}
	now := d.s.now().In(d.s.zone())
	jobs := d.read()
	d.mu.Lock()
	last := d.last.In(now.Location())
	d.last = now
	d.mu.Unlock()
	for _, j := range jobs {
		if next := j.Next(last); !next.IsZero() && !next.After(now) {
			d.start(j)
		}
	}
	d.await(jobs)
}

// cronJob is a job with the account that it runs as.
type cronJob struct {
	hostprograms.Job
	account
	groups []int
}

// tell reports a line once.
func (d *cronDaemon) tell(line string) {
	d.mu.Lock()
	told := d.told[line] || len(d.told) > maxCrontabs
	if !told {
		if d.told == nil {
			d.told = map[string]bool{}
		}
		d.told[line] = true
	}
	d.mu.Unlock()
	if !told && d.s.c.Report != nil {
		d.s.c.Report("cron: " + line)
	}
}

// cronName matches the names of files of /etc/cron.d and of scripts of run-parts(8).
var cronName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// read reads all crontabs.
func (d *cronDaemon) read() (out []cronJob) {
	err := d.s.files(func(f files) error {
		passwd, group := readIf(f, "etc/passwd"), readIf(f, "etc/group")
		add := func(file, owner string) {
			jobs, err := hostprograms.ParseCrontab(readIf(f, file), owner == "")
			if err != nil {
				d.tell("Error: /" + file + ":" + err.Error() + "; this crontab file will be ignored")
				return
			}
			for _, j := range jobs {
				for _, e := range j.Env { // cronie's
					if name, _, _ := strings.Cut(e, "="); name == "CRON_TZ" || name == "RANDOM_DELAY" {
						d.tell(name + "= has no effect here: /" + file)
					}
				}
				user := owner
				if owner == "" {
					user = j.User
				}
				a, ok := accountOf(passwd, user)
				switch {
				case !ok || a.name != user:
					d.tell("(" + user + ") ORPHAN (no passwd entry): /" + file)
				case idle(f, j.Command): // it would find nothing to run
				case len(out) < maxCronJobs:
					out = append(out, cronJob{j, a, groupsOf(group, a.name)})
				default:
					d.tell("more than 4096 jobs: the last ones are not run")
				}
			}
		}
		add("etc/crontab", "")
		for _, name := range namesOf(f, "etc/cron.d") {
			file := path.Join("etc/cron.d", name)
			if n, err := f.stat(file); err != nil || !cronName.MatchString(name) {
				continue
			} else if n.UID != 0 || n.Mode.Perm()&0o022 != 0 {
				d.tell("(*system*" + name + ") INSECURE MODE (group/other writable, or not root's): /" + file)
				continue
			}
			add(file, "")
		}
		spool := "var/spool/cron"
		if exists(f, "var/spool/cron/crontabs") {
			spool = "var/spool/cron/crontabs"
		}
		for _, name := range namesOf(f, spool) {
			if n, err := f.stat(path.Join(spool, name)); err == nil && n.Mode.IsRegular() && name[0] != '.' {
				add(path.Join(spool, name), name)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrClosed) {
		d.tell(err.Error())
	}
	return out
}

// namesOf returns the names in a directory, sorted; none if it cannot be read.
func namesOf(f files, dir string) []string {
	names, err := f.names(dir)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names[:min(len(names), maxCrontabs)]
}

// runParts is a command of Debian's /etc/crontab.
var runParts = regexp.MustCompile(`^(?:cd / && |test -x /usr/sbin/anacron \|\| [({] cd / && )run-parts --report (/etc/cron\.[a-z]+)(?:\)|; \})?$`)

// idle reports whether a command is one of those that run the scripts of a directory, which has none.
func idle(f files, command string) bool {
	m := runParts.FindStringSubmatch(strings.TrimSpace(command))
	return m != nil && !slices.ContainsFunc(namesOf(f, m[1]), func(name string) bool {
		n, err := f.stat(path.Join(m[1], name))
		return err == nil && cronName.MatchString(name) && n.Mode.IsRegular() && n.Mode.Perm()&0o111 != 0
	})
}

// run starts a job.
func (d *cronDaemon) run(j cronJob) {
	d.mu.Lock()
	d.running++
	many := d.running > maxCronRunning
	d.mu.Unlock()
	ended := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.running--
	}
	if many {
		ended()
		d.tell("(" + j.name + ") more than 32 jobs run: not run: " + j.Command)
		return
	}
	go func() {
		defer d.s.Guard()
		defer ended()
		env := lastAssignments(slices.Concat([]string{"HOME=" + j.home, "SHELL=/bin/sh", "PATH=/usr/bin:/bin"}, j.Env, []string{"LOGNAME=" + j.name, "USER=" + j.name}))
		shell, home := "/bin/sh", j.home
		for _, e := range env {
			if v, ok := strings.CutPrefix(e, "SHELL="); ok {
				shell = v
			}
			if v, ok := strings.CutPrefix(e, "HOME="); ok {
				home = v
			}
		}
		args := []string{shell, "-c", j.Command}
		if j.Input != "" {
			args = []string{"/bin/sh", "-c", `printf %s "$0" | "$1" -c "$2"`, j.Input, shell, j.Command}
		}
		var out counter
		a := &attributes{UMask: 0o022, As: j.uid > 0 || j.gid > 0, UID: j.uid, GID: j.gid, Groups: j.groups}
		code, err := d.s.Exec(d.ctx, Command{Args: args, Env: env, Dir: home, Stdout: &out, Stderr: &out, service: a})
		switch {
		case d.ctx.Err() != nil || errors.Is(err, ErrClosed):
		case err != nil:
			d.tell("(" + j.name + ") " + err.Error() + ": " + j.Command)
		case code == CodeCannotRun || code == CodeNotFound:
			d.tell("(" + j.name + ") not run: " + strings.TrimSpace(out.first.String()) + ": " + j.Command)
		case out.n > 0:
			d.tell("(" + j.name + ") info (No MTA installed, discarding output): " + j.Command)
		}
	}()
}

// counter counts the bytes of an output, and keeps its beginning.
type counter struct {
	mu    sync.Mutex
	n     int
	first strings.Builder
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const kept = 256
	c.n += len(b)
	c.first.Write(b[:min(len(b), kept-min(kept, c.first.Len()))])
	return len(b), nil
}
