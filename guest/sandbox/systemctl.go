package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Exit codes of systemctl (systemctl(1), "Exit status").
const (
	codeFailed   = 1
	codeInactive = 3
	codeNoUnit   = 4
	codeNotFound = 5
)

// ctl is a call of systemctl.
type ctl struct {
	s       *System
	verb    string
	args    []string            // behind the verb, units mostly
	options map[string][]string // values of options, by their long names; a flag has ""
	out     strings.Builder
	err     strings.Builder
	code    int
}

func (c *ctl) has(option string) bool { return len(c.options[option]) > 0 }

// list returns the values of an option, which may have several, with commas between them.
func (c *ctl) list(option string) (out []string) {
	for _, v := range c.options[option] {
		out = append(out, strings.FieldsFunc(v, func(r rune) bool { return r == ',' })...)
	}
	return out
}

func (c *ctl) print(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// complain writes to standard error, where systemctl also says what it has done.
func (c *ctl) complain(format string, args ...any) { fmt.Fprintf(&c.err, format+"\n", args...) }

// fails complains, and is the last word on the exit code.
func (c *ctl) fails(code int, format string, args ...any) {
	c.complain(format, args...)
	c.code = code
}

// valued are options with a value, and flags those without: their long names by all names.
var (
	valued = map[string]string{
		"-t": "type", "--type": "type", "-p": "property", "--property": "property", "-P": "value-of", "--state": "state", "-s": "signal", "--signal": "signal",
		"-n": "lines", "--lines": "lines", "-o": "output", "--output": "output", "--kill-whom": "kill-whom", "--kill-who": "kill-whom", "--job-mode": "job-mode",
		"--preset-mode": "preset-mode", "--what": "what", "--timestamp": "timestamp", "--legend": "legend", "--message": "message", "--check-inhibitors": "check-inhibitors",
		"-H": "host", "--host": "host", "-M": "machine", "--machine": "machine", "--root": "root", "--image": "root", "--kill-value": "kill-value",
	}
	flags = map[string]string{
		"--now": "now", "--no-block": "no-block", "--wait": "wait", "-q": "quiet", "--quiet": "quiet", "--no-pager": "no-pager", "--no-legend": "no-legend", "--plain": "plain",
		"-a": "all", "--all": "all", "--system": "system", "--user": "user", "--global": "user", "--force": "force", "-f": "force", "--runtime": "runtime", "--value": "value",
		"--failed": "failed", "--full": "full", "-l": "full", "-r": "recursive", "--recursive": "recursive", "--reverse": "reverse", "--after": "after", "--before": "before",
		"--no-ask-password": "no-ask-password", "--no-wall": "no-wall", "--no-reload": "no-reload", "--show-types": "show-types", "--dry-run": "dry-run", "-T": "show-transaction",
		"--show-transaction": "show-transaction", "--with-dependencies": "with-dependencies", "-i": "ignore-inhibitors", "--ignore-inhibitors": "ignore-inhibitors",
		"--ignore-dependencies": "ignore-dependencies", "--fail": "fail", "--irreversible": "irreversible", "--no-warn": "no-warn", "-h": "help", "--help": "help", "--version": "version",
		"--firmware-setup": "firmware-setup", "--marked": "marked", "--read-only": "read-only", "--mkdir": "mkdir",
	}
)

// parse reads the options, which may stand before and behind the verb.
func (c *ctl) parse(args []string) bool {
	var words []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value, assigned := strings.Cut(a, "=")
		switch {
		case a == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
		case a == "" || a[0] != '-' || a == "-" || a == "-.mount" || a == "-.slice":
			words = append(words, a)
		case strings.HasPrefix(a, "--") && valued[name] != "":
			if !assigned {
				if i++; i == len(args) {
					c.fails(codeFailed, "systemctl: option '%s' requires an argument", name)
					return false
				}
				value = args[i]
			}
			c.options[valued[name]] = append(c.options[valued[name]], value)
		case strings.HasPrefix(a, "--"):
			if flags[a] == "" {
				c.fails(codeFailed, "systemctl: unrecognized option '%s'", a)
				return false
			}
			c.options[flags[a]] = []string{""}
		default:
			for rest := a[1:]; rest != ""; rest = rest[1:] {
				short := "-" + rest[:1]
				if long := valued[short]; long != "" {
					value := rest[1:]
					if value == "" {
						if i++; i == len(args) {
							c.fails(codeFailed, "systemctl: option requires an argument -- '%s'", rest[:1])
							return false
						}
						value = args[i]
					}
					c.options[long] = append(c.options[long], value)
					break
				}
				if flags[short] == "" {
					c.fails(codeFailed, "systemctl: invalid option -- '%s'", rest[:1])
					return false
				}
				c.options[flags[short]] = []string{""}
			}
		}
	}
	if len(words) > 0 {
		c.verb, c.args = words[0], words[1:]
	}
	return true
}

// systemctl manages units (systemctl(1)).
func systemctl(s *System, args []string) (string, int) {
	c := &ctl{s: s, options: map[string][]string{}}
	if c.parse(args) {
		c.call()
	}
	return printed(c.out.String(), c.err.String()), c.code
}

// verb is a command of systemctl.
type verb struct {
	least, most int // how many arguments it takes; most < 0: any number
	do          func(*ctl)
}

var verbs map[string]verb

func init() { // as programs
	verbs = map[string]verb{
		"start": {1, -1, (*ctl).start}, "stop": {1, -1, (*ctl).stop}, "restart": {1, -1, (*ctl).restart}, "reload": {1, -1, (*ctl).reload},
		"try-restart": {1, -1, (*ctl).restart}, "condrestart": {1, -1, (*ctl).restart},
		"reload-or-restart": {1, -1, (*ctl).reload}, "force-reload": {1, -1, (*ctl).reload},
		"try-reload-or-restart": {1, -1, (*ctl).reload}, "reload-or-try-restart": {1, -1, (*ctl).reload},
		"isolate": {1, 1, (*ctl).isolate}, "default": {0, 0, (*ctl).isolate}, "rescue": {0, 0, (*ctl).isolate}, "emergency": {0, 0, (*ctl).isolate},
		"kill": {1, -1, (*ctl).kill}, "reset-failed": {0, -1, (*ctl).resetFailed},
		"is-active": {1, -1, (*ctl).isActive}, "is-failed": {0, -1, (*ctl).isFailed}, "is-enabled": {1, -1, (*ctl).isEnabled},
		"show": {0, -1, (*ctl).show}, "status": {0, -1, (*ctl).status}, "cat": {1, -1, (*ctl).cat}, "help": {1, -1, (*ctl).help},
		"list-units": {0, -1, (*ctl).listUnits}, "list-unit-files": {0, -1, (*ctl).listFiles}, "list-dependencies": {0, -1, (*ctl).listDependencies},
		"list-jobs": {0, -1, (*ctl).listJobs}, "list-sockets": {0, -1, (*ctl).listNone}, "list-machines": {0, -1, (*ctl).listNone}, "list-automounts": {0, -1, (*ctl).listNone},
		"list-paths": {0, -1, (*ctl).listPaths}, "list-timers": {0, -1, (*ctl).listTimers},
		"enable": {1, -1, (*ctl).enable}, "disable": {1, -1, (*ctl).disable}, "reenable": {1, -1, (*ctl).reenable}, "preset": {1, -1, (*ctl).reenable},
		"mask": {1, -1, (*ctl).mask}, "unmask": {1, -1, (*ctl).unmask}, "link": {1, -1, (*ctl).link}, "revert": {1, -1, (*ctl).revert},
		"add-wants": {2, -1, (*ctl).addWants}, "add-requires": {2, -1, (*ctl).addWants}, "set-property": {2, -1, (*ctl).setProperty},
		"get-default": {0, 0, (*ctl).getDefault}, "set-default": {1, 1, (*ctl).setDefault},
		"is-system-running": {0, 0, (*ctl).isSystemRunning}, "daemon-reload": {0, 0, (*ctl).daemonReload}, "daemon-reexec": {0, 0, (*ctl).daemonReload},
		"show-environment": {0, 0, (*ctl).showEnvironment},
		"reboot":           {0, 1, (*ctl).power}, "poweroff": {0, 0, (*ctl).power}, "halt": {0, 0, (*ctl).power},
	}
}

// refusedVerbs are verbs of systemctl that are not done, and why.
var refusedVerbs = map[string]string{
	"edit": "Cannot edit units if not on a tty: write /etc/systemd/system/UNIT.d/NAME.conf, and call daemon-reload.", "preset-all": "preset-all is not done here: name the units of preset",
	"suspend": "Call to Suspend failed: Sleep verb 'suspend' not supported", "hibernate": "Call to Hibernate failed: Sleep verb 'hibernate' not supported",
	"hybrid-sleep": "Call to HybridSleep failed: Sleep verb 'hybrid-sleep' not supported", "suspend-then-hibernate": "Call to SuspendThenHibernate failed: Sleep verb not supported",
	"kexec": "kexec is not done here: use reboot", "switch-root": "switch-root is not done here", "exit": "exit is for containers: use poweroff",
	"set-environment": "set-environment is not done here: use Environment= of a unit", "unset-environment": "unset-environment is not done here: use UnsetEnvironment= of a unit",
	"import-environment": "import-environment is not done here: use Environment= of a unit", "freeze": "freeze is not done here: use kill --signal=STOP", "thaw": "thaw is not done here: use kill --signal=CONT",
	"clean": "clean is not done here: remove the directories of the unit", "bind": "bind is not done here", "mount-image": "mount-image is not done here",
	"cancel": "there are no jobs to cancel", "log-level": "log-level is not done here", "log-target": "log-target is not done here", "service-watchdogs": "service-watchdogs is not done here",
}

func (c *ctl) call() {
	switch {
	case c.has("help"):
		c.print("systemctl [OPTIONS...] COMMAND ...\n\nQuery or send control commands to the system manager: see systemctl(1).\n")
		return
	case c.has("version"):
		c.print("systemd 252 (metalab)\n")
		return
	case c.has("user"), c.has("host"), c.has("machine"):
		c.fails(codeFailed, "Failed to connect to bus: No medium found: there is the system's manager alone")
		return
	case c.has("root"):
		c.fails(codeFailed, "--root is not done here: use the files below /etc/systemd/system")
		return
	case c.verb == "":
		c.verb = "list-units"
	}
	v, ok := verbs[c.verb]
	switch {
	case refusedVerbs[c.verb] != "":
		c.fails(codeFailed, "%s", refusedVerbs[c.verb])
	case !ok:
		c.fails(codeFailed, "Unknown command verb %s.", c.verb)
	case len(c.args) < v.least:
		c.fails(codeFailed, "Too few arguments.")
	case v.most >= 0 && len(c.args) > v.most:
		c.fails(codeFailed, "Too many arguments.")
	default:
		v.do(c)
	}
}

// unitName adds the type that systemctl assumes.
func unitName(u string) string {
	switch {
	case strings.HasPrefix(u, "/dev/"):
		return escapeUnit(u) + ".device"
	case strings.HasPrefix(u, "/"):
		return escapeUnit(u) + ".mount"
	case slices.Contains(unitTypes, kind(u)):
		return u
	}
	return u + ".service"
}

// escapeUnit makes a path the name of a unit (systemd.unit(5), "String Escaping for Inclusion in
// Unit Names").
func escapeUnit(name string) string {
	name = strings.Trim(path.Clean(name), "/")
	if name == "" || name == "." {
		return "-"
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == ':', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// units returns the names of the units that the arguments mean. Patterns stand for units that were
// started in this boot.
func (c *ctl) units() (out []string) {
	for _, a := range c.args {
		if !strings.ContainsAny(a, "*?[") {
			out = append(out, unitName(a))
			continue
		}
		for _, n := range c.s.units.names() {
			if ok, _ := path.Match(unitPattern(a), n); ok {
				out = append(out, n)
			}
		}
	}
	return out
}

// unitPattern adds the type that systemctl assumes to a pattern that names none.
func unitPattern(pattern string) string {
	if strings.HasSuffix(pattern, "*") {
		return pattern
	}
	return unitName(pattern)
}

// canonical returns the name of a unit of which this one may be an alias.
func (s *System) canonical(name string) string {
	if u, err := s.readUnit(name); err == nil {
		return u.name
	}
	return name
}
