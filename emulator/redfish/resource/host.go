package resource

import (
	"context"
	"io"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Host is a BMC with its machine. The views are immutable: a change makes a new
// one. All methods are safe for concurrent use.
type Host interface {
	Dialect() *dialect.Record
	Machine() *machine.View
	BMC() *bmc.View
	Now() time.Time // the lab's time
	// Login checks credentials and counts failed logins.
	Login(c bmc.Credentials) (bmc.Account, bool)
	Resume(token string) (bmc.Session, bool)
	// Apply applies a command to the machine and returns when its effect is stored.
	Apply(ctx context.Context, c machine.Command) error
	// Begin opens a task and applies the command that c returns for the task's ID.
	// Both are stored together; a command that fails leaves no task.
	Begin(ctx context.Context, o bmc.OpenTask, c func(job string) machine.Command) (bmc.Task, error)
	// RunTask opens a task and runs do in the background; the command that do returns
	// closes the task. RunTask returns at once. Cancelling the task ends do's ctx.
	RunTask(ctx context.Context, o bmc.OpenTask, do func(ctx context.Context, job string) bmc.CloseTask) (bmc.Task, error)
	// Cancel cancels a task, or returns machine.ErrUnstoppable. The task may stay
	// Cancelling for a while.
	Cancel(ctx context.Context, job string) error
	// StoreImage stores a firmware image of at most most bytes until its update is
	// over or DropImage deletes it. A larger image gives ErrTooLarge.
	StoreImage(ctx context.Context, r io.Reader, most int64) (Image, error)
	DropImage(id string)
	// FetchUpdate opens a task that fetches an image and then installs it with
	// stage, completed by the fields that come from the image.
	FetchUpdate(ctx context.Context, o bmc.OpenTask, from ImageSource, stage firmware.Stage) (bmc.Task, error)
	// ApplyBMC applies a command to the BMC and returns its events. InsertMedia
	// returns when the image is fetched, or with an error that wraps bmc.ErrMedia.
	ApplyBMC(ctx context.Context, c bmc.Command) ([]bmc.Event, error)
	// FactoryCertificate returns the BMC's factory certificate and its key, always
	// the same.
	FactoryCertificate() (bmc.KeyedCertificate, error)
}
