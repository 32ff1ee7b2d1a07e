package command

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// configurationWrites are the commands that configure a BMC: of channels,
// users, LAN and SOL.
var configurationWrites = map[commandKey]bool{
	{fn: wire.App, cmd: 0x40}: true, {fn: wire.App, cmd: 0x43}: true, {fn: wire.App, cmd: 0x45}: true, {fn: wire.App, cmd: 0x47}: true,
	{fn: wire.App, cmd: 0x4c}: true, {fn: wire.App, cmd: 0x56}: true, {fn: wire.App, cmd: 0x58}: true,
	{fn: wire.Transport, cmd: 0x01}: true, {fn: wire.Transport, cmd: 0x21}: true,
}

// writeBurst counts the configuration writes that follow each other closely,
// for a BMC that loses writes when too many come at a time.
type writeBurst struct {
	n    int
	last time.Time // client time
}

// dropsWrite reports whether a write is answered as completed but not stored,
// because too many preceded it.
func (x *Request) dropsWrite(row *Row) bool {
	f := &x.Host.Dialect().IPMI.Faults
	if f.WritesPerWindow == 0 || !configurationWrites[commandKey{fn: row.fn, cmd: row.cmd}] {
		return false
	}
	c, now := &x.State.writeBurst, x.Host.ClientNow()
	if c.last.IsZero() || now.Sub(c.last) >= f.WriteWindow {
		c.n = 0
	}
	c.n, c.last = c.n+1, now
	return c.n > f.WritesPerWindow
}
