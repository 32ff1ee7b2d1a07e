package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is a unit file (systemd.unit(5), systemd.service(5), systemd.path(5)), by section
// and key.
type unit struct {
	name string
	file string // path of its file
	keys map[string][]string
}

// unitDirs are where unit files are, the first wins (systemd.unit(5), "Unit File Load
// Path").
var unitDirs = []string{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system"}

const enableDir = "etc/systemd/system"

// get returns the last value of a key, as systemd does for keys that are no lists.
func (u unit) get(key string) string {
	if v := u.keys[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// is reports a boolean (systemd.syntax(7)).
func (u unit) is(key string) bool {
	return slices.Contains([]string{"1", "yes", "true", "on"}, strings.ToLower(u.get(key)))
}

// duration returns a time span, of which seconds are the default unit (systemd.time(7)),
// or another one if there is none.
func (u unit) duration(key string, none time.Duration) time.Duration {
	text := strings.TrimSpace(u.get(key))
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	if d, err := time.ParseDuration(strings.NewReplacer("min", "m", "sec", "s", " ", "").Replace(text)); err == nil {
		return d
	}
	return none
}

// words returns the words of all values of a key.
func (u unit) words(key string) (out []string) {
	for _, v := range u.keys[key] {
		out = append(out, strings.Fields(v)...)
	}
	return out
}

// parseUnit reads a unit file. An empty value resets a list.
func parseUnit(name, file, text string) unit {
	u := unit{name: name, file: file, keys: map[string][]string{}}
	section := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case ok:
			key = section + "." + strings.TrimSpace(key)
			if value = strings.TrimSpace(value); value == "" {
				u.keys[key] = nil
			} else {
				u.keys[key] = append(u.keys[key], value)
			}
		}
	}
	return u
}

// readUnit finds a unit's file.
func (s *System) readUnit(name string) (unit, error) {
	for _, dir := range unitDirs {
		at := path.Join(dir, name)
		b, err := s.readAtMost(at, maxConfig)
		if err == nil {
			return parseUnit(name, at, string(b)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return unit{}, err
		}
	}
	return unit{}, fmt.Errorf("Unit %s not found.", name) //nolint:revive // systemctl's words
}

// installs returns the links that enable a unit (systemd.unit(5), "[Install] Section
// Options").
func (u unit) installs() (out []string) {
	for key, suffix := range map[string]string{"Install.WantedBy": ".wants", "Install.RequiredBy": ".requires"} {
		for _, target := range u.words(key) {
			out = append(out, path.Join(enableDir, target+suffix, u.name))
		}
	}
	for _, alias := range u.words("Install.Alias") {
		out = append(out, path.Join(enableDir, alias))
	}
	slices.Sort(out)
	return out
}

func (s *System) enableUnit(name string, on bool) error {
	u, err := s.readUnit(name)
	if err != nil {
		return err
	}
	links := u.installs()
	if !on {
		return s.Remove(links...)
	}
	if len(links) == 0 {
		return fmt.Errorf("the unit file %s has no [Install] section: it cannot be enabled", name)
	}
	put := Tree{}
	for _, l := range links {
		put[l] = Node{Mode: fs.ModeSymlink | 0o777, Link: "/" + u.file}
	}
	return s.Put(put)
}

func (s *System) enabled(name string) (bool, error) {
	u, err := s.readUnit(name)
	if err != nil {
		return false, err
	}
	for _, l := range u.installs() {
		if _, err := s.Stat(l); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// enabledUnits returns the units that start at a boot, those first that others name in
// After=, else by name.
func (s *System) enabledUnits() ([]unit, error) {
	dirs, err := s.ReadDir(enableDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	byName := map[string]unit{}
	var names []string
	for _, d := range dirs {
		if !strings.HasSuffix(d.Name, ".wants") && !strings.HasSuffix(d.Name, ".requires") {
			continue
		}
		links, err := s.ReadDir(path.Join(enableDir, d.Name))
		if err != nil {
			return nil, err
		}
		for _, l := range links {
			u, err := s.readUnit(l.Name)
			if err != nil {
				s.report("%v", err)
				continue
			}
			if _, seen := byName[u.name]; !seen {
				names = append(names, u.name)
			}
			byName[u.name] = u
		}
	}
	slices.Sort(names)
	var out []unit
	visited := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		u, ok := byName[name]
		if !ok || visited[name] {
			return
		}
		visited[name] = true
		for _, before := range u.words("Unit.After") {
			visit(before)
		}
		out = append(out, u)
	}
	for _, n := range names {
		visit(n)
	}
	return out, nil
}

func (s *System) report(format string, args ...any) {
	if s.c.Report != nil {
		s.c.Report("systemd: " + fmt.Sprintf(format, args...))
	}
}

// Boot starts the units that are enabled. Agents start in no other way.
func (s *System) Boot() error {
	all, err := s.enabledUnits()
	if err != nil {
		return err
	}
	for _, u := range all {
		if err := s.startUnit(u.name); err != nil {
			s.report("%v", err)
		}
	}
	return nil
}
