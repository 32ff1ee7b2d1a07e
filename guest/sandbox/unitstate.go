package sandbox

import (
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
	if l.links == nil {
		l.links = map[string]string{}
		for i, dir := range unitDirs {
			if !strings.HasPrefix(dir, "etc/") && !strings.HasPrefix(dir, "run/") {
				continue
			}
			for sub := range l.dirs[i] { // all of them
				if !slices.Contains([]string{".wants", ".requires", ".upholds"}, path.Ext(sub)) {
					continue
				}
				names, err := l.f.names(path.Join(dir, sub))
				if err != nil {
					continue
				}
				for _, n := range names {
					if l.links[n] == "" {
						l.links[n] = dir
					}
					if t, ok := template(n); ok && l.links[t] == "" {
						l.links[t] = dir
					}
				}
			}
		}
	}
	if dir := l.links[u.name]; dir != "" {
		return dir
	}
	for i, dir := range unitDirs {
		for _, alias := range u.aliases() {
			if l.dirs[i][path.Base(alias)] && strings.HasPrefix(dir, "etc/") {
				if to, ok := l.f.link(path.Join(dir, path.Base(alias))); ok && path.Base(to) == u.name {
					return dir
				}
			}
		}
	}
	return ""
}
