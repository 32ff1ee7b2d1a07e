package bmc

import (
	"context"
	"errors"
	"io"
	"strings"
)

// Updater is a Client whose BMC installs firmware. Every Client of a Pool is
// one; where the BMC has no such thing its methods fail with an
// UnsupportedError.
type Updater interface {
	// Components are those of the system that are updated by name: its BIOS,
	// its BMC and its network adapters.
	Components(ctx context.Context) ([]Component, error)
	// Component reads one of them, with what its inventory tells.
	Component(ctx context.Context, name string) (Component, error)
	// Update makes the BMC fetch an image and install it. It returns the task
	// that does, "" where the BMC gives none.
	Update(ctx context.Context, component, url string) (task string, err error)
	// Push sends an image of that many bytes to be installed; -1 when nobody
	// knows how many.
	Push(ctx context.Context, component, name string, image io.Reader, size int64) (task string, err error)
	// Task reads how far a task is. It fails with ErrNoTask when the BMC has
	// forgotten it.
	Task(ctx context.Context, task string) (Task, error)
}

// ErrNoTask says that a BMC does not know a task, perhaps no longer.
var ErrNoTask = errors.New("the BMC has no such task")

// Names of components. Those of network adapters are ComponentNIC and the
// BMC's name of the adapter.
const (
	ComponentBIOS = "bios"
	ComponentBMC  = "bmc"
	ComponentNIC  = "nic:"
)

// Component is a part of a system that runs firmware.
type Component struct {
	Name    string
	Version string

	// The rest is told by Component alone, where there is an inventory.
	Updating bool   // an update of it is under way
	Staged   string // version of an image that waits to be activated
	Health   string // OK, Warning, Critical or ""
}

// IsNIC says whether a component is a network adapter.
func (c Component) IsNIC() bool { return strings.HasPrefix(c.Name, ComponentNIC) }

// TaskState is how a task stands.
type TaskState string

// The states.
const (
	TaskRunning TaskState = "running"
	TaskWaiting TaskState = "waiting" // for a reset, or another time
	TaskDone    TaskState = "done"
	TaskFailed  TaskState = "failed"
)

// Task is work that a BMC goes on with by itself.
type Task struct {
	State   TaskState
	Percent int
	Text    string // what the BMC says of it
}
