package command

import (
	"bytes"
	"maps"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var lanCommands = []Row{
	{fn: wire.Transport, cmd: 0x01, name: "Set LAN Configuration Parameters", privilege: wire.Administrator, least: 2, most: -1, mutates: true, run: setLAN},
	{fn: wire.Transport, cmd: 0x02, name: "Get LAN Configuration Parameters", privilege: wire.Operator, least: 4, most: 4, run: getLAN},
	{fn: wire.Transport, cmd: 0x03, name: "Suspend BMC ARPs", privilege: wire.Administrator, least: 2, most: 2, run: suspendARPs},
	{fn: wire.Transport, cmd: 0x04, name: "Get IP/UDP/RMCP Statistics", privilege: wire.User, least: 2, most: 2, run: getIPStatistics},
}

// lanState is the volatile state of the LAN channel.
type lanState struct {
	setInProgress setInProgress
	// destination holds the parameters of destination 0, which is volatile, by
	// parameter number.
	destination map[byte][]byte
	traffic     Traffic
}

// lanParameter is a LAN configuration parameter (table 23-4). Data does not
// include the selectors.
type lanParameter struct {
	size  int  // bytes of data; -1: write checks the length
	sets  int  // number of sets; 0: the parameter has no set selector
	block bool // a block selector follows the set selector; there is one block
	read  func(x *Request, set byte) []byte
	write func(x *Request, set byte, data []byte) error // nil: read-only
}

// lanParameters holds all LAN configuration parameters by number.
var lanParameters = func() map[byte]*lanParameter {
	all := maps.Clone(lanIPv4Parameters)
	maps.Copy(all, lanRMCPParameters)
	maps.Copy(all, lanIPv6Parameters)
	return all
}()

// selectors returns how many selector bytes precede the data.
func (p *lanParameter) selectors() int {
	switch {
	case p.block:
		return 2
	case p.sets > 0:
		return 1
	}
	return 0
}

// setLAN handles Set LAN Configuration Parameters (§23.1). Changes take effect
// at once.
func setLAN(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	data := x.data[2:]
	if x.data[1] == setInProgressParameter {
		return x.State.lan.setInProgress.set(data)
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
		return DataLengthInvalid
	}
	if n > 0 {
		set = data[0]
	}
	if int(set) >= max(p.sets, 1) || n > 1 && data[1] != 0 {
		return ParameterOutOfRange
	}
	if bytes.Equal(data[n:], p.read(x, set)) {
		return nil // clients write back values that they have read: no change
	}
	return p.write(x, set, data[n:])
}

// getLAN handles Get LAN Configuration Parameters (§23.2).
func getLAN(x *Request) error {
	if !x.isLANChannel(x.data[0] &^ onlyRevision) {
		return InvalidDataField
	}
	p, set, block := lanParameters[x.data[1]], x.data[2], x.data[3]
	if p == nil && x.data[1] != setInProgressParameter {
		return noParameter
	}
	x.put(revision)
	switch {
	case x.data[0]&onlyRevision != 0:
		return nil
	case p == nil:
		x.put(byte(x.State.lan.setInProgress))
		return nil
	}
	n := p.selectors()
	if n > 0 {
		if int(set) >= p.sets {
			return ParameterOutOfRange
		}
		x.put(set)
	}
	if n > 1 {
		if block != 0 {
			return ParameterOutOfRange
		}
		x.put(block)
	}
	x.put(p.read(x, set)...)
	return nil
}

// readOnlyParameter returns a read-only parameter with a constant value.
func readOnlyParameter(b ...byte) *lanParameter {
	return &lanParameter{size: len(b), read: func(*Request, byte) []byte { return b }}
}

// stored returns a parameter that is only stored; nothing depends on its value.
// valid may be nil.
func stored(n byte, valid func(b []byte) bool, begin ...byte) *lanParameter {
	return &lanParameter{
		size: len(begin),
		read: func(x *Request, set byte) []byte {
			if b := x.bmc().Channel.Parameter(lanTable, n, set); b != nil {
				return b
			}
			return begin
		},
		write: func(x *Request, set byte, data []byte) error {
			if valid != nil && !valid(data) {
				return InvalidDataField
			}
			_, err := x.applyBMC(bmc.SetParameter{Parameter: bmc.Parameter{Table: lanTable, Param: n, Set: set, Data: data}})
			return err
		},
	}
}

// atMost accepts data of one byte whose value is at most that.
func atMost(most byte) func(b []byte) bool { return func(b []byte) bool { return b[0] <= most } }

// suspendARPs handles Suspend BMC ARPs (§23.3). Loopback has no ARP, so it
// only answers the state, which depends on the watchdog.
func suspendARPs(x *Request) error {
	if !x.isLANChannel(x.data[0]) || x.data[1] > 3 {
		return InvalidDataField
	}
	occurring := lanParameters[10].read(x, 0)[0]
	if !x.machine().Watchdog.Until.IsZero() {
		occurring &^= x.data[1]
	}
	x.put(occurring)
	return nil
}

// Traffic counts one BMC's datagrams. A counter stops at its maximum.
type Traffic struct{ received, valid, sent uint16 }

// CountReceived counts a datagram that came; valid says whether it was one of
// RMCP.
func (t *Traffic) CountReceived(valid bool) {
	saturatingIncrement(&t.received)
	if valid {
		saturatingIncrement(&t.valid)
	}
}

// CountSent counts a datagram that was sent.
func (t *Traffic) CountSent() { saturatingIncrement(&t.sent) }

func saturatingIncrement(n *uint16) {
	if *n < 0xffff {
		*n++
	}
}

// getIPStatistics handles Get IP/UDP/RMCP Statistics (§23.4). No packet is
// corrupted by the network here.
func getIPStatistics(x *Request) error {
	if !x.isLANChannel(x.data[0]) || x.data[1] > 1 {
		return InvalidDataField
	}
	t := &x.State.lan.traffic
	if x.data[1] == 1 {
		*t = Traffic{}
	}
	for _, n := range []uint16{t.received, 0, 0, 0, t.sent, t.received, t.valid, 0, 0} {
		x.put16(n)
	}
	return nil
}
