package ipmi

import (
	"bytes"
	"maps"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var lanCommands = []command{
	{fn: wire.Transport, cmd: 0x01, name: "Set LAN Configuration Parameters", needs: wire.Administrator, least: 2, most: -1, acts: true, run: setLAN},
	{fn: wire.Transport, cmd: 0x02, name: "Get LAN Configuration Parameters", needs: wire.Operator, least: 4, most: 4, run: getLAN},
	{fn: wire.Transport, cmd: 0x03, name: "Suspend BMC ARPs", needs: wire.Administrator, least: 2, most: 2, run: suspendARP},
	{fn: wire.Transport, cmd: 0x04, name: "Get IP/UDP/RMCP Statistics", needs: wire.User, least: 2, most: 2, run: statistics},
}

// lanScratch is what is remembered of the LAN channel.
type lanScratch struct {
	progress progress
	// destination is that of number 0, which is not kept, by parameter.
	destination map[byte][]byte
	traffic     traffic
}

// lanParameter is a parameter of the LAN channel (table 23-4). Data is without
// the selectors.
type lanParameter struct {
	size  int  // bytes; -1: set sees to it
	sets  int  // how many there are of it; 0: there is one, without a selector
	block bool // a block selector follows that of the set: there is one block
	read  func(x *exchange, set byte) []byte
	write func(x *exchange, set byte, data []byte) error // nil: read-only
}

// lanParameters are all of them.
var lanParameters = func() map[byte]*lanParameter {
	all := maps.Clone(lanV4)
	maps.Copy(all, lanRMCP)
	maps.Copy(all, lanV6)
	return all
}()

// selectors are how many bytes come before the data.
func (p *lanParameter) selectors() int {
	switch {
	case p.block:
		return 2
	case p.sets > 0:
		return 1
	}
	return 0
}

// setLAN is §23.1. What is set holds at once.
func setLAN(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	data := x.data[2:]
	if x.data[1] == inProgress {
		return x.side.lan.progress.set(data)
	}
	p := lanParameters[x.data[1]]
	switch {
	case p == nil:
		return noParameter
	case p.write == nil:
		return readOnly
	}
	n, set := p.selectors(), byte(0)
	if len(data) < n || p.size >= 0 && len(data) != n+p.size {
		return BadLength
	}
	if n > 0 {
		set = data[0]
	}
	if int(set) >= max(p.sets, 1) || n > 1 && data[1] != 0 {
		return OutOfRange
	}
	if bytes.Equal(data[n:], p.read(x, set)) {
		return nil // a client that writes back what it has read changes nothing
	}
	return p.write(x, set, data[n:])
}

// getLAN is §23.2.
func getLAN(x *exchange) error {
	if !x.lan(x.data[0] &^ onlyRevision) {
		return BadField
	}
	p, set, block := lanParameters[x.data[1]], x.data[2], x.data[3]
	if p == nil && x.data[1] != inProgress {
		return noParameter
	}
	x.put(revision)
	switch {
	case x.data[0]&onlyRevision != 0:
		return nil
	case p == nil:
		x.put(byte(x.side.lan.progress))
		return nil
	}
	n := p.selectors()
	if n > 0 {
		if int(set) >= p.sets {
			return OutOfRange
		}
		x.put(set)
	}
	if n > 1 {
		if block != 0 {
			return OutOfRange
		}
		x.put(block)
	}
	x.put(p.read(x, set)...)
	return nil
}

// fixed is a parameter that nobody can write.
func fixed(b ...byte) *lanParameter {
	return &lanParameter{size: len(b), read: func(*exchange, byte) []byte { return b }}
}

// kept is a parameter that nothing else depends on. valid may be nil.
func kept(n byte, valid func(b []byte) bool, begin ...byte) *lanParameter {
	return &lanParameter{
		size: len(begin),
		read: func(x *exchange, set byte) []byte {
			if b := x.bmc().Channel.Read(lanTable, n, set); b != nil {
				return b
			}
			return begin
		},
		write: func(x *exchange, set byte, data []byte) error {
			if valid != nil && !valid(data) {
				return BadField
			}
			_, err := x.tell(bmc.Write{Written: bmc.Written{Table: lanTable, Param: n, Set: set, Data: data}})
			return err
		},
	}
}

// atMost says whether the only byte has a value of at most that.
func atMost(most byte) func(b []byte) bool { return func(b []byte) bool { return b[0] <= most } }

// suspendARP is §23.3. Loopback knows no ARP: all there is to it is the answer,
// which depends on the watchdog.
func suspendARP(x *exchange) error {
	if !x.lan(x.data[0]) || x.data[1] > 3 {
		return BadField
	}
	occurring := lanParameters[10].read(x, 0)[0]
	if !x.machine().Watchdog.Until.IsZero() {
		occurring &^= x.data[1]
	}
	x.put(occurring)
	return nil
}

// traffic counts datagrams of one BMC. Each count stays at its highest.
type traffic struct{ received, valid, sent uint16 }

func count(n *uint16) {
	if *n < 0xffff {
		*n++
	}
}

// statistics is §23.4. A BMC here sees no packet that the network has spoilt.
func statistics(x *exchange) error {
	if !x.lan(x.data[0]) || x.data[1] > 1 {
		return BadField
	}
	t := &x.side.lan.traffic
	if x.data[1] == 1 {
		*t = traffic{}
	}
	for _, n := range []uint16{t.received, 0, 0, 0, t.sent, t.received, t.valid, 0, 0} {
		x.put16(n)
	}
	return nil
}
