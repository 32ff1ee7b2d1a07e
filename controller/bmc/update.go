package bmc

import (
	"context"
	"errors"
	"io"
	"strings"
)

// Updater is a Client that installs firmware. Every Client of a Pool implements
// it; its methods return an UnsupportedError if the BMC cannot.
type Updater interface {
	// Components lists the components that can be updated by name: the BIOS, the
	// BMC and the network adapters.
	Components(ctx context.Context) ([]Component, error)
	// Component reads one component and its entry in the firmware inventory.
	Component(ctx context.Context, name string) (Component, error)
	// Update makes the BMC fetch an image and install it. It returns the ID of the
	// task, "" if the BMC reports none.
	Update(ctx context.Context, component, url string) (task string, err error)
	// Push sends an image of size bytes and installs it; size is -1 if it is
	// unknown. It returns the ID of the task like Update.
	Push(ctx context.Context, component, name string, image io.Reader, size int64) (task string, err error)
	// Task reads the progress of a task. It returns ErrNoTask if the BMC does not
	// know the task.
	Task(ctx context.Context, task string) (Task, error)
}

// ErrNoTask reports that a BMC does not know a task, or no longer.
var ErrNoTask = errors.New("the BMC has no such task")

// Names of components. A network adapter is ComponentNIC followed by the BMC's
// name of the adapter.
const (
	ComponentBIOS = "bios"
	ComponentBMC  = "bmc"
	ComponentNIC  = "nic:"
)

// Component is a part of a system that runs firmware.
type Component struct {
	Name    string
	Version string

	// Only the method Component sets the following, and only if there is an
	// inventory entry.
	Updating bool   // an update is in progress
	Staged   string // version of an image that waits for activation
	Health   string // OK, Warning, Critical or ""
}

// IsNIC reports whether the component is a network adapter.
func (c Component) IsNIC() bool { return strings.HasPrefix(c.Name, ComponentNIC) }

// TaskState is the state of a task.
type TaskState string

// The task states.
const (
	TaskRunning TaskState = "running"
	TaskWaiting TaskState = "waiting" // for a reset, or for another time
	TaskDone    TaskState = "done"
	TaskFailed  TaskState = "failed"
)

// Task is an asynchronous task of a BMC.
type Task struct {
	State   TaskState
	Percent int
	Text    string // messages of the BMC
}
