package lcm

import (
	"context"

	"github.com/metalab-dev/metalab/agent/sys"
)

// System is the operating system of the server. All names are absolute paths.
type System interface {
	Files
	Commands
	Boots
}

// Files are the files of a system.
type Files interface {
	// ReadFile returns the content of a file; fs.ErrNotExist if there is none.
	ReadFile(name string) ([]byte, error)
	// ReadDir returns the names in a directory, sorted; fs.ErrNotExist if there is none.
	ReadDir(name string) ([]string, error)
	// Put writes files, and creates the directories above them. A file that is replaced
	// has the old content after a failure.
	Put(files ...sys.File) error
	// Remove removes files, and directories recursively.
	Remove(names ...string) error
}

// Commands run programs in a system.
type Commands interface {
	// Exec runs a command and returns its exit code. ctx ends it with all processes that
	// it has started.
	Exec(ctx context.Context, c sys.Command) (int, error)
	// Path returns the path by which commands see a file.
	Path(name string) string
}

// Boots are the boots of a system.
type Boots interface {
	Boot() (sys.Boot, error)
	// Reboot asks the system to shut down in order and to boot again. It returns before
	// that has happened.
	Reboot(ctx context.Context) error
}

// Files of the agent. What is below runDir is in memory, where systems have /run so.
const (
	stateFile = "/var/lib/lab-agent/lcm.json"
	runDir    = "/run/lab-agent"
	keysFile  = "/root/.ssh/authorized_keys"
	// rebootRequestFile is where a playbook asks for a reboot: a line for each reason.
	rebootRequestFile = "/run/day2/reboot-required"
)
