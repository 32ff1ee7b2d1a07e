package ipmi

import (
	"cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// solCommands are the commands of payloads (§24) and the settings of serial
// over LAN (§26). Which privilege activates SOL is one of these; which users may
// is theirs.
var solCommands = []command{
	{fn: wire.App, cmd: 0x48, name: "Activate Payload", needs: wire.User, least: 6, most: 6, run: activatePayload},
	{fn: wire.App, cmd: 0x49, name: "Deactivate Payload", needs: wire.User, least: 2, most: 6, run: deactivatePayload},
	{fn: wire.App, cmd: 0x4a, name: "Get Payload Activation Status", needs: wire.User, least: 1, most: 1, run: payloadStatus},
	{fn: wire.App, cmd: 0x4b, name: "Get Payload Instance Info", needs: wire.User, least: 2, most: 2, run: payloadInstance},
	{fn: wire.App, cmd: 0x4e, name: "Get Channel Payload Support", needs: wire.User, least: 1, most: 1, run: payloadSupport},
	{fn: wire.App, cmd: 0x4f, name: "Get Channel Payload Version", needs: wire.User, least: 2, most: 2, run: payloadVersion},
	{fn: wire.App, cmd: 0x50, name: "Get Channel OEM Payload Info", needs: wire.User, least: 7, most: 7, run: oemPayload},
	{fn: wire.App, cmd: 0x55, name: "Suspend/Resume Payload Encryption", needs: wire.User, least: 3, most: 3, run: payloadEncryption},
	{fn: wire.Transport, cmd: 0x21, name: "Set SOL Configuration Parameters", needs: wire.Administrator, least: 3, most: -1, acts: true, run: setSOL},
	{fn: wire.Transport, cmd: 0x22, name: "Get SOL Configuration Parameters", needs: wire.User, least: 4, most: 4, run: getSOL},
}

const (
	// payloadSize is what a payload may have in either direction, in bytes.
	payloadSize   = 255
	solInstance   = 1
	solPort       = 2    // the system's serial port that is redirected, counted from 1
	payloadFormat = 0x10 // 1.0
	noVLAN        = 0xffff
)

// Completion codes of payload commands (§24.1, §24.2).
const (
	payloadActive    Code = 0x80
	payloadInactive  Code = 0x80
	payloadDisabled  Code = 0x81
	payloadNoSecrecy Code = 0x83
	payloadNeedsIt   Code = 0x84
)

// open says whether a machine can take characters.
func open(v *machine.View) bool { return v.Power == machine.PowerOn || v.Phase == machine.Stopping }

// serialPayload checks which payload a command is for: there is one of SOL.
func serialPayload(kind, instance byte) error {
	if wire.PayloadType(kind&0x3f) != wire.PayloadSOL || instance&0x0f != solInstance {
		return BadField
	}
	return nil
}

// activatePayload is §24.1.
func activatePayload(x *exchange) error {
	if err := serialPayload(x.data[0], x.data[1]); err != nil {
		return err
	}
	set, aux, sess := x.bmc().SOL(), x.data[2], x.session
	sealed, signed := aux&0x80 != 0, aux&0x40 != 0
	now := x.side.attached()
	switch {
	case sess.V15 || x.inBand:
		return WrongState // payloads are of RMCP+
	case set.Off || x.bmc().Channel.User(sess.User.Account).NoSOL:
		return payloadDisabled
	case sess.Privilege < wire.Privilege(set.Privilege):
		return Forbidden
	case sealed && !signed:
		return payloadNoSecrecy
	case set.Encrypted && sess.Sealed() && !sealed:
		return payloadNeedsIt
	case now != nil && now.session != sess:
		return payloadActive
	}
	port := cmp.Or(set.Port, x.usualSOLPort())
	x.put32(0) // no test mode
	size := uint16(payloadSize)
	if x.host.Dialect().IPMI.Faults.SOLPayloadSizes {
		size = 0
	}
	x.put16(size)
	x.put16(size)
	x.put16(port)
	x.put16(noVLAN)
	x.after = func() { // no packet before the answer
		sess.ProtectSOL(signed || set.Authenticated, sealed)
		x.service.attach(x.side, sess, x.socket, x.at)
	}
	return nil
}

// deactivatePayload is §24.2. Whoever may activate SOL may take it from others.
func deactivatePayload(x *exchange) error {
	if err := serialPayload(x.data[0], x.data[1]); err != nil {
		return err
	}
	now := x.side.attached()
	switch {
	case x.session.Privilege < wire.Privilege(x.bmc().SOL().Privilege):
		return Forbidden
	case now == nil:
		return payloadInactive
	}
	side, by := x.side, x.session
	x.after = func() { x.service.detach(side, now, now.session != by) }
	return nil
}

// payloadStatus is §24.4.
func payloadStatus(x *exchange) error {
	if wire.PayloadType(x.data[0]) != wire.PayloadSOL {
		return BadField
	}
	var active byte
	if x.side.attached() != nil {
		active = 1
	}
	x.put(1, active, 0)
	return nil
}

// payloadInstance is §24.5.
func payloadInstance(x *exchange) error {
	if err := serialPayload(x.data[0], x.data[1]); err != nil {
		return err
	}
	var id uint32
	if now := x.side.attached(); now != nil {
		id = now.session.ID
	}
	x.put32(id)
	x.put(solPort, 0, 0, 0, 0, 0, 0, 0)
	return nil
}

// usualSOLPort is where clients find serial over LAN if nobody has set another
// port: that which they have reached, unless something on the way maps ports.
func (x *exchange) usualSOLPort() uint16 {
	return cmp.Or(x.host.Dialect().IPMI.AdvertisedSOLPort, x.at.Port())
}

// payloadSupport is §24.8: IPMI messages, SOL, and the six of the handshake.
func payloadSupport(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	x.put(0x03, 0, 0x3f, 0, 0, 0, 0, 0)
	return nil
}

// payloadVersion is §24.9.
func payloadVersion(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	switch p := wire.PayloadType(x.data[1]); {
	case p == wire.PayloadIPMI, p == wire.PayloadSOL, p >= wire.PayloadOpenRequest && p <= wire.PayloadRAKP4:
		x.put(payloadFormat)
		return nil
	}
	return Code(0x80) // not on this channel
}

// oemPayload is §24.10: there are none.
func oemPayload(x *exchange) error {
	if !x.lan(x.data[0]) {
		return BadField
	}
	return Code(0x80)
}

// payloadEncryption is §24.3. AES has a new initialization vector in every
// packet, so there is nothing to do to get one.
func payloadEncryption(x *exchange) error {
	const suspend, resume, renew = 0, 1, 2
	op := x.data[2] & 0x1f
	if wire.PayloadType(x.data[0]&0x3f) != wire.PayloadSOL {
		return Code(0x80) // not for that payload
	}
	now := x.side.attached()
	switch {
	case x.data[1]&0x0f != solInstance || op > renew:
		return BadField
	case now == nil:
		return Code(0x83) // not active
	case !now.session.Sealed():
		return Code(0x82) // the session cannot
	case op == suspend && x.bmc().SOL().Encrypted:
		return Code(0x81) // not as it is set
	case op == renew:
		return nil
	}
	now.session.ProtectSOL(true, op == resume)
	return nil
}
