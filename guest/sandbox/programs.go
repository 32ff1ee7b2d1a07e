package sandbox

import (
	"fmt"
	"strings"
)

// programNames are the names of programs.
var programNames = []string{"systemctl", "hostnamectl", "reboot", "poweroff"}

// programs are the implementations of systemctl, hostnamectl, reboot and poweroff: a function
// each that returns the program's output and its exit code.
var programs map[string]func(*System, []string) (string, int)

func init() { // the functions run commands, which look for programs
	programs = map[string]func(*System, []string) (string, int){
		"systemctl": systemctl, "hostnamectl": hostnamectl, "reboot": reboot, "poweroff": powerOff,
	}
}

// hostnamectl shows or sets the host name (hostnamectl(1)).
func hostnamectl(s *System, args []string) (string, int) {
	args = withoutOptions(args)
	if len(args) == 2 && (args[0] == "set-hostname" || args[0] == "hostname" || args[0] == "set") {
		if err := s.Put(Tree{"etc/hostname": File(0o644, args[1]+"\n")}); err != nil {
			return fail("hostnamectl", err)
		}
		return "", 0
	}
	b, err := s.readAtMost("etc/hostname", maxConfig)
	if err != nil {
		return fail("hostnamectl", err)
	}
	name := strings.TrimSpace(string(b))
	switch {
	case len(args) == 1 && args[0] == "hostname":
		return name + "\n", 0
	case len(args) == 0 || args[0] == "status":
		return " Static hostname: " + name + "\n", 0
	}
	return fmt.Sprintf("Unknown command verb %s: use status, or hostname [NAME].\n", args[0]), 1
}

// reboot and powerOff answer and then act, as programs that ask an init system do.
func reboot(s *System, _ []string) (string, int) { return s.leave(s.c.Reboot) }

func powerOff(s *System, _ []string) (string, int) { return s.leave(s.c.PowerOff) }

func (s *System) leave(do func()) (string, int) {
	if do == nil {
		return "this system has no power to control\n", 1
	}
	go func() {
		defer s.Guard()
		if err := s.Shutdown(); err != nil {
			s.report("shutdown: %v", err)
		}
		do()
	}()
	return "", 0
}

func fail(program string, err error) (string, int) { return fmt.Sprintf("%s: %v\n", program, err), 1 }

func withoutOptions(args []string) (out []string) {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// verbs are the commands of systemctl (systemctl(1)) that take units.
var verbs map[string]func(*System, string) (string, error)

func init() { // as programs
	verbs = map[string]func(*System, string) (string, error){
		"start":             func(s *System, u string) (string, error) { return "", s.startUnit(u) },
		"stop":              func(s *System, u string) (string, error) { return "", s.stopUnit(u) },
		"restart":           func(s *System, u string) (string, error) { return "", s.restartUnit(u) },
		"reload":            func(s *System, u string) (string, error) { return "", s.reloadUnit(u) },
		"reload-or-restart": func(s *System, u string) (string, error) { return "", s.restartUnit(u) },
		"enable":            func(s *System, u string) (string, error) { return "", s.enableUnit(u, true) },
		"disable":           func(s *System, u string) (string, error) { return "", s.enableUnit(u, false) },
		"show":              (*System).showUnit,
		"status":            (*System).showUnit,
		"reset-failed":      func(s *System, u string) (string, error) { s.units.forget(u); return "", nil },
		"cat":               (*System).catUnit,
	}
}

// Exit codes of systemctl's questions (systemctl(1), "Exit status").
const (
	codeInactive = 3
	codeDisabled = 1
)

// systemctl manages units (systemctl(1)).
func systemctl(s *System, args []string) (string, int) {
	now, quiet := false, false
	var words []string
	for _, a := range args {
		switch a {
		case "--now":
			now = true
		case "-q", "--quiet":
			quiet = true
		default:
			if !strings.HasPrefix(a, "-") {
				words = append(words, a)
			}
		}
	}
	if len(words) == 0 {
		return "systemctl: give a command: start, stop, restart, enable, disable, is-active, is-enabled, show, cat, daemon-reload\n", 1
	}
	verb, units := words[0], words[1:]
	if verb == "daemon-reload" || verb == "daemon-reexec" { // unit files are read when they are used
		return "", 0
	}
	out, code := "", 0
	for _, u := range units {
		u = unitName(u)
		if ask, ok := questions[verb]; ok {
			state, c := ask(s, u)
			if code = max(code, c); !quiet {
				out += state + "\n"
			}
			continue
		}
		do, ok := verbs[verb]
		if !ok {
			return fmt.Sprintf("Unknown command verb %s.\n", verb), 1
		}
		text, err := do(s, u)
		if err == nil && now && (verb == "enable" || verb == "disable") {
			if verb == "enable" {
				err = s.startUnit(u)
			} else {
				err = s.stopUnit(u)
			}
		}
		if out += text; err != nil {
			out, code = out+err.Error()+"\n", 1
		}
	}
	if len(units) == 0 {
		if p, ok := map[string]func(*System, []string) (string, int){"reboot": reboot, "poweroff": powerOff}[verb]; ok {
			return p(s, nil)
		}
		return fmt.Sprintf("systemctl: %s needs a unit\n", verb), 1
	}
	return out, code
}

// questions are answered by a state and an exit code.
var questions = map[string]func(*System, string) (string, int){
	"is-active": func(s *System, u string) (string, int) {
		state := s.units.state(u)
		switch {
		case running(state):
			return state, 0
		case state == "":
			state = stateInactive
		}
		return state, codeInactive
	},
	"is-enabled": func(s *System, u string) (string, int) {
		switch state, err := s.fileState(u); {
		case err != nil:
			return err.Error(), 1
		case state == "disabled" || state == "masked":
			return state, codeDisabled
		default:
			return state, 0
		}
	},
	"is-failed": func(s *System, u string) (string, int) {
		if s.units.state(u) == stateFailed {
			return stateFailed, 0
		}
		return "inactive", 1
	},
}

// unitName adds the type that systemctl assumes.
func unitName(u string) string {
	if strings.Contains(u, ".") {
		return u
	}
	return u + ".service"
}

// BuiltIn returns the words of a line of a shell that is one program of this package with
// plain arguments. Exec runs it without a process.
func BuiltIn(line string) (words []string, ok bool) {
	if strings.ContainsAny(line, "|&;<>()$`\\\"'*?[]#~=%{}\n") {
		return nil, false
	}
	words = strings.Fields(line)
	if len(words) == 0 {
		return nil, false
	}
	_, ok = programs[words[0]]
	return words, ok
}
