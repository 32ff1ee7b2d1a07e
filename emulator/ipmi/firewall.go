package ipmi

import "github.com/metalab-dev/metalab/emulator/ipmi/wire"

// firewallCommands tell which commands there are. None can be switched off: the
// commands that would (§21.7, §21.9) are not among them.
var firewallCommands = []command{
	{fn: wire.App, cmd: 0x09, name: "Get NetFn Support", needs: wire.User, least: 1, most: 1, run: netFnSupport},
	{fn: wire.App, cmd: 0x0a, name: "Get Command Support", needs: wire.User, least: 3, most: 6, run: commandSupport},
	{fn: wire.App, cmd: 0x0b, name: "Get Command Sub-function Support", needs: wire.User, least: 4, most: 7, run: subSupport},
	{fn: wire.App, cmd: 0x0c, name: "Get Configurable Commands", needs: wire.User, least: 3, most: 6, run: configurable},
	{fn: wire.App, cmd: 0x0d, name: "Get Configurable Command Sub-functions", needs: wire.User, least: 4, most: 7, run: subConfigurable},
	{fn: wire.App, cmd: 0x61, name: "Get Command Enables", needs: wire.User, least: 3, most: 6, run: commandEnables},
	{fn: wire.App, cmd: 0x63, name: "Get Command Sub-function Enables", needs: wire.User, least: 4, most: 7, run: subConfigurable},
}

// netFnSupport is §21.2: a bit of each pair of network functions, of LUN 0 to
// 3. All commands are on LUN 0.
func netFnSupport(x *exchange) error {
	if !x.here(x.data[0]) {
		return BadField
	}
	const asSpecified = 0x01
	var bits [16]byte
	for at := range x.service.commands {
		pair := at.fn >> 1
		bits[pair/8] |= 1 << (pair % 8)
	}
	x.put(asSpecified)
	x.put(bits[:]...)
	return nil
}

// here says whether a channel number means one that commands come on.
func (x *exchange) here(channel byte) bool {
	n, known := x.channel(channel)
	return known && n != ipmbChannel && channel&0xf0 == 0
}

// scope is the commands that a question of the firewall is about: network
// function, LUN and, where those have several, who defines them. rest is behind
// what all such questions begin with.
type scope struct {
	fn   wire.NetFn
	lun  byte
	body []byte // nil: whoever it is
}

// scoped reads what a question is about; own is the number of bytes that it has
// before who defines the commands.
func (x *exchange) scoped(own int) (scope, error) {
	s := scope{fn: wire.NetFn(x.data[1] & 0x3e), lun: x.data[2], body: x.data[own:]}
	switch {
	case !x.here(x.data[0]) || s.lun > 3:
		return s, BadField
	case len(s.body) == 0:
		s.body = nil
	case len(s.body) != definers[s.fn]:
		return s, BadLength
	}
	return s, nil
}

// has says whether a command is in the scope.
func (s scope) has(at place) bool {
	return at.fn == s.fn && s.lun == 0 && (s.body == nil || s.fn != wire.Group || at.group == s.body[0])
}

// half reads which half of the commands is meant.
func (x *exchange) half() (from byte, err error) {
	switch x.data[1] >> 6 {
	case 0:
		return 0x00, nil
	case 1:
		return 0x80, nil
	}
	return 0, BadField
}

// mask has a bit set of each command of a half that there is.
func (x *exchange) mask() (bits [16]byte, err error) {
	s, err := x.scoped(3)
	if err != nil {
		return bits, err
	}
	from, err := x.half()
	if err != nil {
		return bits, err
	}
	for at := range x.service.commands {
		if n := at.cmd - from; s.has(at) && n < 0x80 && x.service.known(x.host, at) != nil {
			bits[n/8] |= 1 << (n % 8)
		}
	}
	return bits, nil
}

// commandSupport is §21.3: a bit that is set says that a command is not there.
func commandSupport(x *exchange) error {
	bits, err := x.mask()
	if err != nil {
		return err
	}
	for _, b := range bits {
		x.put(^b)
	}
	return nil
}

// commandEnables is §21.8: what is there is on.
func commandEnables(x *exchange) error {
	bits, err := x.mask()
	if err != nil {
		return err
	}
	x.put(bits[:]...)
	return nil
}

// configurable is §21.5.
func configurable(x *exchange) error {
	if _, err := x.mask(); err != nil {
		return err
	}
	x.put(make([]byte, 16)...)
	return nil
}

// sub reads which command's sub-functions are meant: one that is there.
func (x *exchange) sub() error {
	s, err := x.scoped(4)
	if err != nil {
		return err
	}
	if x.data[1]&0xc0 != 0 {
		return BadField
	}
	for at := range x.service.commands {
		if s.has(at) && at.cmd == x.data[3] && x.service.known(x.host, at) != nil {
			return nil
		}
	}
	return BadField
}

// subSupport is §21.4: by which specification a command is, and that it lacks
// none of its sub-functions that must be.
func subSupport(x *exchange) error {
	if err := x.sub(); err != nil {
		return err
	}
	const ipmiErrata7 = 0x07
	x.put(ipmiErrata7, 0x20, 0x11)
	x.put32(0)
	return nil
}

// subConfigurable is §21.6 and §21.10.
func subConfigurable(x *exchange) error {
	if err := x.sub(); err != nil {
		return err
	}
	x.put32(0)
	return nil
}
