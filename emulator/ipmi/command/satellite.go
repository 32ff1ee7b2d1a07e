package command

import "github.com/metalab-dev/metalab/emulator/ipmi/wire"

// managementEngine is the IPMB address of the management engine in the chip set
// of a server with Intel processors.
const managementEngine = 0x2c

// satelliteAt returns the satellite controller at an IPMB address; false when
// there is none.
func satelliteAt(address byte) (satellite, bool) {
	if address != managementEngine {
		return nil, false
	}
	return satellite{
		{fn: wire.App, cmd: 0x01}: engineGetDeviceID,
		{fn: wire.App, cmd: 0x04}: engineGetSelfTestResults,
		{fn: wire.App, cmd: 0x34}: engineSendMessage,
	}, true
}

// satellite is a satellite management controller with a few commands.
type satellite map[commandKey]func(x *Request, data []byte) ([]byte, Code)

// answer returns the response of a satellite to an IPMB message, in IPMB
// format. x is the request that carried the message.
func (s satellite) answer(x *Request, req wire.Request) []byte {
	run, ok := s[commandKey{fn: req.NetFn, cmd: req.Cmd}]
	switch {
	case req.ToLUN != 0:
		return req.AppendResponse(nil, byte(InvalidForLUN), nil)
	case !ok:
		return req.AppendResponse(nil, byte(InvalidCommand), nil)
	}
	data, code := run(x, req.Data)
	return req.AppendResponse(nil, byte(code), data)
}

// engineGetDeviceID handles Get Device ID (§20.1).
func engineGetDeviceID(x *Request, data []byte) ([]byte, Code) {
	if len(data) > 0 {
		return nil, DataLengthInvalid
	}
	d := x.Host.Dialect().IPMI
	const device, revision, ipmi20 = 0x50, 0x01, 0x02
	const supports = 0x20 // event generator
	m, p := d.Manufacturer, d.Product
	return []byte{device, revision, 0x06, 0x01, ipmi20, supports, byte(m), byte(m >> 8), byte(m >> 16), byte(p), byte(p >> 8)}, Completed
}

// engineGetSelfTestResults handles Get Self Test Results (§20.4).
func engineGetSelfTestResults(_ *Request, data []byte) ([]byte, Code) {
	if len(data) > 0 {
		return nil, DataLengthInvalid
	}
	return []byte{0x55, 0x00}, Completed
}

// engineSendMessage handles Send Message (§22.7) for a request that goes over
// IPMB to the BMC: the embedded response is part of the response.
func engineSendMessage(x *Request, data []byte) ([]byte, Code) {
	switch {
	case len(data) < 8:
		return nil, DataLengthInvalid
	case data[0]&0x3f != ipmbChannel:
		return nil, InvalidDataField
	}
	req, err := wire.ParseRequest(data[1:])
	to, ok := satelliteAt(data[1])
	switch {
	case data[1] != bmcAddress && !ok:
		return nil, nakOnWrite
	case err != nil:
		return nil, Timeout // nobody at that address
	case !ok:
		return x.executeOverIPMB(req), Completed
	case req.NetFn == wire.App && req.Cmd == 0x34:
		return nil, InsufficientPrivilege // no loops
	}
	return to.answer(x, req), Completed
}
