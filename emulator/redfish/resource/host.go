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

// Host is one BMC with its machine. The views are immutable: a change makes a
// new one. All methods are safe for concurrent use.
type Host interface {
	Dialect() *dialect.Record
	Machine() *machine.View
	BMC() *bmc.View
	Now() time.Time // of the lab
	// Login checks credentials and counts those that are wrong.
	Login(c bmc.Credentials) (bmc.Account, bool)
	Resume(token string) (bmc.Session, bool)
	// Apply carries out a command and returns when its effect is stored.
	Apply(ctx context.Context, c machine.Command) error
	// Begin opens a job and carries out the command that it stands for, whose
	// ID c is told. They are stored together; a command that is refused leaves
	// no job.
	Begin(ctx context.Context, o bmc.OpenTask, c func(job string) machine.Command) (bmc.Task, error)
	// Carry opens a job whose work no model does, and lets do do it, which
	// closes the job. It returns at once; ctx of do ends when the job is
	// cancelled.
	Carry(ctx context.Context, o bmc.OpenTask, do func(ctx context.Context, job string) bmc.CloseTask) (bmc.Task, error)
	// Cancel ends a job before its time, or answers machine.ErrUnstoppable. The
	// job may be Cancelling for a while.
	Cancel(ctx context.Context, job string) error
	// StoreImage keeps a firmware image of at most that many bytes, which its
	// update or DropImage forgets, or answers ErrTooLarge.
	StoreImage(ctx context.Context, r io.Reader, most int64) (Image, error)
	DropImage(id string)
	// FetchUpdate opens a job that fetches an image and then installs it as
	// stage says, which lacks what only the image tells.
	FetchUpdate(ctx context.Context, o bmc.OpenTask, from ImageSource, stage firmware.Stage) (bmc.Task, error)
	// ApplyBMC carries out a command to the BMC; inserting media it returns when the
	// image was fetched, or with bmc.ErrMedia and the reason.
	ApplyBMC(ctx context.Context, c bmc.Command) ([]bmc.Event, error)
	// Factory is the certificate that the BMC came with, and its key. It is the
	// same each time.
	FactoryCertificate() (bmc.KeyedCertificate, error)
}
