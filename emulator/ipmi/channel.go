package ipmi

import (
	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

var channelCommands = []command{
	{fn: wire.App, cmd: 0x40, name: "Set Channel Access", needs: wire.Administrator, least: 3, most: 3, acts: true, run: setChannelAccess},
	{fn: wire.App, cmd: 0x41, name: "Get Channel Access", needs: wire.User, least: 2, most: 2, run: getChannelAccess},
	{fn: wire.App, cmd: 0x42, name: "Get Channel Info Command", needs: wire.User, least: 1, most: 1, run: channelInfo},
	{fn: wire.App, cmd: 0x56, name: "Set Channel Security Keys", needs: wire.Administrator, least: 3, most: -1, acts: true, run: channelKeys},
}

// ownInBand is the system interface's channel (§6.3).
const ownInBand = 0x0f

// channels are those that there are (tables 6-2 and 6-3).
var channels = map[byte]struct {
	medium, protocol byte
	sessions         byte    // bits 7:6 of what is told of them
	aux              [2]byte // of the system interface: its interrupts
}{
	ipmbChannel: {medium: 1, protocol: 1},
	lanChannel:  {medium: 4, protocol: 1, sessions: 2 << 6},
	ownInBand:   {medium: 0x0c, protocol: 5, aux: [2]byte{0xff, 0xff}}, // KCS, without interrupts
}

// channel is what a channel number stands for.
func (x *exchange) channel(b byte) (number byte, known bool) {
	if b &= 0x0f; b == ownChannel {
		b = lanChannel
		if x.inBand {
			b = ownInBand
		}
	}
	_, known = channels[b]
	return b, known
}

// lan says whether a byte is the number of the LAN channel.
func (x *exchange) lan(b byte) bool {
	n, _ := x.channel(b)
	return n == lanChannel && b&0xf0 == 0
}

// accessible says whether a channel has sessions, and so limits for them.
func (x *exchange) accessible(b byte) Code {
	switch n, known := x.channel(b); {
	case !known || b&0xf0 != 0:
		return BadField
	case n != lanChannel:
		return sessionless
	}
	return Done
}

// Codes of the channel commands (§22.22, §22.23).
const (
	sessionless   Code = 0x82
	noSuchMode    Code = 0x83
	accessMode         = 0x07
	alwaysOn           = 2 // access mode
	sharedMode         = 3
	alertsOff          = 1 << 5
	perMessageOff      = 1 << 4
	userLevelOff       = 1 << 3
	volatileSet        = 2 // of bits 7:6: which settings are meant
	keptSet            = 1
)

// present is what was set of the channel for the time until the machine is
// reset (§22.22).
type present struct {
	boots uint64 // of the machine, when it was set
	on    bool   // the machine was on
	limit wire.Privilege
	mute  *bool
}

// ends says whether the machine was reset or switched off since.
func (p *present) ends(m *machine.View) bool {
	return p.boots != m.Boots || p.on && m.Power == machine.PowerOff
}

// active is what is set until the machine is reset; nil when that is nothing.
func (sd *side) active() *present {
	if p := sd.present; p != nil && !p.ends(sd.host.Machine()) {
		return p
	}
	return nil
}

// keptLimit is the privilege limit of the channel, and keptMute whether it is
// without alerts, after the next reset of the machine.
func keptLimit(c *bmc.Channel) wire.Privilege {
	if c.Limit == 0 {
		return wire.Administrator
	}
	return wire.Privilege(c.Limit)
}

// limit is that of the channel now.
func (sd *side) limit() wire.Privilege {
	if p := sd.active(); p != nil && p.limit != 0 {
		return p.limit
	}
	return keptLimit(sd.host.BMC().Channel)
}

// muted says whether alerts are off now.
func (sd *side) muted() bool {
	if p := sd.active(); p != nil && p.mute != nil {
		return *p.mute
	}
	return sd.host.BMC().Channel.Mute
}

// setChannelAccess is §22.22. Users are always authenticated, and so is each
// message: that cannot be switched off. A channel that is switched off for good
// is so after the next reset; who wants it at once sets the present setting.
func setChannelAccess(x *exchange) error {
	if code := x.accessible(x.data[0]); code != Done {
		return code
	}
	which, mode := x.data[1]>>6, x.data[1]&accessMode
	limits, limit := x.data[2]>>6, wire.Privilege(x.data[2]&0x0f)
	switch {
	case which == 3 || limits == 3 || x.data[2]&0x30 != 0:
		return BadField
	case which != 0 && x.data[1]&(perMessageOff|userLevelOff) != 0:
		return BadField
	case which != 0 && mode != 0 && mode != alwaysOn && mode != sharedMode:
		return noSuchMode
	case limits != 0 && (limit < wire.Callback || limit > wire.OEMPrivilege):
		return BadField
	}
	kept := *x.bmc().Channel
	if which == keptSet {
		kept.Mute = x.data[1]&alertsOff != 0
	}
	if limits == keptSet {
		kept.Limit = byte(limit)
	}
	if kept.Mute != x.bmc().Channel.Mute || kept.Limit != x.bmc().Channel.Limit {
		if _, err := x.tell(bmc.SetChannel{Channel: kept}); err != nil {
			return err
		}
	}
	m := x.machine()
	now := present{boots: m.Boots, on: m.Power != machine.PowerOff}
	if p := x.side.active(); p != nil {
		now.limit, now.mute = p.limit, p.mute
	}
	if which == volatileSet {
		now.mute = new(x.data[1]&alertsOff != 0)
	}
	if limits == volatileSet {
		now.limit = limit
	}
	if which == volatileSet || limits == volatileSet {
		x.side.present = &now
	}
	var err error
	switch which {
	case keptSet:
		_, err = x.tell(bmc.KeepChannel{On: mode != 0})
	case volatileSet:
		_, err = x.tell(bmc.SwitchChannel{On: mode != 0})
	}
	return err
}

// getChannelAccess is §22.23.
func getChannelAccess(x *exchange) error {
	if code := x.accessible(x.data[0]); code != Done {
		return code
	}
	c, on := x.bmc().Channel, x.bmc().Network().IPMI.On
	mute, limit := x.side.muted(), x.side.limit()
	switch x.data[1] {
	case volatileSet << 6:
	case keptSet << 6:
		on, mute, limit = c.Stays(on), c.Mute, keptLimit(c)
	default:
		return BadField
	}
	var access byte
	if on {
		access = alwaysOn
	}
	if mute {
		access |= alertsOff
	}
	x.put(access, byte(limit))
	return nil
}

// channelInfo is §22.24.
func channelInfo(x *exchange) error {
	const iana = 7154 // of IPMI
	n, known := x.channel(x.data[0])
	if !known || x.data[0]&0xf0 != 0 {
		return BadField
	}
	c := channels[n]
	sessions := c.sessions
	if n == lanChannel {
		for range x.side.table.All() {
			sessions++
		}
	}
	x.put(n, c.medium, c.protocol, sessions)
	x.put24(iana)
	x.put(c.aux[:]...)
	return nil
}

// Of Set Channel Security Keys (§22.25).
const (
	fewBytes  Code = 0x81
	manyBytes Code = 0x82
	noKR      Code = 0x84

	readKey = 0
	setKey  = 1
	lockKey = 2

	notLockable = 0
)

// channelKeys is §22.25. K_G cannot be locked, and there is no K_R: random
// numbers come from elsewhere. A key of zeros is none.
func channelKeys(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	operation, id, key := x.data[1], x.data[2], x.data[3:]
	switch {
	case operation > lockKey || id > 1:
		return BadField
	case id == 0:
		return noKR
	case operation == lockKey:
		return BadField
	case operation == readKey:
		is := x.host.Key()
		if is == nil {
			is = make([]byte, bmc.KeyLength)
		}
		x.put(notLockable)
		x.put(is...)
		return nil
	case len(key) < bmc.KeyLength:
		return fewBytes
	case len(key) > bmc.KeyLength:
		return manyBytes
	}
	if [bmc.KeyLength]byte(key) == [bmc.KeyLength]byte{} {
		key = nil
	}
	if _, err := x.tell(bmc.SetKey{Key: key}); err != nil {
		return err
	}
	x.put(notLockable)
	return nil
}
