package ipmi

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// writes are the commands by which clients configure a BMC.
var writes = map[place]bool{
	{fn: wire.App, cmd: 0x40}: true, {fn: wire.App, cmd: 0x43}: true, {fn: wire.App, cmd: 0x45}: true, {fn: wire.App, cmd: 0x47}: true,
	{fn: wire.App, cmd: 0x4c}: true, {fn: wire.App, cmd: 0x56}: true, {fn: wire.App, cmd: 0x58}: true,
	{fn: wire.Transport, cmd: 0x01}: true, {fn: wire.Transport, cmd: 0x21}: true,
}

// commits are the writes of a BMC that does not keep many at a time.
type commits struct {
	n    int
	last time.Time
}

// lost says whether a write is taken and not kept, as too many have come just
// before.
func (x *exchange) lost(row *command) bool {
	f := &x.host.Dialect().IPMI.Faults
	if f.KeptWrites == 0 || !writes[place{fn: row.fn, cmd: row.cmd}] {
		return false
	}
	c := &x.side.commits
	if c.last.IsZero() || x.now.Sub(c.last) >= f.WriteWindow {
		c.n = 0
	}
	c.n, c.last = c.n+1, x.now
	return c.n > f.KeptWrites
}
