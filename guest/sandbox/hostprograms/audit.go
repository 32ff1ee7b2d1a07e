package hostprograms

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// audit has the rules and the status of the kernel's audit system (auditctl(8)). Nothing is audited.
type audit struct {
	rules  []string // as -l lists them
	status map[string]int
}

// maxRules is how many rules a server has.
const maxRules = 8192

// auditStatus are the values of -s with those of a kernel that begins.
var auditStatus = []struct {
	name  string
	value int
}{
	{"enabled", 1}, {"failure", 1}, {"pid", 0}, {"rate_limit", 0}, {"backlog_limit", 64}, {"lost", 0}, {"backlog", 0}, {"backlog_wait_time", 60000}, {"backlog_wait_time_actual", 0},
}

// auditImmutable is the value of enabled that no command of the boot changes.
const auditImmutable = 2

// An auditError has the exit code of auditctl.
type auditError struct {
	text string
	code int
}

// Error implements error.
func (e *auditError) Error() string { return e.text }

func auditFailed(format string, args ...any) error {
	return &auditError{fmt.Sprintf(format, args...), 1}
}

// auditctl is auditctl(8).
func auditctl(c *Call) int {
	if !c.mayChange() {
		c.complain("You must be root to run this program.")
		return 4
	}
	if len(c.Args) == 2 && c.Args[0] == "-R" {
		return c.auditFile(c.Args[1])
	}
	err := c.auditLine(c.Args)
	if failed := new(auditError); errors.As(err, &failed) {
		c.complain("%v", err)
		return failed.code
	}
	return 0
}

// auditFile does the lines of a file.
func (c *Call) auditFile(name string) int {
	if !path.IsAbs(name) {
		name = path.Join(c.Dir, name)
	}
	b, err := c.ReadFile(name)
	if err != nil {
		return c.complain("Error opening rule file %s: %v", name, err)
	}
	if st, err := c.Stat(name); err == nil && st.Mode.Perm()&0o002 != 0 {
		return c.complain("Error - %s is world writable", name)
	}
	code, ignore, goOn, number := 0, false, false, 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := auditWords(line)
		switch {
		case slices.Equal(words, []string{"-i"}):
			ignore = true
			continue
		case slices.Equal(words, []string{"-c"}):
			goOn = true
			continue
		}
		if err := c.auditLine(words); err != nil {
			c.complain("%v\nThere was an error in line %d of %s", err, number, name)
			if code = 1; ignore {
				code = 0
			} else if !goOn {
				return code
			}
		}
	}
	return code
}

// auditWords splits a line at spaces outside quotes.
func auditWords(line string) (out []string) {
	word, quote, some := strings.Builder{}, rune(0), false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote, some = r, true
		case r == quote:
			quote = 0
		case quote == 0 && (r == ' ' || r == '\t'):
			if some {
				out = append(out, word.String())
			}
			word.Reset()
			some = false
			continue
		default:
			word.WriteRune(r)
			some = true
		}
	}
	if some {
		out = append(out, word.String())
	}
	return out
}

// auditLine does a line of auditctl's arguments.
func (c *Call) auditLine(args []string) error {
	k := c.Kernel
	k.mu.Lock()
	defer k.mu.Unlock()
	a := &k.rules
	if a.status == nil {
		a.status = map[string]int{}
		for _, s := range auditStatus {
			a.status[s.name] = s.value
		}
	}
	if len(args) == 0 {
		return auditFailed("usage: auditctl [options]")
	}
	value := func(name string, most int) error {
		if len(args) < 2 {
			return auditFailed("%s needs a number", args[0])
		}
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 0 || n > most {
			return auditFailed("%s %s: give a number of at most %d", args[0], args[1], most)
		}
		if a.status["enabled"] == auditImmutable {
			return auditFailed("The audit system is in immutable mode, no changes allowed")
		}
		a.status[name] = n
		return nil
	}
	const whole = 1<<31 - 1
	option, assigned, ok := strings.Cut(args[0], "=")
	if ok && strings.HasPrefix(option, "--") {
		args = append([]string{option, assigned}, args[1:]...)
	}
	switch args[0] {
	case "-l":
		if len(a.rules) == 0 {
			c.print("No rules\n")
		}
		for _, r := range a.rules {
			c.print("%s\n", r)
		}
		return nil
	case "-s":
		if len(args) == 1 {
			for _, s := range auditStatus {
				c.print("%s %d\n", s.name, a.status[s.name])
			}
			c.print("loginuid_immutable 0 unlocked\n")
			return nil
		}
	case "-v":
		c.print("auditctl version 3.0.9 (metalab)\n")
		return nil
	case "-e":
		return value("enabled", auditImmutable)
	case "-f":
		return value("failure", 2)
	case "-b":
		return value("backlog_limit", whole)
	case "-r":
		return value("rate_limit", whole)
	case "--backlog_wait_time":
		return value("backlog_wait_time", 600000)
	case "--reset-lost", "--reset_backlog_wait_time_actual":
		return nil // they are 0
	case "-D":
		if a.status["enabled"] == auditImmutable {
			return auditFailed("The audit system is in immutable mode, no rule changes allowed")
		}
		a.rules = nil
		c.print("No rules\n")
		return nil
	case "-w", "-W", "-a", "-A", "-d":
		return a.rule(args)
	}
	return auditFailed("auditctl %s is not done here: of its options are -l, -s, -D, -R, -w, -W, -a, -A, -d, -e, -f, -b, -r and --backlog_wait_time", args[0])
}

// Lists and actions of rules.
var (
	auditLists   = []string{"task", "exit", "user", "exclude", "filesystem", "io_uring"}
	auditActions = []string{"never", "always"}
)

// rule adds or deletes a rule.
func (a *audit) rule(args []string) error {
	text, err := normalRule(args)
	if err != nil {
		return err
	}
	if a.status["enabled"] == auditImmutable {
		return auditFailed("The audit system is in immutable mode, no rule changes allowed")
	}
	i := slices.Index(a.rules, text)
	switch remove := args[0] == "-W" || args[0] == "-d"; {
	case remove && i < 0:
		return &auditError{"Error sending delete rule data request (No such file or directory)", 255}
	case remove:
		a.rules = slices.Delete(a.rules, i, i+1)
	case i >= 0:
		return &auditError{"Error sending add rule data request (Rule exists)", 255}
	case len(a.rules) == maxRules:
		return auditFailed("Error sending add rule data request (Cannot allocate memory): more than %d rules", maxRules)
	case args[0] == "-A":
		a.rules = slices.Insert(a.rules, 0, text)
	default:
		a.rules = append(a.rules, text)
	}
	return nil
}

// normalRule returns a rule as auditctl -l lists it.
func normalRule(args []string) (string, error) {
	if len(args) < 2 {
		return "", auditFailed("%s needs an argument", args[0])
	}
	value := func(i int) (string, error) {
		if i+1 >= len(args) {
			return "", auditFailed("%s needs an argument", args[i])
		}
		return args[i+1], nil
	}
	if args[0] == "-w" || args[0] == "-W" {
		permissions, keys := "rwxa", ""
		if !path.IsAbs(args[1]) {
			return "", auditFailed("The path must start with '/'")
		}
		for i := 2; i < len(args); i += 2 {
			v, err := value(i)
			switch {
			case err != nil:
				return "", err
			case args[i] == "-p" && v != "" && strings.Trim(v, "rwxa") == "":
				permissions = ""
				for _, p := range "rwxa" {
					if strings.ContainsRune(v, p) {
						permissions += string(p)
					}
				}
			case args[i] == "-p":
				return "", auditFailed("Permission %s isn't supported", v)
			case args[i] == "-k":
				keys += " -k " + v
			default:
				return "", auditFailed("watch option %s is invalid: give -p and -k", args[i])
			}
		}
		return "-w " + path.Clean(args[1]) + " -p " + permissions + keys, nil
	}
	first, second, ok := strings.Cut(args[1], ",")
	if slices.Contains(auditLists, first) {
		first, second = second, first
	}
	if !ok || !slices.Contains(auditActions, first) || !slices.Contains(auditLists, second) {
		return "", auditFailed("Append rule - bad keyword %s", args[1])
	}
	var fields, calls, keys []string
	for i := 2; i < len(args); i += 2 {
		v, err := value(i)
		switch {
		case err != nil:
			return "", err
		case args[i] == "-F" || args[i] == "-C":
			if !strings.ContainsAny(v, "=<>&") {
				return "", auditFailed("-F missing operation for %s", v)
			}
			if key, ok := strings.CutPrefix(v, "key="); ok {
				keys = append(keys, "-F key="+key)
				continue
			}
			fields = append(fields, args[i]+" "+v)
		case args[i] == "-S":
			calls = append(calls, strings.Split(v, ",")...)
		case args[i] == "-k":
			keys = append(keys, "-F key="+v)
		default:
			return "", auditFailed("rule option %s is not done here: give -F, -C, -S and -k", args[i])
		}
	}
	out := "-a " + first + "," + second
	if i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "-F arch") }); i > 0 {
		fields = append([]string{fields[i]}, slices.Delete(fields, i, i+1)...)
	}
	if len(fields) > 0 && strings.HasPrefix(fields[0], "-F arch") {
		out, fields = out+" "+fields[0], fields[1:]
	}
	if len(calls) > 0 {
		out += " -S " + strings.Join(calls, ",")
	} else if second == "exit" {
		out += " -S all"
	}
	return strings.Join(append(append([]string{out}, fields...), keys...), " "), nil
}

// augenrules makes /etc/audit/audit.rules of the files of rules.d (augenrules(8)).
func augenrules(c *Call) int {
	load := slices.Equal(c.Args, []string{"--load"})
	check := slices.Equal(c.Args, []string{"--check"})
	switch {
	case len(c.Args) > 0 && !load && !check:
		return c.complain("Usage: augenrules [--check|--load]")
	case !c.mayChange():
		return c.complain("augenrules: you must be root")
	}
	const to = "/etc/audit/audit.rules"
	settings := map[string]string{}
	var rules []string
	for _, file := range c.configFiles(".rules", "/etc/audit/rules.d") {
		for line := range strings.Lines(c.text(file)) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if f := strings.Fields(line); slices.Contains([]string{"-D", "-b", "-f", "-e"}, f[0]) {
				settings[f[0]] = line
				continue
			}
			rules = append(rules, line)
		}
	}
	text := "## This file is automatically generated from /etc/audit/rules.d\n-D\n"
	for _, option := range []string{"-b", "-f"} {
		if line := settings[option]; line != "" {
			text += line + "\n"
		}
	}
	text += strings.Join(append(rules, ""), "\n")
	if line := settings["-e"]; line != "" {
		text += line + "\n"
	}
	same := c.text(to) == text
	switch {
	case check && same, same:
		c.print("/usr/sbin/augenrules: No change\n")
	case check:
		c.print("/usr/sbin/augenrules: Rules have changed and should be updated\n")
	default:
		if err := c.put(to, 0o640, text); err != nil {
			return c.complain("augenrules: %v", err)
		}
	}
	if load {
		return c.auditFile(to)
	}
	return 0
}
