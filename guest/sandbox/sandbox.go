package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox/hostprograms"
)

// System is the operating system of one boot. It costs no process, mount or file until
// a command runs. It is safe for concurrent use.
type System struct {
	c Config

	mu           sync.Mutex
	session      *session // session of the running processes; nil: none
	memory       Tree     // /run and /tmp of this boot, where no command has run
	units        units
	closed       bool
	saved        [sha256.Size]byte // SHA-256 of the layer that was stored last
	opened       bool              // the disk was read in this boot
	root         *Root             // root file system; nil: it has none of its own
	base         Tree              // files of the booted root, which other systems share
	own          Tree              // those of this system alone
	lower        lower             // both
	image        *Tree             // image of the booted root, which other systems share
	roots        bool              // the disk has others than the installation's
	decoded      decoded           // the layer that was read last
	watches      watches
	readHardware func() ([]hardwareFile, error)
	pending      pending
	closeLowers  func() error        // nil: other systems have them, too
	cgroups      string              // directory of control groups
	unlimited    sync.Once           // reports that there are no limits
	kernel       hostprograms.Kernel // what its programs have told it
	usage        usage
	values       struct {
		sync.Mutex
		cron     bool              // it has started in this boot
		hostname string            // that was set last; "": that of /etc/hostname
		sysctl   map[string]string // values that commands have set under /proc/sys, by path
	}
}

// ErrClosed means that the system is down.
var ErrClosed = errors.New("the system is down")

// New returns a system that has booted.
func New(c Config) *System {
	c.Limits = c.Limits.orDefault()
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	s := &System{c: c, memory: Tree{}, cgroups: cgroupRoot, readHardware: hardwareOf(c)}
	if c.Lowers == nil && c.Dir != "" {
		s.c.Lowers = NewLowers(c.Dir + ".lowers")
		s.closeLowers = s.c.Lowers.Close
	}
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Guard makes a panic of the goroutine that defers it the end of this system alone: what made it
// panic may be a file of the server's user.
func (s *System) Guard() {
	cause := recover()
	if cause == nil {
		return
	}
	if s.c.Crashed == nil {
		panic(cause)
	}
	s.c.Crashed(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
}

// Close ends all processes and services, unmounts the root, and removes what a boot does
// not keep. The layer stays in its store.
func (s *System) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.pending.close()
	session := s.session
	s.session = nil
	s.mu.Unlock()
	var err error
	if session != nil { // at once, as without power: services get no time to stop
		err = session.end()
	}
	s.stopAll(ErrClosed)
	err = errors.Join(err, s.removeDir())
	if s.closeLowers != nil {
		err = errors.Join(err, s.closeLowers())
	}
	return err
}

// Shutdown ends the services and stores the files, as an orderly shutdown does before
// the power goes. Commands may still run; Close ends them.
func (s *System) Shutdown() error {
	s.stopAll(nil)
	return s.Sync()
}

// Sync stores the files that running processes have written. While some run, it happens every
// writeback, too.
func (s *System) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil
	}
	return s.saveSession(s.session)
}

// writeback is the longest time between a process's write and its storing: as long as Linux
// leaves it in memory (vm.dirty_writeback_centisecs). It is real time.
const writeback = 5 * time.Second

// watch stores the files that processes write, starts the services of path units, and ends
// the session after its last process.
func (s *System) watch(r *session) {
	defer s.Guard()
	store, measure := time.NewTicker(writeback), time.NewTicker(time.Second)
	defer store.Stop()
	defer measure.Stop()
	over, told := int64(0), ""
	for {
		select {
		case <-r.done:
			return
		case <-measure.C:
			over = s.police(r, over)
			continue
		case <-r.idle:
		case <-store.C:
		}
		err := s.tend(r)
		if err == nil {
			err = s.CheckPaths()
		}
		text := ""
		if err != nil && !errors.Is(err, ErrClosed) {
			text = err.Error()
		}
		if text != "" && text != told {
			s.report("%s", text)
		}
		told = text
	}
}

// tend stores the files that the processes of a session have written, and ends it after the last.
func (s *System) tend(r *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != r {
		return ErrClosed
	}
	if err := s.saveSession(r); err != nil {
		return fmt.Errorf("the files of the system are not stored: %w", s.rollBack(r, err, 0))
	}
	return s.endIdle(r)
}

// endIdle ends a session without processes. The caller holds s.mu.
func (s *System) endIdle(r *session) error {
	if r.users > 0 || r.processes() > 0 {
		return nil
	}
	s.session = nil
	return errors.Join(r.end(), s.removeDir())
}

// A limitError is the reason why the files of a session are not stored: they exceed a limit.
type limitError struct {
	nested bool // directories, whose files are not counted any further
	err    error
}

// Error implements error.
func (e *limitError) Error() string { return "killed: " + e.err.Error() }

// Unwrap returns ENOSPC or ENAMETOOLONG.
func (e *limitError) Unwrap() error { return e.err }

// measure returns how many bytes the files of a session have, and a limitError when it cannot be
// stored.
func (s *System) measure(r *session) (size int64, err error) {
	size, err = r.size()
	switch {
	case errors.As(err, new(*nestedError)):
		err = &limitError{true, err}
	case err == nil && size > s.c.Limits.Files:
		err = &limitError{false, full(s.c.Limits.Files)}
	}
	return size, err
}

// police kills what makes the files of a session exceed their limits: the command that was started
// last, and at the next looks those before it while the files still grow. over is their size at the
// last look.
func (s *System) police(r *session, over int64) int64 {
	size, err := s.measure(r)
	limit := new(limitError)
	if !errors.As(err, &limit) {
		return 0
	}
	if !limit.nested && size <= over {
		return over
	}
	kill := request{Kill: true, Reason: limit.Error()}
	if !limit.nested {
		kill.ID = r.newest()
	}
	_ = r.send(kill) // else it has ended
	return size
}

// killed is how long the kernel may take to end the last processes of a command that was killed.
const killed = time.Second

// rollBack ends a session whose files exceed a limit after its last process, for which it waits for a
// time: the files written since the last save are lost. Otherwise what runs stays, and its files are stored when they are
// small enough. The caller holds s.mu.
func (s *System) rollBack(r *session, cause error, within time.Duration) error {
	if !errors.As(cause, new(*limitError)) || r.users > 0 || !r.emptied(within) {
		return cause
	}
	s.session = nil
	return errors.Join(cause, r.end(), s.removeDir())
}

// saveSession stores the files of a session. The caller holds s.mu.
func (s *System) saveSession(r *session) error {
	if _, err := s.measure(r); err != nil {
		return err
	}
	layer, err := r.layer()
	if err != nil {
		return err
	}
	return s.save(layer)
}

// volatile reports whether a file is dropped at each boot.
func volatile(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "run" || first == "tmp"
}

// load returns the system's view when no process runs. The caller holds s.mu.
func (s *System) load() (view, error) {
	if err := s.open(); err != nil {
		return view{}, err
	}
	b, err := s.c.Store.Load()
	if err != nil {
		return view{}, err
	}
	d, err := decodeDisk(b)
	if err != nil {
		return view{}, err
	}
	layer, err := s.decoded.decode(d.layer)
	if err != nil {
		return view{}, err
	}
	for name, n := range s.memory {
		layer[name] = n
	}
	m, err := s.bottom()
	return view{layer, s.lower, m}, err
}

// save stores the layer without /run and /tmp, which a boot drops. The caller holds s.mu.
func (s *System) save(layer Tree) error {
	stored, memory := Tree{}, Tree{}
	for name, n := range layer {
		if volatile(name) {
			memory[name] = n
		} else {
			stored[name] = n
		}
	}
	changed := !memory.equal(s.memory)
	s.memory = memory
	b, err := stored.Encode()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	if sum != s.saved {
		d := &disk{}
		if s.roots {
			was, err := s.c.Store.Load()
			if err != nil {
				return err
			}
			if d, err = decodeDisk(was); err != nil {
				return err
			}
		}
		d.layer = b
		if err := s.store(d); err != nil {
			return err
		}
		s.saved, changed = sum, true
	}
	if changed {
		s.watches.notify(layer)
	}
	return nil
}

// use calls running with the session while processes run, else stored with a view of the
// layer.
func (s *System) use(running func(*session) error, stored func(view) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.session != nil {
		return running(s.session)
	}
	v, err := s.load()
	if err != nil {
		return err
	}
	return stored(v)
}

// Bounds of what is read at once: what a user of the system has put where this program looks must
// not take its memory.
const (
	maxRead   = 64 << 20 // a file
	maxConfig = 1 << 20  // a file that systemd reads
)

// ReadFile returns the content of a file, following links. It refuses what is no regular file, and
// files of more than 64 MiB.
func (s *System) ReadFile(name string) ([]byte, error) { return s.readAtMost(name, maxRead) }

func (s *System) readAtMost(name string, most int64) (content []byte, err error) {
	err = s.use(
		func(r *session) error { content, err = r.readFile(name, most); return err },
		func(v view) error { content, err = v.readFile(name, most); return err })
	return content, err
}

// tooLarge is the error for a file of more than most bytes.
func tooLarge(name string, most int64) error {
	return &fs.PathError{Op: "read", Path: "/" + Clean(name), Err: fmt.Errorf("it has more than %d KiB: %w", most>>10, syscall.EFBIG)}
}

// ReadDir returns the entries of a directory, by name.
func (s *System) ReadDir(name string) (out []Entry, err error) {
	err = s.use(
		func(r *session) error { out, err = r.readDir(name); return err },
		func(v view) error { out, err = v.readDir(name); return err })
	return out, err
}

// Stat returns the node of a name, following links, without its content.
func (s *System) Stat(name string) (n Node, err error) {
	err = s.use(
		func(r *session) error { n, err = r.stat(name); return err },
		func(v view) error { n, _, err = v.stat(name); n.Content = nil; return err })
	return n, err
}

// Put writes nodes, all or none, and creates the directories above them. It replaces
// nodes that exist, but no directory by a file. The error is ENOSPC where the files would exceed
// Limits.Files.
func (s *System) Put(nodes Tree) error {
	for name := range nodes {
		if Clean(name) != name || name == "." {
			return fmt.Errorf("%q: give a path without the leading slash", name)
		}
	}
	return s.use(
		func(r *session) error {
			if err := s.room(nodes, r.sizeOf, r.size); err != nil {
				return err
			}
			return r.put(nodes)
		},
		func(v view) error {
			if err := s.room(nodes, v.layer.sizeOf, v.layer.size); err != nil {
				return err
			}
			for name, n := range nodes {
				if err := v.put(name, n, s.now()); err != nil {
					return err
				}
			}
			return s.save(v.layer)
		})
}

// Remove removes files, and directories recursively. One that is not there is no
// error.
func (s *System) Remove(names ...string) error {
	return s.use(
		func(r *session) error { return r.remove(names) },
		func(v view) error {
			for _, name := range names {
				v.remove(Clean(name))
			}
			return s.save(v.layer)
		})
}

func (s *System) now() time.Time {
	if s.c.Now == nil {
		return time.Time{}
	}
	return s.c.Now()
}

// put writes one node to the layer.
func (v view) put(name string, n Node, now time.Time) error {
	dir, err := v.resolve(path.Dir(name))
	if err != nil {
		return err
	}
	target := path.Join(dir, path.Base(name))
	if n.Mode.IsRegular() { // through a link, as open(2) does
		if target, err = v.resolve(target); err != nil {
			return err
		}
	}
	for up := path.Dir(target); up != "."; up = path.Dir(up) {
		switch above, ok := v.lookup(up); {
		case ok && !above.Mode.IsDir():
			return &fs.PathError{Op: "open", Path: "/" + name, Err: syscall.ENOTDIR}
		case !ok:
			v.layer[up] = Node{Mode: fs.ModeDir | 0o755, Modified: now, Opaque: v.layer[up].Removed}
		}
	}
	if old, ok := v.lookup(target); ok && old.Mode.IsDir() != n.Mode.IsDir() {
		return &fs.PathError{Op: "open", Path: "/" + name, Err: syscall.EISDIR}
	}
	if n.Modified.IsZero() {
		n.Modified = now
	}
	if n.Mode.IsDir() {
		n.Opaque = v.layer[target].Removed || v.layer[target].Opaque
	}
	v.layer[target] = n
	return nil
}

// remove removes a name from the layer, and adds a whiteout if a layer below has it.
func (v view) remove(name string) {
	for below := range v.layer {
		if below == name || strings.HasPrefix(below, name+"/") {
			delete(v.layer, below)
		}
	}
	if _, ok := v.lookup(name); ok && name != "." {
		v.layer[name] = Node{Removed: true}
	}
}

// Layer returns the files that differ from the base, those of /run and /tmp included.
func (s *System) Layer() (layer Tree, err error) {
	err = s.use(
		func(r *session) error { layer, err = r.layer(); return err },
		func(v view) error { layer = v.layer; return nil })
	return layer, err
}

// Change is a line of a comparison.
type Change struct {
	Name string
	What string // added, changed, removed
}

// Changes compares the files with those of the base, by name.
func (s *System) Changes() ([]Change, error) {
	layer, err := s.Layer()
	if err != nil {
		return nil, err
	}
	m, err := s.bottom()
	if err != nil {
		return nil, err
	}
	lower := view{Tree{}, s.lower, m}
	var out []Change
	for name, n := range layer {
		was, there := lower.lookup(name)
		switch {
		case n.Removed:
			out = append(out, Change{name, "removed"})
		case n.Mode.IsDir() && there && was.Mode.IsDir():
		case there:
			out = append(out, Change{name, "changed"})
		default:
			out = append(out, Change{name, "added"})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// sysctl returns the values under /proc/sys that commands of this boot have changed.
func (s *System) sysctl() map[string]string {
	s.values.Lock()
	defer s.values.Unlock()
	return s.values.sysctl
}

func (s *System) setSysctl(values map[string]string) {
	s.values.Lock()
	defer s.values.Unlock()
	s.values.sysctl = values
}

// removeDir removes the directory of the mounts.
func (s *System) removeDir() error {
	if s.c.Dir == "" {
		return nil
	}
	return removeAll(s.c.Dir)
}

// Bounds of the paths of a system's files. Each directory above a file is open while the file is
// read, and a path of this machine has at most 4,095 bytes (Linux, PATH_MAX).
const (
	maxDepth = 256
	maxPath  = 2048 // bytes
)

// A nestedError is the reason why files are not read or stored.
type nestedError struct{ name string }

// Error implements error.
func (e *nestedError) Error() string {
	const shown = 64
	name := e.name
	if len(name) > shown {
		name = name[:shown] + "…"
	}
	return fmt.Sprintf("/%s: more than %d directories below each other, or a path of more than %d bytes: remove them", name, maxDepth, maxPath)
}

// Unwrap returns ENAMETOOLONG.
func (*nestedError) Unwrap() error { return syscall.ENAMETOOLONG }
