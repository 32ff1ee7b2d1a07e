package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// notifier watches directories for all Hosts of a process by one inotify instance: a user may
// have few of them (inotify(7), max_user_instances; 128 by default).
type notifier struct {
	mu      sync.Mutex
	watcher *fsnotify.Watcher // nil: nothing is watched
	ended   chan struct{}     // closed when the reader of watcher has ended
	next    int
	watches map[int]watch
	dirs    map[string]int // number of watches that need each directory
}

// watch is one call of Watch.
type watch struct {
	names   map[string]bool // files, and directories above those that do not exist
	dirs    []string
	changed func()
}

var notifications = notifier{watches: map[int]watch{}, dirs: map[string]int{}}

// Watch calls changed after changes of files that are named, by anyone, until stop is called.
// Files need not exist. changed must neither block nor call stop.
func (h *Host) Watch(names []string, changed func()) (stop func(), err error) {
	w := watch{names: map[string]bool{}, changed: changed}
	seen := map[string]bool{}
	for _, name := range names {
		if _, err := relative(name); err != nil {
			return nil, err
		}
		file := h.Path(name)
		for {
			w.names[file] = true
			dir := filepath.Dir(file)
			if st, err := os.Stat(dir); err == nil && st.IsDir() {
				seen[dir] = true
				break
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) || dir == file {
				return nil, fmt.Errorf("sys: watch %s: %w", name, err)
			}
			file = dir // until the directory exists
		}
	}
	for dir := range seen {
		w.dirs = append(w.dirs, dir)
	}
	return notifications.add(w)
}

func (n *notifier) add(w watch) (stop func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watcher == nil {
		if n.watcher, err = fsnotify.NewWatcher(); err != nil {
			return nil, fmt.Errorf("sys: watch: %w", err)
		}
		n.ended = make(chan struct{})
		go n.read(n.watcher, n.ended)
	}
	for i, dir := range w.dirs {
		if n.dirs[dir] == 0 {
			if err := n.watcher.Add(dir); err != nil {
				n.drop(w.dirs[:i])
				return nil, fmt.Errorf("sys: watch %s: %w", dir, err)
			}
		}
		n.dirs[dir]++
	}
	id := n.next
	n.next++
	n.watches[id] = w
	return sync.OnceFunc(func() { n.remove(id) }), nil
}

// remove ends a watch, and with the last one the reader.
func (n *notifier) remove(id int) {
	n.mu.Lock()
	n.drop(n.watches[id].dirs)
	delete(n.watches, id)
	if len(n.watches) > 0 {
		n.mu.Unlock()
		return
	}
	watcher, ended := n.watcher, n.ended
	n.watcher = nil
	n.mu.Unlock()
	_ = watcher.Close() // nothing is watched any more
	<-ended
}

// drop gives directories up that no other watch needs. The caller holds n.mu.
func (n *notifier) drop(dirs []string) {
	for _, dir := range dirs {
		if n.dirs[dir]--; n.dirs[dir] == 0 {
			delete(n.dirs, dir)
			_ = n.watcher.Remove(dir) // it may have been removed
		}
	}
}

func (n *notifier) read(w *fsnotify.Watcher, ended chan struct{}) {
	defer close(ended)
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			n.notify(func(x watch) bool { return x.names[e.Name] })
		case _, ok := <-w.Errors: // events were lost: anything may have changed
			if !ok {
				return
			}
			n.notify(func(watch) bool { return true })
		}
	}
}

func (n *notifier) notify(meant func(watch) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.watches {
		if meant(x) {
			x.changed()
		}
	}
}
