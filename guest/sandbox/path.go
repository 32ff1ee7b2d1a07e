package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
)

// startPath begins to watch the path of a path unit.
func (s *System) startPath(u unit) (*started, error) {
	x := newStarted(u, stateActive, "waiting")
	x.paths = map[string]string{}
	for _, key := range []string{"Path.PathChanged", "Path.PathModified"} {
		for _, name := range u.keys[key] {
			x.paths[name] = s.stamp(name)
		}
	}
	x.idle = true
	if ok, err := s.begin(x); !ok {
		return nil, err
	}
	if u.is("Path.MakeDirectory") {
		mode := fs.FileMode(0o755)
		if n, err := strconv.ParseUint(u.get("Path.DirectoryMode"), 8, 12); err == nil {
			mode = fs.FileMode(n).Perm()
		}
		for _, key := range []string{"Path.PathChanged", "Path.PathModified", "Path.DirectoryNotEmpty"} {
			for _, name := range u.keys[key] {
				if _, err := s.Stat(name); err == nil || Clean(name) == "." {
					continue
				}
				if err := s.Put(Tree{Clean(name): {Mode: fs.ModeDir | mode}}); err != nil {
					s.report("%s: MakeDirectory=: %v", u.name, err)
				}
			}
		}
	}
	err := s.checkPath(u, x)
	x.start(err)
	return x, err
}

// checkPath starts the unit of a path unit when its condition holds.
func (s *System) checkPath(u unit, x *started) error {
	trigger := false
	for _, name := range u.keys["Path.PathExists"] {
		if _, err := s.Stat(name); err == nil {
			trigger = true
		}
	}
	for _, pattern := range u.keys["Path.PathExistsGlob"] {
		_ = s.files(func(f files) error { trigger = trigger || len(glob(f, pattern)) > 0; return nil }) // a system that is down has no files
	}
	for _, name := range u.keys["Path.DirectoryNotEmpty"] {
		if entries, err := s.ReadDir(name); err == nil && len(entries) > 0 {
			trigger = true
		}
	}
	s.units.mu.Lock()
	var names []string
	for name := range x.paths {
		names = append(names, name)
	}
	s.units.mu.Unlock()
	for _, name := range names {
		now := s.stamp(name)
		s.units.mu.Lock()
		trigger = trigger || x.paths[name] != now
		x.paths[name] = now
		s.units.mu.Unlock()
	}
	if !trigger {
		return nil
	}
	target := triggered(u)
	if target == u.name {
		return fmt.Errorf("%s: Unit=%s: a path does not start itself", u.name, target)
	}
	return s.startUnits(false, target)
}

// stamp returns a text that changes whenever the file changes.
func (s *System) stamp(name string) string {
	n, err := s.Stat(name)
	if err != nil {
		return ""
	}
	return n.Mode.String() + n.Modified.String()
}

// CheckPaths starts the units whose path units are active and whose conditions hold now.
// The caller calls it when files have changed.
func (s *System) CheckPaths() error {
	s.units.mu.Lock()
	active := map[string]*started{}
	for name, x := range s.units.all {
		if x.paths != nil && x.state == stateActive {
			active[name] = x
		}
	}
	s.units.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(active)) {
		errs = append(errs, s.checkPath(active[name].unit, active[name]))
	}
	return errors.Join(errs...)
}
