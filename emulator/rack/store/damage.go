package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// DamageError means that a file of the store was changed, cut or removed by another
// program.
type DamageError struct {
	Path   string
	Offset int64 // byte at which the damage was found; -1 when it is the file as a whole
	Detail string
	Fix    string // the user's choices
}

// Error implements error.
func (e *DamageError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("%s is damaged%s: %s: %s", e.Path, at, e.Detail, e.Fix)
}

const restoreFix = "restore a snapshot (labctl snapshot restore FILE), or remove the lab (labctl down --delete)"

// unreadable returns the error for a file of the store that cannot be read.
func unreadable(path string, err error) error {
	st, statErr := os.Stat(path)
	switch {
	case statErr == nil && st.IsDir(), errors.Is(err, syscall.EISDIR):
		return &DamageError{Path: path, Offset: -1, Detail: "it is a directory", Fix: "move it away, and " + restoreFix}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: run labctl as the user that owns the file", path, errors.Unwrap(err))
	}
	return err
}
