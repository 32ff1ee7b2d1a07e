package sandbox

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// conditions are the checks of Condition…= and Assert…= (systemd.unit(5), "Conditions and Asserts")
// by their names without these words.
var conditions = map[string]func(l *loader, value string) bool{
	"PathExists":         func(l *loader, v string) bool { return exists(l.f, v) },
	"PathExistsGlob":     func(l *loader, v string) bool { return len(glob(l.f, v)) > 0 },
	"PathIsDirectory":    func(l *loader, v string) bool { n, err := l.f.stat(v); return err == nil && n.Mode.IsDir() },
	"PathIsSymbolicLink": func(l *loader, v string) bool { _, ok := l.f.link(v); return ok },
	"PathIsMountPoint": func(l *loader, v string) bool {
		return exists(l.f, v) && slices.Contains([]string{"/", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/run", "/tmp"}, path.Clean(v))
	},
	"PathIsReadWrite": func(l *loader, v string) bool {
		return exists(l.f, v) && !strings.HasPrefix(path.Clean(v)+"/", "/sys/")
	},
	"DirectoryNotEmpty": func(l *loader, v string) bool { names, err := l.f.names(v); return err == nil && len(names) > 0 },
	"FileNotEmpty":      fileNotEmpty,
	"FileIsExecutable": func(l *loader, v string) bool {
		n, err := l.f.stat(v)
		return err == nil && n.Mode.IsRegular() && n.Mode&0o111 != 0
	},
	"FirstBoot": func(l *loader, v string) bool {
		return isTrue(v) == slices.Contains([]string{"", "uninitialized"}, l.about['m'])
	},
	"Host": func(l *loader, v string) bool {
		ok, _ := path.Match(strings.ToLower(v), strings.ToLower(l.about['H']))
		return ok || l.about['m'] != "" && strings.ReplaceAll(v, "-", "") == l.about['m']
	},
	"KernelCommandLine": kernelArgument,
	"KernelVersion":     func(l *loader, v string) bool { return matchVersion(l.about['v'], v) },
	// A server of the lab is emulated hardware, not a virtual machine or container.
	"Virtualization": func(_ *loader, v string) bool { return slices.Contains([]string{"no", "false", "0", "off"}, v) },
	"Architecture":   func(_ *loader, v string) bool { return v == "native" || v == architectures[runtime.GOARCH] },
	"User":           func(_ *loader, v string) bool { return slices.Contains([]string{"root", "0", "@system"}, v) },
	"Group":          func(_ *loader, v string) bool { return slices.Contains([]string{"root", "0"}, v) },
	"Environment": func(_ *loader, v string) bool {
		return slices.ContainsFunc(managerEnvironment, func(e string) bool { return e == v || strings.HasPrefix(e, v+"=") && !strings.Contains(v, "=") })
	},
	"OSRelease": func(l *loader, v string) bool {
		release := assignments(readIf(l.f, "etc/os-release"))
		words, err := splitWords(v)
		return err == nil && !slices.ContainsFunc(words, func(w string) bool {
			i := strings.IndexAny(w, "=!<>$")
			return i < 0 || !matchVersion(release[w[:i]], w[i:])
		})
	},
}

func fileNotEmpty(l *loader, name string) bool {
	n, err := l.f.stat(name)
	if err != nil || !n.Mode.IsRegular() {
		return false
	}
	b, err := l.f.readFile(name, maxRead)
	return err != nil || len(b) > 0 // too large to be read
}

// kernelArgument looks for a word of the kernel's command line, or an assignment to it.
func kernelArgument(l *loader, v string) bool {
	for _, w := range strings.Fields(readIf(l.f, cmdlineFile)) {
		if w == v || !strings.Contains(v, "=") && strings.HasPrefix(w, v+"=") {
			return true
		}
	}
	return false
}

// matchVersion compares a version with an expression: "= x", "!= x", ">= x", and so on, each of
// them; a word without an operator is a pattern.
func matchVersion(version, expression string) bool {
	words := strings.Fields(expression)
	for i := 0; i < len(words); i++ {
		w := words[i]
		operator := w[:len(w)-len(strings.TrimLeft(w, "=!<>$"))]
		value := w[len(operator):]
		if operator != "" && value == "" && i+1 < len(words) {
			i++
			value = words[i]
		}
		value = strings.Trim(value, `"'`)
		c := compareVersions(version, value)
		glob, _ := path.Match(value, version)
		ok := map[string]bool{
			"": glob, "$=": glob, "!$=": !glob, "=": version == value, "==": c == 0, "!=": version != value, "<>": c != 0,
			"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0,
		}[operator]
		if !ok {
			return false
		}
	}
	return true
}

// compareVersions compares numbers as numbers, and the rest as text.
func compareVersions(a, b string) int {
	part := func(text string) (string, string, bool) {
		digit := func(r rune) bool { return r >= '0' && r <= '9' }
		number := digit(rune(text[0]))
		end := strings.IndexFunc(text, func(r rune) bool { return digit(r) != number })
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], number
	}
	for a != "" && b != "" {
		var x, y string
		var n, m bool
		x, a, n = part(a)
		y, b, m = part(b)
		if n && m {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// unmet returns the condition or assertion of a unit that does not hold, as it is written; "": all
// hold. Those with | hold when one of them does.
func (l *loader) unmet(u unit, word string) string {
	var keys []string
	for key := range u.keys {
		if name, ok := strings.CutPrefix(key, "Unit."+word); ok && conditions[name] != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	triggers, triggered, last := 0, false, ""
	for _, key := range keys {
		check := conditions[strings.TrimPrefix(key, "Unit."+word)]
		for _, v := range u.keys[key] {
			rest, trigger := strings.CutPrefix(v, "|")
			rest, not := strings.CutPrefix(strings.TrimSpace(rest), "!")
			holds := check(l, strings.TrimSpace(rest)) != not
			text := fmt.Sprintf("%s=%s", strings.TrimPrefix(key, "Unit."), v)
			switch {
			case trigger:
				triggers, triggered, last = triggers+1, triggered || holds, text
			case !holds:
				return text
			}
		}
	}
	if triggers > 0 && !triggered {
		return last
	}
	return ""
}
