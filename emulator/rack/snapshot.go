package rack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// inSnapshot reports whether a file in a lab's directory belongs to a snapshot: the
// files of the store, the rack's own server models, and the authority, so that
// clients still trust the BMCs. All other files belong to others.
func inSnapshot(name string) bool {
	if strings.HasSuffix(name, ".part") {
		return false
	}
	return name == network.CACertFile || name == network.CAKeyFile || strings.HasPrefix(filepath.ToSlash(name), modelsDir+"/") || store.Holds(name)
}

// SaveSnapshot saves the rack as it is now to a new tar file when the name to ends in
// .tar, else to a new directory. Nothing in the rack changes meanwhile.
func (l *Rack) SaveSnapshot(ctx context.Context, to string, report snapshot.Progress) (snapshot.Info, error) {
	defer l.clock.Enter()()
	for _, h := range l.hosts {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.disks.Lock() // writes of a running system wait
		defer h.disks.Unlock()
	}
	thaw, err := l.faults.Freeze()
	defer thaw()
	now := l.clock.Now()
	if err := errors.Join(err, l.save(now)); err != nil {
		return snapshot.Info{}, err
	}
	info := snapshot.Info{Name: l.definition.Name, Seed: l.definition.Seed, Hosts: len(l.hosts), Time: now.UTC()}
	if err := l.store.Frozen(func() error { return snapshot.Save(ctx, l.dir, to, info, inSnapshot, report) }); err != nil {
		return snapshot.Info{}, err
	}
	if info, err = snapshot.Open(to); err == nil {
		l.savings.notify(to, info)
	}
	return info, err
}

// savings are the functions that hear of snapshots. The zero value has none.
type savings struct {
	mu  sync.Mutex
	all []*func(to string, info snapshot.Info)
}

// WatchSnapshots calls f with each snapshot that is saved of the running rack, and with the
// name that it was saved to, until stop is called. f must not wait.
func (l *Rack) WatchSnapshots(f func(to string, info snapshot.Info)) (stop func()) {
	s := &l.savings
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, &f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = slices.DeleteFunc(s.all, func(o *func(string, snapshot.Info)) bool { return o == &f })
	}
}

// notify passes a snapshot to the functions.
func (s *savings) notify(to string, info snapshot.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.all {
		(*f)(to, info)
	}
}

// SaveSnapshot saves the rack in a directory that is not open.
func SaveSnapshot(ctx context.Context, dir, to string, report snapshot.Progress) (snapshot.Info, error) {
	err := withClosedRack(ctx, dir, nil, func(s *store.Store) error {
		r, at, err := storedRack(s)
		if err != nil {
			return err
		}
		info := snapshot.Info{Name: r.Name, Seed: r.Seed, Hosts: r.Len(), Time: at.UTC()}
		return s.Frozen(func() error { return snapshot.Save(ctx, dir, to, info, inSnapshot, report) })
	})
	if err != nil {
		return snapshot.Info{}, err
	}
	return snapshot.Open(to)
}

// RestoredDir is the directory in a lab's directory that has the files of a snapshot
// while it is restored.
const RestoredDir = "restored.part"

// RestoreSnapshot restores the rack in a directory, which must not be open, from a
// snapshot. It makes a rack when the directory has none, and leaves files of others
// alone.
func RestoreSnapshot(ctx context.Context, dir, from string, report snapshot.Progress) (snapshot.Info, error) {
	info, err := snapshot.Open(from)
	if err != nil {
		return info, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return info, err
	}
	held, err := lockDir(ctx, dir)
	if err != nil {
		return info, err
	}
	defer held.Close()
	fresh := filepath.Join(dir, RestoredDir)
	if err := os.RemoveAll(fresh); err != nil {
		return info, err
	}
	if err := snapshot.Load(ctx, from, fresh, report); err != nil {
		return info, err
	}
	// Everything is copied: from here on only a broken disk can make this fail.
	old, err := snapshotFiles(dir)
	for _, name := range old {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	entries, rerr := os.ReadDir(fresh)
	err = errors.Join(err, rerr)
	for _, e := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(fresh, e.Name()), filepath.Join(dir, e.Name())))
	}
	if err = errors.Join(err, os.RemoveAll(fresh)); err != nil {
		return info, fmt.Errorf("restore: %w", err)
	}
	// The old list is of the old files; that of others' files may be damaged, too.
	if err := integrity.Seal(dir, fileRules, false); err != nil {
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, integrity.File)), integrity.Seal(dir, fileRules, false)); err != nil {
			return info, fmt.Errorf("restore: %w", err)
		}
	}
	return info, nil
}

// snapshotFiles returns the names in a lab's directory that belong to a snapshot.
func snapshotFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if name := e.Name(); inSnapshot(name) || e.IsDir() && inSnapshot(name+"/x") {
			out = append(out, name)
		}
	}
	return out, err
}

// ResetHosts resets hosts of the rack in a directory, which must not be open, to what
// their profile says, with empty disks. Without names it resets all hosts.
func ResetHosts(ctx context.Context, dir string, names ...string) error {
	meant := func(host string) bool { return len(names) == 0 || slices.Contains(names, host) }
	return withClosedRack(ctx, dir, meant, func(s *store.Store) error {
		r, at, err := storedRack(s)
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for _, h := range r.Each() {
			known[h.Name] = true
		}
		for _, n := range names {
			if !known[n] {
				return fmt.Errorf("there is no host %s", n)
			}
		}
		var puts []store.Put
		err = s.Each(store.Hosts, func(key string, _ []byte) error {
			if host, _, _ := strings.Cut(key, "/"); meant(host) {
				puts = append(puts, store.Put{Kind: store.Hosts, Key: key, Value: store.Gone})
			}
			return nil
		})
		if err == nil {
			err = s.Save(at, puts...)
		}
		if err != nil {
			return err
		}
		return emptyDisks(filepath.Join(dir, store.DisksDir), meant)
	})
}

// emptyDisks removes the disk files of hosts. Images of virtual media are removed
// when the rack starts and no slot holds them.
func emptyDisks(dir string, meant func(host string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if host, uerr := url.PathUnescape(e.Name()); uerr == nil && meant(host) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	return nil
}

// withClosedRack calls do with the store of a rack that is not open. The disks and images
// of the hosts that emptied, if not nil, accepts may be damaged.
func withClosedRack(ctx context.Context, dir string, emptied func(host string) bool, do func(*store.Store) error) (err error) {
	if _, err := os.Stat(filepath.Join(dir, LockFile)); err != nil {
		return fmt.Errorf("there is no lab in %s: %w", dir, err)
	}
	held, err := lockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer held.Close()
	err = integrity.Check(dir, fileRules, func(name string) bool { return emptied != nil && fileOfHost(name, emptied) })
	if err == nil {
		err = integrity.Forget(dir, fileRules)
	}
	if err != nil {
		return err
	}
	s, err := store.Open(store.Config{Dir: dir, Fsync: true, Emptied: emptied})
	if err != nil {
		return err
	}
	if err := errors.Join(do(s), s.Close()); err != nil {
		return err
	}
	return integrity.Seal(dir, fileRules, false)
}

// storedRack returns the definition of the rack that a store holds, and the lab's time.
func storedRack(s *store.Store) (rackfile.Lab, time.Time, error) {
	var m meta
	found, err := s.Load(store.Meta, metaKey, &m)
	if err == nil && !found {
		err = errors.New("it holds no lab")
	}
	if err != nil {
		return rackfile.Lab{}, time.Time{}, err
	}
	return m.Rack, s.Last(), nil
}

// StoredRack returns the definition of the rack in a directory that is not open.
func StoredRack(ctx context.Context, dir string) (r rackfile.Lab, err error) {
	err = withClosedRack(ctx, dir, nil, func(s *store.Store) error {
		r, _, err = storedRack(s)
		return err
	})
	return r, err
}
