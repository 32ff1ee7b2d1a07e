package bmctest

import (
	"context"
	"fmt"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// ReadInventory is the verb of bmc.Inspector.
const ReadInventory Verb = "Inventory"

var (
	_ bmc.Inspector = (*Fake)(nil)
	_ bmc.Inspector = (*login)(nil)
)

// SetHardware sets the inventory that the BMC returns. With nil, as before the first
// call, the BMC has none.
func (f *Fake) SetHardware(i *bmc.Inventory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hardware = i
}

// Inventory implements bmc.Inspector.
func (f *Fake) Inventory(ctx context.Context) (bmc.Inventory, error) {
	if err := f.enter(ctx, Call{Verb: ReadInventory}); err != nil {
		return bmc.Inventory{}, err
	}
	defer f.mu.Unlock()
	if f.hardware == nil {
		return bmc.Inventory{}, fmt.Errorf("bmctest: %w", &bmc.UnsupportedError{Verb: string(ReadInventory), Why: "it shows no hardware"})
	}
	out := *f.hardware
	out.System = f.system
	return out, nil
}

func (l *login) Inventory(ctx context.Context) (bmc.Inventory, error) {
	if err := l.allowed(); err != nil {
		return bmc.Inventory{}, err
	}
	return l.fake.Inventory(ctx)
}
