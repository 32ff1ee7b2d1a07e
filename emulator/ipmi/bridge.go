package ipmi

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// bridgeCommands are those between the BMC's channels: IPMB, LAN and the system
// interface of its server.
var bridgeCommands = []command{
	{fn: wire.App, cmd: 0x2e, name: "Set BMC Global Enables", inBand: true, least: 1, most: 1, acts: true, run: setEnables},
	{fn: wire.App, cmd: 0x2f, name: "Get BMC Global Enables", needs: wire.User, run: globalEnables},
	{fn: wire.App, cmd: 0x30, name: "Clear Message Flags", inBand: true, least: 1, most: 1, run: clearFlags},
	{fn: wire.App, cmd: 0x31, name: "Get Message Flags", inBand: true, run: messageFlags},
	{fn: wire.App, cmd: 0x32, name: "Enable Message Channel Receive", inBand: true, least: 2, most: 2, run: receiveFrom},
	{fn: wire.App, cmd: 0x33, name: "Get Message", inBand: true, run: getMessage},
	{fn: wire.App, cmd: 0x34, name: "Send Message", needs: wire.User, least: 8, most: -1, run: sendMessage},
	{fn: wire.App, cmd: 0x35, name: "Read Event Message Buffer", inBand: true, run: readEventBuffer},
}

// Completion codes of bridging (§22.6, §22.7).
const (
	bufferEmpty Code = 0x80
	noHandle    Code = 0x80
	nak         Code = 0x83 // nobody at that address
)

// ipmbChannel is the primary IPMB (§6.3).
const ipmbChannel = 0

const (
	// maxInbox bounds the messages for system software that wait.
	maxInbox = 16

	enableLogging     = 1 << 3
	enableEventBuffer = 1 << 2

	flagWatchdog    = 1 << 3
	flagEventBuffer = 1 << 1
	flagMessage     = 1 << 0
)

// inbox is what waits for system software. It is lost in a restart, as a BMC's
// is, and the enables return to what they were in one of the system (§22.1).
type inbox struct {
	receiving
	enables byte // but for the log's, which the log knows
	boots   uint64
	queue   [][]byte // as Get Message answers
	heard   []heard  // sessions that have sent something there
	deaf    byte     // bit of a channel of which no messages are taken; only LAN has any
	// first is the ID of the entry that the event message buffer holds once it is
	// written, or of an earlier one; 0: the buffer is off.
	first    uint64
	flagsOff byte // flags that were cleared and whose cause stays
}

// heard is a session of LAN that can be sent a message: it has sent one.
type heard struct {
	session *session.Session
	frame   session.Frame
	way     parcel // without a packet
}

// enabled are the enables as they are now.
func (x *exchange) enabled() byte {
	b := &x.side.inbox
	if boots := x.machine().Boots; b.boots != boots {
		b.boots, b.enables, b.first = boots, 0, 0
	}
	out := b.enables
	if x.bmc().Log.Takes() {
		out |= enableLogging
	}
	return out
}

// setEnables is §22.1. There are no OEM flags.
func setEnables(x *exchange) error {
	if x.data[0]&^0x0f != 0 {
		return BadField
	}
	x.enabled()
	on := x.data[0]&enableLogging != 0
	if on != x.bmc().Log.Takes() {
		if _, err := x.tell(bmc.KeepLog{Book: bmc.EventLog, On: on}); err != nil {
			return err
		}
	}
	b := &x.side.inbox
	b.enables = x.data[0] &^ enableLogging
	switch {
	case b.enables&enableEventBuffer == 0:
		b.first = 0
	case b.first == 0:
		b.first = x.nextEntry()
	}
	return nil
}

// globalEnables is §22.2.
func globalEnables(x *exchange) error {
	x.put(x.enabled())
	return nil
}

// clearFlags is §22.3.
func clearFlags(x *exchange) error {
	b := &x.side.inbox
	if x.data[0]&flagEventBuffer != 0 && b.first > 0 {
		b.first = x.nextEntry()
	}
	if x.data[0]&flagMessage != 0 {
		b.queue = nil
	}
	b.flagsOff |= x.data[0] & flagWatchdog
	return nil
}

// messageFlags is §22.4.
func messageFlags(x *exchange) error {
	b, out := &x.side.inbox, byte(0)
	if len(b.queue) > 0 {
		out |= flagMessage
	}
	if _, ok := x.buffered(); ok {
		out |= flagEventBuffer
	}
	if w := x.machine().Watchdog; w != nil && w.Flag {
		out |= flagWatchdog &^ b.flagsOff
	} else {
		b.flagsOff &^= flagWatchdog
	}
	x.put(out)
	return nil
}

// receiveFrom is §22.5.
func receiveFrom(x *exchange) error {
	channel, do := x.data[0], x.data[1]
	if channel != lanChannel && channel != ipmbChannel && channel != ownInBand || do > 2 {
		return BadField
	}
	b, bit := &x.side.inbox, byte(1)<<(channel&7)
	switch do {
	case 0:
		b.deaf |= bit
	case 1:
		b.deaf &^= bit
	}
	on := byte(1)
	if b.deaf&bit != 0 {
		on = 0
	}
	x.put(channel, on)
	return nil
}

// getMessage is §22.6.
func getMessage(x *exchange) error {
	b := &x.side.inbox
	if len(b.queue) == 0 {
		return bufferEmpty
	}
	x.put(b.queue[0]...)
	b.queue = b.queue[1:]
	return nil
}

// nextEntry is the ID of the entry that is written next.
func (x *exchange) nextEntry() uint64 {
	if log := x.bmc().Log; log != nil {
		return log.Next
	}
	return 1
}

// buffered is the event in the event message buffer: the first that was logged
// since that was last emptied (§17.5).
func (x *exchange) buffered() (*bmc.Entry, bool) {
	x.enabled()
	if x.side.first == 0 {
		return nil, false
	}
	return x.bmc().Log.After(x.side.first - 1)
}

// readEventBuffer is §22.8.
func readEventBuffer(x *exchange) error {
	e, ok := x.buffered()
	if !ok {
		return bufferEmpty
	}
	r := x.record(e)
	x.put(r[:]...)
	x.side.first = x.nextEntry()
	return nil
}

// softwareLUN is that of system software (§6.13.1).
const softwareLUN = 2

// elsewhere is a request for another LUN than that of the commands: it can be
// for system software, which answers in its own time.
func (x *exchange) elsewhere() Code {
	b := &x.side.inbox
	switch {
	case x.lun != softwareLUN || x.session == nil || x.inBand:
		return UnknownAtLUN
	case x.session.Privilege < wire.User:
		return Forbidden
	case len(b.queue) >= maxInbox || b.deaf&(1<<lanChannel) != 0:
		return NoRoute
	}
	m := append([]byte{byte(x.session.Privilege)<<4 | lanChannel, x.session.Handle}, x.message...)
	b.queue = append(slices.Clip(b.queue), m)
	b.heard = slices.DeleteFunc(b.heard, func(h heard) bool { return h.session == x.session || x.side.table.Find(h.session.ID) != h.session })
	b.heard = append(b.heard, heard{x.session, x.frame, parcel{from: x.from, at: x.at, socket: x.socket}})
	x.silent = true
	return Done
}

// deliver sends a message of system software to a session by its handle: the
// answer, most likely, to one that it has sent (§6.13.1).
func (x *exchange) deliver(handle byte, message []byte) error {
	to := x.side.byHandle(handle)
	if to == nil {
		return noHandle
	}
	i := slices.IndexFunc(x.side.heard, func(h heard) bool { return h.session == to })
	if !x.inBand || i < 0 { // a session is no way to another, and none is called unasked
		return NoRoute
	}
	h := x.side.heard[i]
	x.service.send(x.side, h.way, x.side.table.Seal(x.now, nil, h.frame, wire.PayloadIPMI, message))
	return nil
}

// sendMessage is §22.7: to a controller on IPMB, or back to a session of LAN.
func sendMessage(x *exchange) error {
	channel, tracking, protect := x.data[0]&0x0f, x.data[0]>>6, x.data[0]>>4&3
	const untracked, tracked = 0, 1
	switch {
	case tracking > tracked:
		return BadField // raw is optional, and the last reserved
	case channel == lanChannel:
		return x.deliver(x.data[1], x.data[2:])
	case channel != ipmbChannel || protect != 0: // IPMB knows neither encryption nor authentication
		return BadField
	case x.session.Privilege < wire.Operator:
		return Forbidden // appendix G, note 2
	}
	to, ok := satelliteAt(x.data[1])
	if !ok && x.data[1] != bmcAddress {
		return nak
	}
	request, err := wire.ParseRequest(x.data[1:])
	if err != nil {
		return nil // it was sent, and who it is for does not take it: silence
	}
	var answer []byte
	if ok {
		answer = to.answer(x, request)
	} else {
		answer = x.loop(request)
	}
	switch {
	case x.inBand: // untracked: the answer goes to LUN 2 and waits
		if len(x.side.queue) < maxInbox {
			// The leading address is left out (table 22-8).
			x.side.queue = append(slices.Clip(x.side.queue), append([]byte{ipmbChannel}, answer[1:]...))
		}
	case tracking == tracked:
		x.more = append(x.more, answer)
	}
	return nil
}

// loop is a request that comes to the BMC itself over IPMB, with the rights of
// who has sent it there.
func (x *exchange) loop(req wire.Request) []byte {
	at := place{fn: req.NetFn, cmd: req.Cmd}
	if req.NetFn == wire.Group && len(req.Data) > 0 {
		at.group = req.Data[0]
	}
	row := x.service.known(x.host, at)
	if row != nil && (row.acts || row.needs == 0 || row.inBand || row.fn == wire.App && row.cmd == 0x34) {
		// What changes something has its own way, and nothing goes round.
		return req.AppendResponse(nil, byte(Forbidden), named(&req, nil))
	}
	in := *x
	in.fn, in.cmd, in.lun, in.data, in.out, in.more, in.after = req.NetFn, req.Cmd, req.ToLUN, req.Data, nil, nil, nil
	code := in.carryOut(row)
	return req.AppendResponse(nil, byte(code), named(&req, in.out))
}
