package command

import (
	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

var channelCommands = []Row{
	{fn: wire.App, cmd: 0x40, name: "Set Channel Access", privilege: wire.Administrator, least: 3, most: 3, mutates: true, run: setChannelAccess},
	{fn: wire.App, cmd: 0x41, name: "Get Channel Access", privilege: wire.User, least: 2, most: 2, run: getChannelAccess},
	{fn: wire.App, cmd: 0x42, name: "Get Channel Info Command", privilege: wire.User, least: 1, most: 1, run: getChannelInfo},
	{fn: wire.App, cmd: 0x56, name: "Set Channel Security Keys", privilege: wire.Administrator, least: 3, most: -1, mutates: true, run: setChannelSecurityKeys},
}

// systemInterfaceChannel is the number of the system interface (§6.3).
const systemInterfaceChannel = 0x0f

// channels holds the channels that exist (tables 6-2 and 6-3).
var channels = map[byte]struct {
	medium, protocol byte
	sessions         byte    // bits 7:6 of the session support that Get Channel Info answers
	aux              [2]byte // auxiliary info: interrupts of the system interface
}{
	ipmbChannel:            {medium: 1, protocol: 1},
	lanChannel:             {medium: 4, protocol: 1, sessions: 2 << 6},
	systemInterfaceChannel: {medium: 0x0c, protocol: 5, aux: [2]byte{0xff, 0xff}}, // KCS, without interrupts
}

// resolveChannel returns the channel number that a request's channel field
// means, and whether the channel exists.
func (x *Request) resolveChannel(b byte) (number byte, known bool) {
	if b &= 0x0f; b == presentInterface {
		b = lanChannel
		if x.inBand {
			b = systemInterfaceChannel
		}
	}
	_, known = channels[b]
	return b, known
}

// isLANChannel reports whether a channel field means the LAN channel.
func (x *Request) isLANChannel(b byte) bool {
	n, _ := x.resolveChannel(b)
	return n == lanChannel && b&0xf0 == 0
}

// checkSessionChannel returns an error code for a channel without sessions,
// which has no access settings.
func (x *Request) checkSessionChannel(b byte) Code {
	switch n, known := x.resolveChannel(b); {
	case !known || b&0xf0 != 0:
		return InvalidDataField
	case n != lanChannel:
		return noSessionSupport
	}
	return Completed
}

// Completion codes and fields of the channel access commands (§22.22, §22.23).
const (
	noSessionSupport       Code = 0x82
	accessModeUnsupported  Code = 0x83
	accessMode                  = 0x07
	accessAlwaysAvailable       = 2 // access mode
	accessShared                = 3
	pefAlertingDisabled         = 1 << 5
	perMessageAuthDisabled      = 1 << 4
	userLevelAuthDisabled       = 1 << 3
	volatileSet                 = 2 // values of bits 7:6, which select the settings
	nonVolatileSet              = 1
)

// volatileAccess holds the volatile channel access settings, which hold until
// the machine is reset (§22.22).
type volatileAccess struct {
	boots     uint64 // boot count of the machine when they were set
	on        bool   // whether the machine was on
	limit     wire.Privilege
	alertsOff *bool
}

// expired reports whether the machine was reset or switched off since the
// settings were made.
func (p *volatileAccess) expired(m *machine.View) bool {
	return p.boots != m.Boots || p.on && m.Power == machine.PowerOff
}

// currentVolatileAccess returns the volatile settings that still hold; nil when
// there are none.
func (st *State) currentVolatileAccess() *volatileAccess {
	if p := st.volatileAccess; p != nil && !p.expired(st.Host.Machine()) {
		return p
	}
	return nil
}

// storedPrivilegeLimit and storedAlertsDisabled return the non-volatile channel
// settings, which hold after the next reset of the machine.
func storedPrivilegeLimit(c *bmc.Channel) wire.Privilege {
	if c.Limit == 0 {
		return wire.Administrator
	}
	return wire.Privilege(c.Limit)
}

// privilegeLimit returns the channel's privilege limit that holds now.
func (st *State) privilegeLimit() wire.Privilege {
	if p := st.currentVolatileAccess(); p != nil && p.limit != 0 {
		return p.limit
	}
	return storedPrivilegeLimit(st.Host.BMC().Channel)
}

// alertsDisabled reports whether PEF alerting is disabled now.
func (st *State) alertsDisabled() bool {
	if p := st.currentVolatileAccess(); p != nil && p.alertsOff != nil {
		return *p.alertsOff
	}
	return st.Host.BMC().Channel.AlertsDisabled
}

// setChannelAccess handles Set Channel Access (§22.22). Per-message and
// user-level authentication cannot be disabled. A channel that is disabled in
// the non-volatile settings goes off at the next reset; the volatile settings
// take effect at once.
func setChannelAccess(x *Request) error {
	if code := x.checkSessionChannel(x.data[0]); code != Completed {
		return code
	}
	which, mode := x.data[1]>>6, x.data[1]&accessMode
	limits, limit := x.data[2]>>6, wire.Privilege(x.data[2]&0x0f)
	switch {
	case which == 3 || limits == 3 || x.data[2]&0x30 != 0:
		return InvalidDataField
	case which != 0 && x.data[1]&(perMessageAuthDisabled|userLevelAuthDisabled) != 0:
		return InvalidDataField
	case which != 0 && mode != 0 && mode != accessAlwaysAvailable && mode != accessShared:
		return accessModeUnsupported
	case limits != 0 && (limit < wire.Callback || limit > wire.OEMPrivilege):
		return InvalidDataField
	}
	stored := *x.bmc().Channel
	if which == nonVolatileSet {
		stored.AlertsDisabled = x.data[1]&pefAlertingDisabled != 0
	}
	if limits == nonVolatileSet {
		stored.Limit = byte(limit)
	}
	if stored.AlertsDisabled != x.bmc().Channel.AlertsDisabled || stored.Limit != x.bmc().Channel.Limit {
		if _, err := x.applyBMC(bmc.SetChannel{Channel: stored}); err != nil {
			return err
		}
	}
	m := x.machine()
	now := volatileAccess{boots: m.Boots, on: m.Power != machine.PowerOff}
	if p := x.State.currentVolatileAccess(); p != nil {
		now.limit, now.alertsOff = p.limit, p.alertsOff
	}
	if which == volatileSet {
		now.alertsOff = new(x.data[1]&pefAlertingDisabled != 0)
	}
	if limits == volatileSet {
		now.limit = limit
	}
	if which == volatileSet || limits == volatileSet {
		x.State.volatileAccess = &now
	}
	var err error
	switch which {
	case nonVolatileSet:
		_, err = x.applyBMC(bmc.SetChannelAfterReset{On: mode != 0})
	case volatileSet:
		_, err = x.applyBMC(bmc.SwitchChannel{On: mode != 0})
	}
	return err
}

// getChannelAccess handles Get Channel Access (§22.23).
func getChannelAccess(x *Request) error {
	if code := x.checkSessionChannel(x.data[0]); code != Completed {
		return code
	}
	c, on := x.bmc().Channel, x.bmc().Network().IPMI.On
	mute, limit := x.State.alertsDisabled(), x.State.privilegeLimit()
	switch x.data[1] {
	case volatileSet << 6:
	case nonVolatileSet << 6:
		on, mute, limit = c.AfterReset(on), c.AlertsDisabled, storedPrivilegeLimit(c)
	default:
		return InvalidDataField
	}
	var access byte
	if on {
		access = accessAlwaysAvailable
	}
	if mute {
		access |= pefAlertingDisabled
	}
	x.put(access, byte(limit))
	return nil
}

// getChannelInfo handles Get Channel Info (§22.24).
func getChannelInfo(x *Request) error {
	const iana = 7154 // IANA enterprise number of IPMI
	n, known := x.resolveChannel(x.data[0])
	if !known || x.data[0]&0xf0 != 0 {
		return InvalidDataField
	}
	c := channels[n]
	sessions := c.sessions
	if n == lanChannel {
		for range x.State.Sessions.All() {
			sessions++
		}
	}
	x.put(n, c.medium, c.protocol, sessions)
	x.put24(iana)
	x.put(c.aux[:]...)
	return nil
}

// Completion codes and operations of Set Channel Security Keys (§22.25).
const (
	keyTooShort      Code = 0x81
	keyTooLong       Code = 0x82
	keyIDUnsupported Code = 0x84

	readKey = 0
	setKey  = 1
	lockKey = 2

	notLockable = 0
)

// setChannelSecurityKeys handles Set Channel Security Keys (§22.25). K_G
// cannot be locked; there is no K_R, since random numbers have another source.
// An all-zero key removes K_G.
func setChannelSecurityKeys(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	operation, id, key := x.data[1], x.data[2], x.data[3:]
	switch {
	case operation > lockKey || id > 1:
		return InvalidDataField
	case id == 0:
		return keyIDUnsupported
	case operation == lockKey:
		return InvalidDataField
	case operation == readKey:
		is := x.Host.KG()
		if is == nil {
			is = make([]byte, bmc.KGSize)
		}
		x.put(notLockable)
		x.put(is...)
		return nil
	case len(key) < bmc.KGSize:
		return keyTooShort
	case len(key) > bmc.KGSize:
		return keyTooLong
	}
	if [bmc.KGSize]byte(key) == [bmc.KGSize]byte{} {
		key = nil
	}
	if _, err := x.applyBMC(bmc.SetKG{Key: key}); err != nil {
		return err
	}
	x.put(notLockable)
	return nil
}
