//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"time"
)

// session cannot begin: namespaces are Linux'.
// Lowers are not needed.
type Lowers struct{}

// NewLowers returns nothing.
func NewLowers(string) *Lowers { return nil }

// Close does nothing.
func (*Lowers) Close() error { return nil }

type session struct {
	users int
	done  chan struct{}
	idle  chan struct{}
}

type request struct {
	Kill    bool
	ID      int
	Signal  int
	Reason  string
	Service *attributes
}

var errNoNamespaces = &CannotRunError{errors.ErrUnsupported}

// CheckLimits returns nil: no command runs here.
func CheckLimits() error { return nil }

const cgroupRoot = ""

func kernelRelease() string { return "" }

func removeAll(dir string) error { return os.RemoveAll(dir) }

func newSession(*System, Tree) (*session, error)                           { return nil, errNoNamespaces }
func (*session) exec(context.Context, Command, time.Duration) (int, error) { return 0, errNoNamespaces }
func (*session) layer() (Tree, error)                                      { return nil, errNoNamespaces }
func (*session) send(request) error                                        { return errNoNamespaces }
func (*session) size() (int64, error)                                      { return 0, errNoNamespaces }
func (*session) hasEnded() bool                                            { return true }
func (*session) newest() int                                               { return 0 }
func (*session) processes() int                                            { return 0 }
func (*session) rename(string)                                             {}
func (*session) emptied(time.Duration) bool                                { return true }
func (*session) cpuTime() time.Duration                                    { return 0 }
func (*session) end() error                                                { return nil }
func (*session) readFile(string, int64) ([]byte, error)                    { return nil, errNoNamespaces }
func (*session) readDir(string) ([]Entry, error)                           { return nil, errNoNamespaces }
func (*session) stat(string) (Node, error)                                 { return Node{}, errNoNamespaces }
func (*session) names(string) ([]string, error)                            { return nil, errNoNamespaces }
func (*session) link(string) (string, bool)                                { return "", false }
func (*session) showModules(string) error                                  { return errNoNamespaces }
func (*session) put(Tree) error                                            { return errNoNamespaces }
func (*session) sizeOf(string) int64                                       { return 0 }
func (*session) remove([]string) error                                     { return errNoNamespaces }
