package sandbox

import "sync"

// watches are the functions that are called when files of a system have changed.
type watches struct {
	mu   sync.Mutex
	next int
	all  map[int]func(local Tree)
}

// Watch calls changed after each change of files with those that differ from the root that is
// booted: at once for those that Put and Remove change, within seconds for those of processes.
// changed must not change local, nor use the system before it returns.
func (s *System) Watch(changed func(local Tree)) (stop func()) {
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[int]func(Tree){}
	}
	id := w.next
	w.next++
	w.all[id] = changed
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
	}
}

func (w *watches) notify(local Tree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, changed := range w.all {
		changed(local)
	}
}
