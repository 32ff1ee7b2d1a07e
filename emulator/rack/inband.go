package rack

import (
	"context"

	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/ipmi/vm"
)

// inBand implements vm.BMC for one host.
type inBand struct{ host *Host }

// InBand returns the BMC as the host's own software sees it over the system
// interface: with the same state as over the network, without a login.
func (h *Host) InBand() vm.BMC { return inBand{h} }

// Ask implements vm.BMC.
func (b inBand) Execute(ctx context.Context, lun, fn, cmd byte, data []byte) (code byte, answer []byte, ok bool) {
	return b.host.rack.ipmi.ExecuteInBand(ctx, b.host, ipmi.InBandRequest{LUN: lun, NetFn: fn, Cmd: cmd, Data: data})
}
