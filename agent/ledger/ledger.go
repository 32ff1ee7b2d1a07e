// Package ledger records on a host which files a family owns there, so that the agent of another
// family that changes one reports a conflict, and neither fights over it. The record is a file:
// it serves agents in several processes, and outlives a boot.
//
// The package knows no family, and restores no file.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
)

// File has the record.
const File = "/var/lib/lab-agent/paths.json"

// System is the part of an operating system that the ledger uses.
type System interface {
	ReadFile(name string) ([]byte, error)
	Put(files ...sys.File) error
}

// Record is the content of the ledger.
type Record struct {
	Owner   string            // owner of the files, as a message names it: "MachineConfig rendered-worker-1"
	Files   map[string]string // SHA-256 of the content that the owner gives them
	Changed map[string]string // the owner that changed a file last, by the file's path
}

// Load reads the record; a host without one has no owned files.
func Load(s System) (Record, error) {
	r := Record{Files: map[string]string{}, Changed: map[string]string{}}
	b, err := s.ReadFile(File)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, fmt.Errorf("ledger: %s: %w", File, err)
	}
	return r, nil
}

func (r Record) store(s System) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := s.Put(sys.File{Name: File, Mode: 0o600, Content: b}); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// Claim makes an owner the one of files, by their content, in place of the files that it owned
// before. Earlier changes are forgotten.
func Claim(s System, owner string, files map[string][]byte) error {
	current, err := Load(s)
	if err != nil {
		return err
	}
	r := Record{Owner: owner, Files: map[string]string{}, Changed: map[string]string{}}
	for name, content := range files {
		r.Files[name] = sum(content)
	}
	if current.Owner == r.Owner && maps.Equal(current.Files, r.Files) && len(current.Changed) == 0 {
		return nil
	}
	return r.store(s)
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// differing returns the owned files whose content is another one, sorted.
func (r Record) differing(s System) (out []string) {
	for name, want := range r.Files {
		if b, err := s.ReadFile(name); err != nil || sum(b) != want {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// A ConflictError says that files of an owner were changed by somebody else.
type ConflictError struct {
	Owner string
	Files []string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict: %s of %s: change it there, or leave it out here", strings.Join(e.Files, ", "), e.Owner)
}

// Guard compares the owned files before and after a change of the host.
type Guard struct {
	s      System
	before []string
	owned  bool
}

// NewGuard begins a change of the host.
func NewGuard(s System) (*Guard, error) {
	r, err := Load(s)
	if err != nil {
		return nil, err
	}
	return &Guard{s, r.differing(s), len(r.Files) > 0}, nil
}

// End records the owned files that have changed as changed by somebody, and returns a
// *ConflictError for them, and for those that the same has changed before and that are not as
// the owner wants them yet.
func (g *Guard) End(by string) error {
	if !g.owned {
		return nil
	}
	r, err := Load(g.s)
	if err != nil {
		return err
	}
	conflict := &ConflictError{Owner: r.Owner}
	record := false
	for _, name := range r.differing(g.s) {
		if !slices.Contains(g.before, name) && r.Changed[name] != by {
			r.Changed[name], record = by, true
		}
		if r.Changed[name] == by {
			conflict.Files = append(conflict.Files, name)
		}
	}
	if record {
		if err := r.store(g.s); err != nil {
			return err
		}
	}
	if len(conflict.Files) == 0 {
		return nil
	}
	return conflict
}
