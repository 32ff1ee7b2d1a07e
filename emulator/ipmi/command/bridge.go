package command

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// bridgeCommands are the messaging commands between the BMC's channels: IPMB,
// LAN and the server's system interface (§22).
var bridgeCommands = []Row{
	{fn: wire.App, cmd: 0x2e, name: "Set BMC Global Enables", inBand: true, least: 1, most: 1, mutates: true, run: setGlobalEnables},
	{fn: wire.App, cmd: 0x2f, name: "Get BMC Global Enables", privilege: wire.User, run: getGlobalEnables},
	{fn: wire.App, cmd: 0x30, name: "Clear Message Flags", inBand: true, least: 1, most: 1, run: clearMessageFlags},
	{fn: wire.App, cmd: 0x31, name: "Get Message Flags", inBand: true, run: getMessageFlags},
	{fn: wire.App, cmd: 0x32, name: "Enable Message Channel Receive", inBand: true, least: 2, most: 2, run: enableChannelReceive},
	{fn: wire.App, cmd: 0x33, name: "Get Message", inBand: true, run: getMessage},
	{fn: wire.App, cmd: 0x34, name: "Send Message", privilege: wire.User, least: 8, most: -1, run: sendMessage},
	{fn: wire.App, cmd: 0x35, name: "Read Event Message Buffer", inBand: true, run: readEventBuffer},
}

// Completion codes of bridging (§22.6, §22.7).
const (
	bufferEmpty   Code = 0x80
	invalidHandle Code = 0x80
	nakOnWrite    Code = 0x83 // no controller at that address
)

// ipmbChannel is the primary IPMB (§6.3).
const ipmbChannel = 0

const (
	// maxMessages bounds the receive message queue.
	maxMessages = 16

	enableLogging     = 1 << 3
	enableEventBuffer = 1 << 2

	flagWatchdog    = 1 << 3
	flagEventBuffer = 1 << 1
	flagMessage     = 1 << 0
)

// messageQueue is the receive message queue and the event message buffer of
// system software. A restart of the BMC clears it, and a restart of the system
// returns the global enables to their initial values (§22.1).
type messageQueue struct {
	eventReceiver
	enables         byte // without the logging enable, which the log itself holds
	enableBoots     uint64
	queue           [][]byte  // in the form that Get Message answers
	peers           []lanPeer // LAN sessions that have sent a message to system software
	receiveDisabled byte      // bit of each channel from which no messages are taken; only LAN can be disabled
	// firstBuffered is a lower bound for the ID of the log entry in the event
	// message buffer; 0 means that the buffer is disabled.
	firstBuffered uint64
	clearedFlags  byte // flags that were cleared while their cause remains
}

// lanPeer is a LAN session that a message can be sent to, because it has sent
// one.
type lanPeer struct {
	session *session.Session
	frame   session.Frame
	client  Client
}

// globalEnables returns the current BMC global enables.
func (x *Request) globalEnables() byte {
	b := &x.State.messageQueue
	if boots := x.machine().Boots; b.enableBoots != boots {
		b.enableBoots, b.enables, b.firstBuffered = boots, 0, 0
	}
	out := b.enables
	if x.bmc().Log.Takes() {
		out |= enableLogging
	}
	return out
}

// setGlobalEnables handles Set BMC Global Enables (§22.1). There are no OEM
// flags.
func setGlobalEnables(x *Request) error {
	if x.data[0]&^0x0f != 0 {
		return InvalidDataField
	}
	x.globalEnables()
	on := x.data[0]&enableLogging != 0
	if on != x.bmc().Log.Takes() {
		if _, err := x.applyBMC(bmc.EnableLog{Log: bmc.EventLog, On: on}); err != nil {
			return err
		}
	}
	b := &x.State.messageQueue
	b.enables = x.data[0] &^ enableLogging
	switch {
	case b.enables&enableEventBuffer == 0:
		b.firstBuffered = 0
	case b.firstBuffered == 0:
		b.firstBuffered = x.nextEntry()
	}
	return nil
}

// getGlobalEnables handles Get BMC Global Enables (§22.2).
func getGlobalEnables(x *Request) error {
	x.put(x.globalEnables())
	return nil
}

// clearMessageFlags handles Clear Message Flags (§22.3).
func clearMessageFlags(x *Request) error {
	b := &x.State.messageQueue
	if x.data[0]&flagEventBuffer != 0 && b.firstBuffered > 0 {
		b.firstBuffered = x.nextEntry()
	}
	if x.data[0]&flagMessage != 0 {
		b.queue = nil
	}
	b.clearedFlags |= x.data[0] & flagWatchdog
	return nil
}

// getMessageFlags handles Get Message Flags (§22.4).
func getMessageFlags(x *Request) error {
	b, out := &x.State.messageQueue, byte(0)
	if len(b.queue) > 0 {
		out |= flagMessage
	}
	if _, ok := x.bufferedEvent(); ok {
		out |= flagEventBuffer
	}
	if w := x.machine().Watchdog; w != nil && w.PreTimeoutFlag {
		out |= flagWatchdog &^ b.clearedFlags
	} else {
		b.clearedFlags &^= flagWatchdog
	}
	x.put(out)
	return nil
}

// enableChannelReceive handles Enable Message Channel Receive (§22.5).
func enableChannelReceive(x *Request) error {
	channel, do := x.data[0], x.data[1]
	if channel != lanChannel && channel != ipmbChannel && channel != systemInterfaceChannel || do > 2 {
		return InvalidDataField
	}
	b, bit := &x.State.messageQueue, byte(1)<<(channel&7)
	switch do {
	case 0:
		b.receiveDisabled |= bit
	case 1:
		b.receiveDisabled &^= bit
	}
	on := byte(1)
	if b.receiveDisabled&bit != 0 {
		on = 0
	}
	x.put(channel, on)
	return nil
}

// getMessage handles Get Message (§22.6).
func getMessage(x *Request) error {
	b := &x.State.messageQueue
	if len(b.queue) == 0 {
		return bufferEmpty
	}
	x.put(b.queue[0]...)
	b.queue = b.queue[1:]
	return nil
}

// nextEntry returns the ID of the next log entry.
func (x *Request) nextEntry() uint64 {
	if log := x.bmc().Log; log != nil {
		return log.Next
	}
	return 1
}

// bufferedEvent returns the event in the event message buffer: the first one
// that was logged since the buffer was last emptied (§17.5).
func (x *Request) bufferedEvent() (*bmc.Entry, bool) {
	x.globalEnables()
	if x.State.firstBuffered == 0 {
		return nil, false
	}
	return x.bmc().Log.After(x.State.firstBuffered - 1)
}

// readEventBuffer handles Read Event Message Buffer (§22.8).
func readEventBuffer(x *Request) error {
	e, ok := x.bufferedEvent()
	if !ok {
		return bufferEmpty
	}
	r := x.record(e)
	x.put(r[:]...)
	x.State.firstBuffered = x.nextEntry()
	return nil
}

// softwareLUN is the LUN of system software (§6.13.1).
const softwareLUN = 2

// executeOtherLUN handles a request for a LUN other than 0. LUN 2 queues it for
// system software, which answers in its own time.
func (x *Request) executeOtherLUN() Code {
	b := &x.State.messageQueue
	switch {
	case x.lun != softwareLUN || x.Session == nil || x.inBand:
		return InvalidForLUN
	case x.Session.Privilege < wire.User:
		return InsufficientPrivilege
	case len(b.queue) >= maxMessages || b.receiveDisabled&(1<<lanChannel) != 0:
		return DestinationUnavailable
	}
	m := append([]byte{byte(x.Session.Privilege)<<4 | lanChannel, x.Session.Handle}, x.Message...)
	b.queue = append(slices.Clip(b.queue), m)
	b.peers = slices.DeleteFunc(b.peers, func(h lanPeer) bool {
		return h.session == x.Session || x.State.Sessions.Find(h.session.ID) != h.session
	})
	b.peers = append(b.peers, lanPeer{x.Session, x.Frame, x.Client})
	x.NoResponse = true
	return Completed
}

// sendToSession sends a message of system software to a LAN session by its
// handle; normally the response to a request from that session (§6.13.1).
func (x *Request) sendToSession(handle byte, message []byte) error {
	to := x.State.byHandle(handle)
	if to == nil {
		return invalidHandle
	}
	i := slices.IndexFunc(x.State.peers, func(h lanPeer) bool { return h.session == to })
	if !x.inBand || i < 0 { // only system software may send to a session, and only to one that has sent a message
		return DestinationUnavailable
	}
	h := x.State.peers[i]
	x.State.Server.Send(h.client, x.State.Sessions.Wrap(nil, h.frame, wire.PayloadIPMI, message))
	return nil
}

// sendMessage handles Send Message (§22.7): to a controller on IPMB, or back
// to a LAN session.
func sendMessage(x *Request) error {
	channel, tracking, protect := x.data[0]&0x0f, x.data[0]>>6, x.data[0]>>4&3
	const untracked, tracked = 0, 1
	switch {
	case tracking > tracked:
		return InvalidDataField // raw is optional, tracking 11b is reserved
	case channel == lanChannel:
		return x.sendToSession(x.data[1], x.data[2:])
	case channel != ipmbChannel || protect != 0: // IPMB has neither encryption nor authentication
		return InvalidDataField
	case x.Session.Privilege < wire.Operator:
		return InsufficientPrivilege // appendix G, note 2
	}
	to, ok := satelliteAt(x.data[1])
	if !ok && x.data[1] != bmcAddress {
		return nakOnWrite
	}
	request, err := wire.ParseRequest(x.data[1:])
	if err != nil {
		return nil // it was sent, but nobody at that address takes it: no response
	}
	var answer []byte
	if ok {
		answer = to.answer(x, request)
	} else {
		answer = x.executeOverIPMB(request)
	}
	switch {
	case x.inBand: // not tracked: the response is queued for LUN 2
		if len(x.State.queue) < maxMessages {
			// Get Message leaves out the leading address (table 22-8).
			x.State.queue = append(slices.Clip(x.State.queue), append([]byte{ipmbChannel}, answer[1:]...))
		}
	case tracking == tracked:
		x.FollowUps = append(x.FollowUps, answer)
	}
	return nil
}

// executeOverIPMB executes a request that reaches the BMC over IPMB, with the
// rights of the session that sent it there.
func (x *Request) executeOverIPMB(req wire.Request) []byte {
	row := x.State.Commands.lookup(x.Host, keyOf(&req))
	if row != nil && (row.mutates || row.privilege == 0 || row.inBand || row.fn == wire.App && row.cmd == 0x34) {
		// Commands that change state need the queue of their own, and Send
		// Message must not loop.
		return req.AppendResponse(nil, byte(InsufficientPrivilege), withDefiningBody(&req, nil))
	}
	in := *x
	in.fn, in.cmd, in.lun, in.data, in.out, in.FollowUps, in.After = req.NetFn, req.Cmd, req.ToLUN, req.Data, nil, nil, nil
	code := in.Execute(row)
	return req.AppendResponse(nil, byte(code), withDefiningBody(&req, in.out))
}
