// Package shards runs a lab in several processes of one computer. Each is a shard: it runs
// a part of the hosts, has a state directory of its own below the lab's, and is started
// again when it dies. The package knows neither the Kubernetes API nor the controllers.
package shards

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

const (
	// Dir is the directory, in the lab's, that has a state directory for each shard.
	Dir = "shards"
	// TokenFile is the file in Dir with the token of the shards' control API.
	TokenFile = "token"
	// AddressFile is the file in a shard's directory with the address of its control API.
	AddressFile = "control.address"

	prefix = "shard-"

	// Pattern matches the names of the shards' directories, as path.Match does.
	Pattern = prefix + "*"
)

// Name returns the name of a shard, counted from 0, and of its directory.
func Name(i int) string { return prefix + strconv.Itoa(i) }

// StateOf returns the state directory of a shard of the lab in dir.
func StateOf(dir string, i int) string { return filepath.Join(dir, Dir, Name(i)) }

// Config configures a Set.
type Config struct {
	Dir  string       // state directory of the lab
	Rack rackfile.Lab // all hosts, without a part
	Size int          // hosts of a shard; the last may have fewer
	// Count is how many shards run. Those beyond it that have a state directory are kept,
	// and their hosts are offline.
	Count int
	// Prepare writes the files that a shard needs to start into its state directory. It is called
	// before each start.
	Prepare func(i int, dir string, part rackfile.Lab) error
	// Command returns the command that runs the shard in a state directory. It must write
	// the address of its control API to AddressFile and then the line "ready" to file
	// descriptor 3, and end when its standard input ends.
	Command func(dir, tokenFile string) *exec.Cmd
	Log     *slog.Logger // nil: none
}

// Set is the shards of a lab.
type Set struct {
	c     Config
	token string

	scaling sync.Mutex // held while shards are started and stopped

	mu     sync.Mutex
	shards []*shard
	ctx    context.Context // context of the processes
	cancel context.CancelFunc
	all    sync.WaitGroup // goroutines that run processes
}

// New returns the shards of a lab, which Start starts.
func New(c Config) (*Set, error) {
	switch {
	case c.Size < 1:
		return nil, fmt.Errorf("Config.Size: %d: must be 1 or more", c.Size)
	case c.Prepare == nil || c.Command == nil:
		return nil, errors.New("Config.Prepare and Config.Command must not be nil")
	case c.Rack.Part != nil:
		return nil, errors.New("Config.Rack: must not be a part")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Set{c: c}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, s.fit(c.Count, c.Rack)
}

// Made returns how many shards the lab in dir has ever had: the directories of those that
// were scaled in are kept.
func Made(dir string) (int, error) {
	entries, err := os.ReadDir(filepath.Join(dir, Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if i, err := strconv.Atoi(strings.TrimPrefix(e.Name(), prefix)); err == nil && e.IsDir() {
			n = max(n, i+1)
		}
	}
	return n, nil
}

// fit makes the list of shards: those that run, and those that are kept.
func (s *Set) fit(count int, all rackfile.Lab) error {
	made, err := Made(s.c.Dir)
	if err != nil {
		return err
	}
	if most := (all.Total() + s.c.Size - 1) / s.c.Size; count < 1 || count > most {
		return fmt.Errorf("%d: use 1 to %d: the lab's definition has %d hosts, and a shard of it %d", count, most, all.Total(), s.c.Size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.shards); i < max(made, count); i++ {
		s.shards = append(s.shards, &shard{index: i, dir: StateOf(s.c.Dir, i)})
	}
	for i, x := range s.shards {
		x.rack = all
		x.rack.Part = &rackfile.Part{First: i * s.c.Size, Count: s.c.Size}
	}
	s.c.Count = count
	return nil
}

// Start starts the shards, and returns when all of them are up. The lab in the directory
// must be open: its certificate authority signs for all shards.
func (s *Set) Start(ctx context.Context) error {
	var err error
	if s.token, err = loadToken(filepath.Join(s.c.Dir, Dir)); err != nil {
		return err
	}
	return s.startSome(ctx, s.list()[:s.c.Count])
}

func (s *Set) list() []*shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shards)
}

// startSome starts shards at the same time, and returns when all of them are up.
func (s *Set) startSome(ctx context.Context, some []*shard) error {
	errs := make(chan error, len(some))
	for _, x := range some {
		x.begin(s)
		s.all.Go(func() { s.keep(x) })
		go func() { errs <- x.awaitFirst(ctx) }()
	}
	var all error
	for range some {
		if err := <-errs; err != nil && all == nil {
			all = err
		}
	}
	return all
}

// Scale starts or stops shards until as many run as asked. all is the definition, which may
// have more hosts than before. Hosts of shards that were stopped are offline, and come back
// as they were.
func (s *Set) Scale(ctx context.Context, count int, all rackfile.Lab) error {
	s.scaling.Lock()
	defer s.scaling.Unlock()
	was := s.c.Count
	if err := s.fit(count, all); err != nil {
		return err
	}
	if count > was {
		return s.startSome(ctx, s.list()[was:count])
	}
	for _, x := range s.list()[count:] {
		x.end()
	}
	return nil
}

// Stop stops all shards, and returns when their processes have ended.
func (s *Set) Stop() error {
	s.cancel()
	s.all.Wait()
	return nil
}

// Shards returns all shards in the order of their hosts.
func (s *Set) Shards() []control.Shard {
	var out []control.Shard
	for _, x := range s.list() {
		out = append(out, x.describe())
	}
	return out
}

// Released returns when no process has a shard of the lab in dir open.
func Released(ctx context.Context, dir string) error {
	made, err := Made(dir)
	for i := 0; i < made && err == nil; i++ {
		err = rack.Released(ctx, StateOf(dir, i))
	}
	return err
}

// loadToken reads the token of the shards, or makes it.
func loadToken(dir string) (string, error) {
	name := filepath.Join(dir, TokenFile)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(rand.Text() + "\n") // at least 128 bits
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = writeAtomically(name, b, 0o600)
		}
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if len(token) < len(rand.Text()) { // a token that was cut short is easier to guess
		return "", fmt.Errorf("%s holds no whole token: remove it, and the next start makes one", name)
	}
	return token, nil
}

// ShareAuthority gives a shard the certificate authority of its lab, from the directory that
// has its certificate and key.
func ShareAuthority(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{network.CAKeyFile, network.CACertFile} { // the certificate last: it says that both are there
		if _, err := os.Stat(filepath.Join(to, name)); err == nil {
			continue
		}
		st, err := os.Stat(filepath.Join(from, name))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = writeAtomically(filepath.Join(to, name), b, st.Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeAtomically writes a file completely or not at all, also when this process dies.
func writeAtomically(name string, b []byte, mode fs.FileMode) error {
	if err := os.WriteFile(name+".part", b, mode); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// authorities returns the pool with the authority of a lab.
func authorities(dir string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(filepath.Join(dir, network.CACertFile))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", filepath.Join(dir, network.CACertFile))
	}
	return pool, nil
}
