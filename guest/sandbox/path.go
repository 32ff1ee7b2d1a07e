package sandbox

import (
	"errors"
	"strings"
	"sync"
)

// startPath begins to watch the path of a path unit.
func (s *System) startPath(u unit) error {
	x := &started{state: stateActive, done: make(chan struct{}), paths: map[string]string{}}
	end := sync.OnceFunc(func() { close(x.done) })
	x.stop = func(error) { end() }
	if ok, err := s.units.begin(u.name, x, s.now(), u.duration("Unit.StartLimitIntervalSec", startInterval)); !ok {
		end()
		return err
	}
	for _, key := range []string{"Path.PathChanged", "Path.PathModified"} {
		for _, name := range u.keys[key] {
			x.paths[name] = s.stamp(name)
		}
	}
	return s.checkPath(u, x)
}

// checkPath starts the unit of a path unit when its condition holds.
func (s *System) checkPath(u unit, x *started) error {
	trigger := false
	for _, name := range u.keys["Path.PathExists"] {
		if _, err := s.Stat(name); err == nil {
			trigger = true
		}
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
	target := u.get("Path.Unit")
	if target == "" {
		target = strings.TrimSuffix(u.name, ".path") + ".service"
	}
	return s.startUnit(target)
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
		if x.paths != nil {
			active[name] = x
		}
	}
	s.units.mu.Unlock()
	var errs []error
	for name, x := range active {
		u, err := s.readUnit(name)
		if err == nil {
			err = s.checkPath(u, x)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
