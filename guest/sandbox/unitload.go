package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// unitDirs are where unit files are, the first wins (systemd.unit(5), "Unit File Load Path").
var unitDirs = []string{
	"etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient", "etc/systemd/system", "run/systemd/system",
	"run/systemd/generator", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "run/systemd/generator.late",
}

const (
	enableDir = "etc/systemd/system"
	vendorDir = "usr/lib/systemd/system"
)

// loader reads the units of a system at one time.
type loader struct {
	f     files
	dirs  []map[string]bool // the names in unitDirs
	units map[string]unit   // by name and alias
	about map[byte]string   // values of specifiers that are the same for all units
	base  Tree              // files of the installation
	root  machine           // those of its root file system; none: it has none
	links map[string]string // the directories of the links that enable units, by name; nil: not read yet
}

// installed returns a file as a fresh installation has it.
func (l *loader) installed(name string) (Node, bool) {
	if n, ok := l.base[name]; ok {
		return n, true
	}
	return l.root.node(name)
}

// withUnits calls do with a loader. do must not use the system.
func (s *System) withUnits(do func(*loader) error) error {
	return s.files(func(f files) error {
		l, err := s.newLoader(f)
		if err != nil {
			return err
		}
		return do(l)
	})
}

func (s *System) newLoader(f files) (*loader, error) {
	l := &loader{f: f, units: map[string]unit{}, about: s.specifiers(f)}
	if s.image == nil {
		l.base = s.base
		if s.root != nil {
			var err error
			if l.root, err = s.bottom(); err != nil {
				return nil, err
			}
		}
	}
	for _, dir := range unitDirs {
		has := map[string]bool{}
		names, err := f.names(dir)
		if err != nil && !notThere(err) {
			return nil, err
		}
		for _, n := range names {
			has[n] = true
		}
		l.dirs = append(l.dirs, has)
	}
	return l, nil
}

// readUnit finds a unit with its drop-ins.
func (s *System) readUnit(name string) (u unit, err error) {
	err = s.withUnits(func(l *loader) error { u, err = l.load(name); return err })
	return u, err
}

// noUnitError is the error for a unit without a file.
type noUnitError struct{ name string }

// Error implements error, with systemctl's words.
func (e *noUnitError) Error() string { return fmt.Sprintf("Unit %s not found.", e.name) }

// unitTypes are the types of units (systemd.unit(5)).
var unitTypes = []string{"service", "socket", "target", "path", "timer", "mount", "automount", "swap", "slice", "scope", "device"}

// checkName refuses a text that is no name of a unit (systemd.unit(5), "Description").
func checkName(name string) error {
	const special = ":-_.\\@"
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(special, r))
	})
	if prefix, _, _ := strings.Cut(strings.TrimSuffix(name, path.Ext(name)), "@"); bad || prefix == "" || len(name) > 255 || !slices.Contains(unitTypes, kind(name)) {
		return fmt.Errorf("Invalid unit name \"%.300s\".", name) //nolint:revive // systemctl's words
	}
	return nil
}

// template returns the template of an instance: foo@.service of foo@bar.service.
func template(name string) (string, bool) {
	prefix, instance, ok := strings.Cut(strings.TrimSuffix(name, path.Ext(name)), "@")
	return prefix + "@" + path.Ext(name), ok && instance != ""
}

// instanceOf returns the instance of a template.
func instanceOf(template, instance string) string {
	prefix, rest, _ := strings.Cut(template, "@")
	return prefix + "@" + instance + rest
}

// isTemplate reports whether a name is that of a template, which is no unit.
func isTemplate(name string) bool { return strings.Contains(name, "@.") }

// instance returns the text between @ and the type: "bar" of foo@bar.service.
func instance(name string) string {
	_, i, _ := strings.Cut(strings.TrimSuffix(name, path.Ext(name)), "@")
	return i
}

// maxAliases is how many links a unit's name may lead through.
const maxAliases = 8

// load returns a unit by its name or an alias.
func (l *loader) load(name string) (unit, error) {
	if u, ok := l.units[name]; ok {
		return u, nil
	}
	u := unit{names: []string{name}, keys: map[string][]string{}}
	for at := name; ; {
		if err := checkName(at); err != nil {
			return unit{}, err
		}
		next, err := l.find(&u, at)
		if err != nil {
			return unit{}, err
		}
		if next == "" {
			break
		}
		if len(u.names) > maxAliases {
			return unit{}, fmt.Errorf("Unit %s is an alias of an alias without an end.", name) //nolint:revive // as above
		}
		u.names, at = append(u.names, next), next
	}
	u.name = u.names[len(u.names)-1]
	if err := l.read(&u); err != nil {
		return unit{}, err
	}
	l.expand(&u)
	for _, n := range u.names {
		l.units[n] = u
	}
	return u, nil
}

// find sets the file of a unit, or returns the name of which this one is an alias.
func (l *loader) find(u *unit, name string) (alias string, err error) {
	candidates := []string{name}
	if t, ok := template(name); ok {
		candidates = append(candidates, t)
	}
	for _, c := range candidates {
		for i, dir := range unitDirs {
			at := path.Join(dir, c)
			if !l.dirs[i][c] {
				continue
			}
			target, linked := l.f.link(at)
			if linked {
				if path.Clean(target) == "/dev/null" {
					u.file, u.mask = at, true
					return "", nil
				}
				to := path.Base(target)
				if isTemplate(to) && !isTemplate(c) && instance(name) != "" {
					to = instanceOf(to, instance(name))
				}
				if to != name && path.Base(target) != c && path.Ext(to) == path.Ext(name) && checkName(to) == nil {
					return to, nil
				}
			}
			if _, err := l.f.stat(at); notThere(err) {
				continue
			}
			u.file = at
			return "", nil
		}
	}
	if _, ok := builtinTargets[name]; ok || slices.Contains([]string{"slice", "scope", "device"}, kind(name)) || name == "-.mount" {
		return "", nil
	}
	return "", &noUnitError{name}
}

// maxDrops is how many drop-ins of a unit are read.
const maxDrops = 256

// read reads the file and the drop-ins of a unit.
func (l *loader) read(u *unit) error {
	if u.file != "" && !u.mask {
		b, err := l.f.readFile(u.file, maxConfig)
		if err != nil {
			return err
		}
		u.mask = len(b) == 0
		u.parse(u.file, string(b))
	}
	for _, at := range l.dropIns(u) {
		if target, ok := l.f.link(at); ok && path.Clean(target) == "/dev/null" {
			continue
		}
		b, err := l.f.readFile(at, maxConfig)
		if notThere(err) {
			continue
		}
		if err != nil {
			return err
		}
		u.drops = append(u.drops, at)
		u.parse(at, string(b))
	}
	return nil
}

// dropIns returns the drop-ins of a unit by their names: of those with the same name, that of the
// first directory alone (systemd.unit(5)).
func (l *loader) dropIns(u *unit) []string {
	var dirs []string
	for _, name := range u.names {
		names := []string{name}
		if t, ok := template(name); ok {
			names = append(names, t)
		}
		for _, n := range slices.Clone(names) { // foo-bar-.service.d and foo-.service.d of foo-bar-baz.service
			prefix, _, _ := strings.Cut(strings.TrimSuffix(n, path.Ext(n)), "@")
			for i := len(prefix) - 2; i > 0; i-- {
				if prefix[i] == '-' {
					names = append(names, prefix[:i+1]+path.Ext(n))
				}
			}
		}
		for _, n := range names {
			for i, dir := range unitDirs {
				if l.dirs[i][n+".d"] {
					dirs = append(dirs, path.Join(dir, n+".d"))
				}
			}
		}
	}
	for i, dir := range unitDirs {
		if d := kind(u.name) + ".d"; l.dirs[i][d] {
			dirs = append(dirs, path.Join(dir, d))
		}
	}
	files := map[string]string{}
	var names []string
	for _, dir := range dirs {
		entries, err := l.f.names(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if _, seen := files[e]; !seen && strings.HasSuffix(e, ".conf") {
				files[e], names = path.Join(dir, e), append(names, e)
			}
		}
	}
	slices.Sort(names)
	var out []string
	for _, n := range names[:min(len(names), maxDrops)] {
		out = append(out, files[n])
	}
	return out
}

// installs returns the links that enable a unit (systemd.unit(5), "[Install] Section Options").
func (u unit) installs() (out []string) {
	name := u.name
	if isTemplate(name) {
		if name = instanceOf(name, u.get("Install.DefaultInstance")); isTemplate(name) {
			return nil
		}
	}
	for _, in := range []struct{ key, suffix string }{{"Install.WantedBy", ".wants"}, {"Install.RequiredBy", ".requires"}, {"Install.UpheldBy", ".upholds"}} {
		for _, target := range u.words(in.key) {
			if checkName(target) == nil {
				out = append(out, path.Join(enableDir, target+in.suffix, name))
			}
		}
	}
	return append(out, u.aliases()...)
}

// aliases returns the links of Alias=.
func (u unit) aliases() (out []string) {
	for _, alias := range u.words("Install.Alias") {
		if checkName(alias) == nil {
			out = append(out, path.Join(enableDir, alias))
		}
	}
	return out
}
