package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// fileState returns the state of a unit's file (systemctl(1), "is-enabled").
func (s *System) fileState(name string) (state string, err error) {
	err = s.withUnits(func(l *loader) (err error) { state, err = l.fileState(name); return err })
	return state, err
}

func (l *loader) fileState(name string) (string, error) {
	u, err := l.load(name)
	if err != nil {
		return "", err
	}
	runtime := ""
	if strings.HasPrefix(u.file, "run/") {
		runtime = "-runtime"
	}
	_, linked := l.f.link(u.file)
	switch {
	case u.mask:
		return "masked" + runtime, nil
	case strings.HasPrefix(u.file, "run/systemd/generator"):
		return "generated", nil
	case strings.HasPrefix(u.file, "run/systemd/transient/"):
		return "transient", nil
	case name != u.name:
		return "alias", nil
	}
	if in := l.enabledIn(u); in != "" {
		if strings.HasPrefix(in, "run/") {
			return "enabled-runtime", nil
		}
		return "enabled", nil
	}
	switch {
	case linked:
		return "linked" + runtime, nil
	case len(u.words("Install.WantedBy", "Install.RequiredBy", "Install.UpheldBy", "Install.Alias", "Install.DefaultInstance")) > 0:
		return "disabled", nil
	case len(u.words("Install.Also")) > 0:
		return "indirect", nil
	}
	return "static", nil
}

// enabledIn returns the directory with a link that enables a unit.
func (l *loader) enabledIn(u unit) string {
	for i, dir := range unitDirs {
		if !strings.HasPrefix(dir, "etc/") && !strings.HasPrefix(dir, "run/") {
			continue
		}
		for _, alias := range u.aliases() {
			if _, ok := l.f.link(path.Join(dir, path.Base(alias))); ok && l.dirs[i][path.Base(alias)] {
				return dir
			}
		}
		for sub := range l.dirs[i] { // any of them
			if !slices.Contains([]string{".wants", ".requires", ".upholds"}, path.Ext(sub)) {
				continue
			}
			at := path.Join(dir, sub)
			if _, ok := l.f.link(path.Join(at, u.name)); ok {
				return dir
			}
			if !isTemplate(u.name) {
				continue
			}
			links, err := l.f.names(at)
			if err == nil && slices.ContainsFunc(links, func(n string) bool { t, ok := template(n); return ok && t == u.name }) {
				return dir
			}
		}
	}
	return ""
}

func (s *System) showUnit(name string) (string, error) {
	load, file, state, sub, fragment := "loaded", "", stateInactive, "dead", ""
	u, err := s.readUnit(name)
	switch {
	case err != nil:
		load = "not-found"
	case u.mask:
		load = "masked"
	}
	if err == nil {
		name = u.name
		if file, err = s.fileState(name); err != nil {
			return "", err
		}
		if u.file != "" {
			fragment = "/" + u.file
		}
	}
	s.units.mu.Lock()
	if x := s.units.all[name]; x != nil {
		state, sub = x.state, x.sub
	}
	s.units.mu.Unlock()
	return fmt.Sprintf("Id=%s\nLoadState=%s\nActiveState=%s\nSubState=%s\nUnitFileState=%s\nFragmentPath=%s\n", name, load, state, sub, file, fragment), nil
}

func (s *System) catUnit(name string) (string, error) {
	u, err := s.readUnit(name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, file := range slices.Concat([]string{u.file}, u.drops) {
		b, err := s.readAtMost(file, maxConfig)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "# /%s\n%s\n", file, b)
	}
	return out.String(), nil
}
