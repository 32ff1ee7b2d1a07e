package command

import (
	"context"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Host is what commands need of one host. Views are immutable; commands return
// after their effect is stored.
type Host interface {
	Name() string
	Dialect() *dialect.Record
	Machine() *machine.View
	BMC() *bmc.View
	Now() time.Time       // lab time
	ClientNow() time.Time // client time (see package clock)
	// Accounts returns the BMC's accounts with their passwords, which RAKP
	// needs. The slice is never changed.
	Accounts() []bmc.Account
	// KG returns the BMC key K_G; nil when there is none.
	KG() []byte
	// FactoryCertificate returns the certificate that the BMC came with.
	FactoryCertificate() (bmc.KeyedCertificate, error)
	// Login checks credentials and counts the login.
	Login(c bmc.Credentials) (bmc.Account, bool)
	Apply(ctx context.Context, c machine.Command) error
	ApplyBMC(ctx context.Context, c bmc.Command) ([]bmc.Event, error)
}
