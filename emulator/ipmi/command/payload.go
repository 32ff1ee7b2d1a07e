package command

import (
	"cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// solCommands are the payload commands (§24) and the SOL parameters (§26).
// The SOL parameters say which privilege level may activate SOL; the payload
// access of a user says whether that user may.
var solCommands = []Row{
	{fn: wire.App, cmd: 0x48, name: "Activate Payload", privilege: wire.User, least: 6, most: 6, run: activatePayload},
	{fn: wire.App, cmd: 0x49, name: "Deactivate Payload", privilege: wire.User, least: 2, most: 6, run: deactivatePayload},
	{fn: wire.App, cmd: 0x4a, name: "Get Payload Activation Status", privilege: wire.User, least: 1, most: 1, run: getPayloadActivationStatus},
	{fn: wire.App, cmd: 0x4b, name: "Get Payload Instance Info", privilege: wire.User, least: 2, most: 2, run: getPayloadInstanceInfo},
	{fn: wire.App, cmd: 0x4e, name: "Get Channel Payload Support", privilege: wire.User, least: 1, most: 1, run: getChannelPayloadSupport},
	{fn: wire.App, cmd: 0x4f, name: "Get Channel Payload Version", privilege: wire.User, least: 2, most: 2, run: getChannelPayloadVersion},
	{fn: wire.App, cmd: 0x50, name: "Get Channel OEM Payload Info", privilege: wire.User, least: 7, most: 7, run: getChannelOEMPayloadInfo},
	{fn: wire.App, cmd: 0x55, name: "Suspend/Resume Payload Encryption", privilege: wire.User, least: 3, most: 3, run: suspendPayloadEncryption},
	{fn: wire.Transport, cmd: 0x21, name: "Set SOL Configuration Parameters", privilege: wire.Administrator, least: 3, most: -1, mutates: true, run: setSOL},
	{fn: wire.Transport, cmd: 0x22, name: "Get SOL Configuration Parameters", privilege: wire.User, least: 4, most: 4, run: getSOL},
}

const (
	// PayloadSize is the largest payload in either direction, in bytes.
	PayloadSize   = 255
	solInstance   = 1
	solPort       = 2    // number, from 1, of the system's serial port that is redirected
	payloadFormat = 0x10 // version 1.0
	noVLAN        = 0xffff
)

// Completion codes of the payload commands (§24.1, §24.2).
const (
	payloadActive                Code = 0x80
	payloadInactive              Code = 0x80
	payloadDisabled              Code = 0x81
	payloadEncryptionUnavailable Code = 0x83
	payloadEncryptionRequired    Code = 0x84
)

// SerialAvailable reports whether the machine can take characters.
func SerialAvailable(v *machine.View) bool {
	return v.Power == machine.PowerOn || v.Phase == machine.Stopping
}

// checkSOLPayload checks that a command is for payload instance 1 of SOL, the
// only one.
func checkSOLPayload(kind, instance byte) error {
	if wire.PayloadType(kind&0x3f) != wire.PayloadSOL || instance&0x0f != solInstance {
		return InvalidDataField
	}
	return nil
}

// activatePayload handles Activate Payload (§24.1).
func activatePayload(x *Request) error {
	if err := checkSOLPayload(x.data[0], x.data[1]); err != nil {
		return err
	}
	set, aux, sess := x.bmc().SOL(), x.data[2], x.Session
	sealed, signed := aux&0x80 != 0, aux&0x40 != 0
	now := x.State.Server.SOLSession()
	switch {
	case sess.V15 || x.inBand:
		return NotSupportedInState // payloads need RMCP+
	case set.Off || x.bmc().Channel.User(sess.User.Account).NoSOL:
		return payloadDisabled
	case sess.Privilege < wire.Privilege(set.Privilege):
		return InsufficientPrivilege
	case sealed && !signed:
		return payloadEncryptionUnavailable
	case set.Encrypted && sess.Encrypted() && !sealed:
		return payloadEncryptionRequired
	case now != nil && now != sess:
		return payloadActive
	}
	port := cmp.Or(set.Port, x.defaultSOLPort())
	x.put32(0) // no test mode
	size := uint16(PayloadSize)
	if x.Host.Dialect().IPMI.Faults.SOLPayloadSizes {
		size = 0
	}
	x.put16(size)
	x.put16(size)
	x.put16(port)
	x.put16(noVLAN)
	x.After = func() { // no packet may precede the response
		sess.ProtectSOL(signed || set.Authenticated, sealed)
		x.State.Server.ActivateSOL(sess, x.Client)
	}
	return nil
}

// deactivatePayload handles Deactivate Payload (§24.2). Whoever may activate
// SOL may deactivate another session's.
func deactivatePayload(x *Request) error {
	if err := checkSOLPayload(x.data[0], x.data[1]); err != nil {
		return err
	}
	now := x.State.Server.SOLSession()
	switch {
	case x.Session.Privilege < wire.Privilege(x.bmc().SOL().Privilege):
		return InsufficientPrivilege
	case now == nil:
		return payloadInactive
	}
	server, by := x.State.Server, x.Session
	x.After = func() { server.DeactivateSOL(now, now != by) }
	return nil
}

// getPayloadActivationStatus handles Get Payload Activation Status (§24.4).
func getPayloadActivationStatus(x *Request) error {
	if wire.PayloadType(x.data[0]) != wire.PayloadSOL {
		return InvalidDataField
	}
	var active byte
	if x.State.Server.SOLSession() != nil {
		active = 1
	}
	x.put(1, active, 0)
	return nil
}

// getPayloadInstanceInfo handles Get Payload Instance Info (§24.5).
func getPayloadInstanceInfo(x *Request) error {
	if err := checkSOLPayload(x.data[0], x.data[1]); err != nil {
		return err
	}
	var id uint32
	if now := x.State.Server.SOLSession(); now != nil {
		id = now.ID
	}
	x.put32(id)
	x.put(solPort, 0, 0, 0, 0, 0, 0, 0)
	return nil
}

// defaultSOLPort returns the port at which clients find SOL when the parameter
// sets none: the port that the client has reached, unless a NAT maps it.
func (x *Request) defaultSOLPort() uint16 {
	return cmp.Or(x.Host.Dialect().IPMI.AdvertisedSOLPort, x.Client.Local.Port())
}

// getChannelPayloadSupport handles Get Channel Payload Support (§24.8): IPMI
// messages, SOL and the six session setup payloads.
func getChannelPayloadSupport(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	x.put(0x03, 0, 0x3f, 0, 0, 0, 0, 0)
	return nil
}

// getChannelPayloadVersion handles Get Channel Payload Version (§24.9).
func getChannelPayloadVersion(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	switch p := wire.PayloadType(x.data[1]); {
	case p == wire.PayloadIPMI, p == wire.PayloadSOL, p >= wire.PayloadOpenRequest && p <= wire.PayloadRAKP4:
		x.put(payloadFormat)
		return nil
	}
	return Code(0x80) // not available on this channel
}

// getChannelOEMPayloadInfo handles Get Channel OEM Payload Info (§24.10):
// there are no OEM payloads.
func getChannelOEMPayloadInfo(x *Request) error {
	if !x.isLANChannel(x.data[0]) {
		return InvalidDataField
	}
	return Code(0x80)
}

// suspendPayloadEncryption handles Suspend/Resume Payload Encryption (§24.3).
// AES uses a new initialization vector for every packet, so regenerating it
// needs no action.
func suspendPayloadEncryption(x *Request) error {
	const suspend, resume, renew = 0, 1, 2
	op := x.data[2] & 0x1f
	if wire.PayloadType(x.data[0]&0x3f) != wire.PayloadSOL {
		return Code(0x80) // not supported for that payload
	}
	now := x.State.Server.SOLSession()
	switch {
	case x.data[1]&0x0f != solInstance || op > renew:
		return InvalidDataField
	case now == nil:
		return Code(0x83) // payload not active
	case !now.Encrypted():
		return Code(0x82) // the session's suite has no encryption
	case op == suspend && x.bmc().SOL().Encrypted:
		return Code(0x81) // the SOL parameters do not allow it
	case op == renew:
		return nil
	}
	now.ProtectSOL(true, op == resume)
	return nil
}
