package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file has the programs that end a boot: reboot(8), poweroff(8), halt(8) and shutdown(8). A
// halted server is switched off: the lab has no state in which a server has power and no system
// that it came to by itself.

// pending is the shutdown that shutdown(8) has scheduled.
type pending struct {
	sync.Mutex
	cancel context.CancelFunc // nil: none is
	closed bool
}

// stop cancels it, and reports whether there was one.
func (p *pending) stop() bool {
	p.Lock()
	defer p.Unlock()
	if p.cancel == nil {
		return false
	}
	p.cancel()
	p.cancel = nil
	return true
}

// close cancels it for good.
func (p *pending) close() {
	p.stop()
	p.Lock()
	defer p.Unlock()
	p.closed = true
}

// powerOptions are the options of halt(8) with the action of each; "" for those that
// change nothing here.
var powerOptions = map[string]string{
	"--help": "help", "--halt": "poweroff", "-p": "poweroff", "--poweroff": "poweroff", "--reboot": "reboot", "-w": "nothing", "--wtmp-only": "nothing",
	"-f": "", "--force": "", "-d": "", "--no-wtmp": "", "-n": "", "--no-sync": "", "--no-wall": "",
}

func reboot(s *System, args []string) (string, int) { return s.power("reboot", "reboot", args) }

func powerOff(s *System, args []string) (string, int) { return s.power("poweroff", "poweroff", args) }

func halt(s *System, args []string) (string, int) { return s.power("halt", "poweroff", args) }

// power ends the boot. It answers and then acts, as a program that asks an init system does.
func (s *System) power(name, do string, args []string) (string, int) {
	for _, a := range args {
		switch meant, ok := powerOptions[a]; {
		case !strings.HasPrefix(a, "-"): // reboot(2), LINUX_REBOOT_CMD_RESTART2: for the firmware
			s.report("%s %s: the argument has no effect in a server of the lab", name, a)
		case !ok:
			return printed("", fmt.Sprintf("%s: unrecognized option '%s'\n", name, a)), 1
		case meant != "":
			do = meant
		}
	}
	switch do {
	case "help":
		return fmt.Sprintf("%s [OPTIONS...]\n\n     --help      Show this help\n     --halt      Switch the server off\n  -p --poweroff  Switch the server off\n     --reboot    Restart the server\n"+
			"  -w --wtmp-only Do nothing else than to write a record\n  -f --force     As without it\n", name), 0
	case "nothing":
		return "", 0
	case "reboot":
		return s.leave(s.c.Reboot)
	}
	return s.leave(s.c.PowerOff)
}

// leave ends the services in order, and then the boot.
func (s *System) leave(do func()) (string, int) {
	if do == nil {
		return printed("", "this system has no power to control\n"), 1
	}
	s.pending.stop()
	go s.end(do)
	return "", 0
}

func (s *System) end(do func()) {
	defer s.Guard()
	if err := s.Shutdown(); err != nil {
		s.report("shutdown: %v", err)
	}
	do()
}

// shutdown schedules the end of the boot (shutdown(8)).
func shutdown(s *System, args []string) (string, int) {
	do, cancel, warn := s.c.PowerOff, false, false
	var words []string
	for _, a := range args {
		switch a {
		case "--help":
			return "shutdown [OPTIONS...] [TIME] [WALL...]\n\n     --help        Show this help\n  -H --halt        Switch the server off\n  -P --poweroff    Switch the server off\n" +
				"  -r --reboot      Restart the server\n  -h               Switch the server off\n  -k               Show the message alone\n     --no-wall     As without it\n  -c               Cancel a shutdown\n", 0
		case "-r", "--reboot":
			do = s.c.Reboot
		case "-h", "-P", "--poweroff", "-H", "--halt":
			do = s.c.PowerOff
		case "-k":
			warn = true
		case "-c":
			cancel = true
		case "--no-wall", "-f", "-F", "-t":
		default:
			if strings.HasPrefix(a, "-") {
				return printed("", fmt.Sprintf("shutdown: unrecognized option '%s'\n", a)), 1
			}
			words = append(words, a)
		}
	}
	if cancel {
		s.pending.stop()
		return "", 0
	}
	when := "+1"
	if len(words) > 0 {
		when = words[0]
		if text := strings.Join(words[1:], " "); text != "" {
			s.report("%s", text)
		}
	}
	delay, err := delayOf(when, s.now())
	switch {
	case err != nil:
		return printed("", fmt.Sprintf("Failed to parse time specification: %s: %v\n", when, err)), 1
	case warn:
		return "", 0
	case delay == 0 || do == nil:
		return s.leave(do)
	}
	if err := s.schedule(delay, do); err != nil {
		return fail("shutdown", err)
	}
	return printed("", fmt.Sprintf("Shutdown scheduled for %s, use 'shutdown -c' to cancel.\n", stampOf(s.now().Add(delay)))), 0
}

// delayOf returns how long a time of shutdown(8) is away: "now", "+MINUTES" or "HH:MM".
func delayOf(when string, now time.Time) (time.Duration, error) {
	if when == "now" {
		return 0, nil
	}
	if hour, minute, ok := strings.Cut(when, ":"); ok {
		h, err1 := strconv.ParseUint(hour, 10, 8)
		m, err2 := strconv.ParseUint(minute, 10, 8)
		if err1 != nil || err2 != nil || h > 23 || m > 59 {
			return 0, fmt.Errorf("give an hour of 0 to 23 and a minute of 0 to 59")
		}
		at := time.Date(now.Year(), now.Month(), now.Day(), int(h), int(m), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at.Sub(now), nil
	}
	const most = 366 * 24 * 60
	minutes, err := strconv.ParseUint(strings.TrimPrefix(when, "+"), 10, 32)
	if err != nil || minutes > most {
		return 0, fmt.Errorf("give now, +MINUTES of at most a year, or HH:MM")
	}
	return time.Duration(minutes) * time.Minute, nil
}

// schedule ends the boot after a time of the lab. It replaces an earlier schedule.
func (s *System) schedule(delay time.Duration, do func()) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.pending.stop()
	s.pending.Lock()
	defer s.pending.Unlock()
	if s.pending.closed {
		cancel()
		return ErrClosed
	}
	s.pending.cancel = cancel
	go func() {
		defer cancel()
		if s.c.Sleep(ctx, delay) == nil && ctx.Err() == nil {
			s.end(do)
		}
	}()
	return nil
}
