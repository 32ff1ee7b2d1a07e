package sys

import (
	"io"
	"io/fs"
	"time"
)

// File is a file, a directory or a symbolic link that is written to a system.
type File struct {
	Name    string      // absolute path
	Mode    fs.FileMode // type and permission bits
	Content []byte      // content of a regular file
	Link    string      // target of a symbolic link
	// UID and GID are the owner of a regular file, where the agent may give files away; 0 is
	// the agent's user.
	UID, GID int
}

// FileInfo describes a file of a system.
type FileInfo struct {
	Mode     fs.FileMode // type and permission bits
	UID, GID int
}

// Command is a program that runs in a system.
type Command struct {
	Args   []string  // the program first, by its name or path
	Env    []string  // beside PATH, HOME and LANG
	Dir    string    // absolute path; "" is the home directory
	Stdin  io.Reader // nil: nothing
	Stdout io.Writer // nil: discarded
	Stderr io.Writer
}

// Exit codes of commands that did not run or were ended by a signal (POSIX, Shell Command
// Language §2.8.2).
const (
	CodeCannotRun = 126
	CodeNotFound  = 127
	CodeSignal    = 128 // plus the signal's number
)

// Boot identifies a boot of a system.
type Boot struct {
	ID   string // differs for each boot
	Time time.Time
}
