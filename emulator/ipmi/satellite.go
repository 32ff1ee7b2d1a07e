package ipmi

import "github.com/metalab-dev/metalab/emulator/ipmi/wire"

// managementEngine is the address of the controller in a server's chip set, as
// servers with Intel processors have one.
const managementEngine = 0x2c

// satelliteAt is the controller beside the BMC that has an address on IPMB;
// false when nobody is there.
func satelliteAt(address byte) (satellite, bool) {
	if address != managementEngine {
		return nil, false
	}
	return satellite{
		{fn: wire.App, cmd: 0x01}: engineID,
		{fn: wire.App, cmd: 0x04}: engineTest,
		{fn: wire.App, cmd: 0x34}: engineSends,
	}, true
}

// satellite is a controller of its own, with few commands.
type satellite map[place]func(x *exchange, data []byte) ([]byte, Code)

// answer is what a satellite answers to a message, as it goes over IPMB. x is
// what has led to it.
func (s satellite) answer(x *exchange, req wire.Request) []byte {
	run, ok := s[place{fn: req.NetFn, cmd: req.Cmd}]
	switch {
	case req.ToLUN != 0:
		return req.AppendResponse(nil, byte(UnknownAtLUN), nil)
	case !ok:
		return req.AppendResponse(nil, byte(Unknown), nil)
	}
	data, code := run(x, req.Data)
	return req.AppendResponse(nil, byte(code), data)
}

// engineID is §20.1.
func engineID(x *exchange, data []byte) ([]byte, Code) {
	if len(data) > 0 {
		return nil, BadLength
	}
	d := x.host.Dialect().IPMI
	const device, revision, ipmi20 = 0x50, 0x01, 0x02
	const supports = 0x20 // it makes events
	m, p := d.Manufacturer, d.Product
	return []byte{device, revision, 0x06, 0x01, ipmi20, supports, byte(m), byte(m >> 8), byte(m >> 16), byte(p), byte(p >> 8)}, Done
}

// engineTest is §20.4.
func engineTest(_ *exchange, data []byte) ([]byte, Code) {
	if len(data) > 0 {
		return nil, BadLength
	}
	return []byte{0x55, 0x00}, Done
}

// engineSends is §22.7, of requests that come over IPMB and go back to it: the
// answer comes in that of the command.
func engineSends(x *exchange, data []byte) ([]byte, Code) {
	switch {
	case len(data) < 8:
		return nil, BadLength
	case data[0]&0x3f != ipmbChannel:
		return nil, BadField
	}
	req, err := wire.ParseRequest(data[1:])
	to, ok := satelliteAt(data[1])
	switch {
	case data[1] != bmcAddress && !ok:
		return nil, nak
	case err != nil:
		return nil, Timeout // nobody takes it
	case !ok:
		return x.loop(req), Done
	case req.NetFn == wire.App && req.Cmd == 0x34:
		return nil, Forbidden // nothing goes round
	}
	return to.answer(x, req), Done
}
