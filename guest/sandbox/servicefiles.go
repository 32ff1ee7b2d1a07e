package sandbox

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// stateDir is a directory that systemd makes for a service (systemd.exec(5), "RuntimeDirectory=").
type stateDir struct{ key, root, variable string }

var stateDirs = []stateDir{
	{"RuntimeDirectory", "run", "RUNTIME_DIRECTORY"}, {"StateDirectory", "var/lib", "STATE_DIRECTORY"}, {"CacheDirectory", "var/cache", "CACHE_DIRECTORY"},
	{"LogsDirectory", "var/log", "LOGS_DIRECTORY"}, {"ConfigurationDirectory", "etc", "CONFIGURATION_DIRECTORY"},
}

func (d stateDir) mode(u unit) fs.FileMode {
	if n, err := strconv.ParseUint(u.get("Service."+d.key+"Mode"), 8, 12); err == nil {
		return fs.FileMode(n).Perm()
	}
	return 0o755
}

// workingDirectory reads WorkingDirectory=. made are the directories that come with the service.
func (u unit) workingDirectory(f files, as credential, made Tree) (string, error) {
	dir, optional := strings.CutPrefix(u.get("Service.WorkingDirectory"), "-")
	switch {
	case dir == "":
		return "/", nil
	case dir == "~":
		if dir = as.home; dir == "" {
			dir = "/"
		}
	case !path.IsAbs(dir):
		return "", fmt.Errorf("WorkingDirectory=%s: give an absolute path, or ~", dir)
	}
	_, ours := made[Clean(dir)]
	if n, err := f.stat(dir); optional && !ours && (err != nil || !n.Mode.IsDir()) {
		return "/", nil
	}
	return dir, nil
}

// outputs reads StandardOutput= and StandardError=. There is no journal: its last lines are shown by
// systemctl status.
func (u unit) outputs() (out [2]output, err error) {
	for i, key := range []string{"StandardOutput", "StandardError"} {
		value := u.get("Service." + key)
		kind, file, named := strings.Cut(value, ":")
		switch {
		case value == "" || value == "inherit":
			out[i].Same = i == 1
		case named && (kind == "file" || kind == "append" || kind == "truncate"):
			if !path.IsAbs(file) {
				return out, fmt.Errorf("%s=%s: give an absolute path", key, value)
			}
			out[i] = output{File: file, Append: kind == "append", Truncate: kind == "truncate"}
			if i == 1 && out[0].File == file {
				out[i] = output{Same: true}
			}
		case value == "null":
			out[i] = output{File: "/dev/null"}
		case value == "tty" || slices.Contains([]string{"journal+console", "kmsg+console", "syslog+console"}, value):
			out[i] = output{Console: true}
		case value == "journal" || value == "kmsg" || value == "syslog":
		default:
			return out, fmt.Errorf("%s=%s is not done here: use journal, null, file:PATH, append:PATH or truncate:PATH", key, value)
		}
	}
	return out, nil
}

// input reads StandardInput=.
func (u unit) input() (string, error) {
	value := u.get("Service.StandardInput")
	file, ok := strings.CutPrefix(value, "file:")
	switch {
	case value == "" || value == "null" || strings.HasPrefix(value, "tty"):
		return "", nil
	case ok && path.IsAbs(file):
		return file, nil
	}
	return "", fmt.Errorf("StandardInput=%s is not done here: use null or file:PATH", value)
}

// invocation returns the ID of a run of a unit (systemd.exec(5), "$INVOCATION_ID").
func (s *System) invocation(name string) string {
	s.units.mu.Lock()
	n := len(s.units.starts[name])
	s.units.mu.Unlock()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d", s.c.Boot.ID, name, n, s.now().UnixNano()))
	return fmt.Sprintf("%x", sum[:16])
}

// number reads a number, or returns another one.
func number(text string, none int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 0 {
		return n
	}
	return none
}

// lastLine remembers the last lines that a service has written.
type lastLine struct {
	mu sync.Mutex
	b  []byte
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	const most = 4096
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	l.b = l.b[max(0, len(l.b)-most):]
	return len(p), nil
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

func (l *lastLine) line() string {
	text := strings.TrimSpace(l.text())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// tee writes to logs, and lines to a console.
type tee struct {
	a, b    *lastLine
	console func(line string) // nil: to none

	mu   sync.Mutex
	line []byte // the line that has not ended
}

// Write implements io.Writer.
func (t *tee) Write(p []byte) (int, error) {
	_, _ = t.a.Write(p) // neither fails
	if t.console != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		const most = 4096
		for _, c := range p {
			if c != '\n' {
				t.line = append(t.line, c)
			}
			if c == '\n' || len(t.line) == most {
				t.console(string(t.line))
				t.line = t.line[:0]
			}
		}
	}
	return t.b.Write(p)
}
