package command

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// lanRMCPParameters are the LAN parameters of IPMI 2.0 for VLAN, cipher suites
// and bad passwords.
var lanRMCPParameters = map[byte]*lanParameter{
	20: {size: 2, read: func(x *Request, _ byte) []byte {
		v := x.bmc().Network().VLAN
		switch {
		case v.On:
			return []byte{byte(v.ID), vlanOn | byte(v.ID>>8)}
		case v.ID == lowestVLAN:
			return []byte{0, 0}
		}
		return []byte{byte(v.ID), byte(v.ID >> 8)}
	}, write: func(x *Request, _ byte, data []byte) error {
		const highest = 4094
		n, id := x.bmc().Network(), int(data[0])|int(data[1]&0x0f)<<8
		n.VLAN.On = data[1]&vlanOn != 0
		if data[1]&0x70 != 0 || id > highest || n.VLAN.On && id < lowestVLAN {
			return InvalidDataField
		}
		n.VLAN.ID = max(id, lowestVLAN)
		return x.setNetwork(n)
	}},
	21: {size: 1, read: func(x *Request, _ byte) []byte { return []byte{byte(x.bmc().Network().VLAN.Priority)} },
		write: func(x *Request, _ byte, data []byte) error {
			if data[0] > 7 {
				return InvalidDataField
			}
			n := x.bmc().Network()
			n.VLAN.Priority = int(data[0])
			return x.setNetwork(n)
		}},
	22: {size: 1, read: func(x *Request, _ byte) []byte { return []byte{byte(len(suiteEntries(x.Host)))} }},
	23: {size: -1, read: func(x *Request, _ byte) []byte { return append([]byte{0}, suiteEntries(x.Host)...) }},
	24: {size: 9, read: func(x *Request, _ byte) []byte {
		return append([]byte{0}, suiteLimits(x.Host, x.bmc().Channel.Suites)...)
	}, write: func(x *Request, _ byte, data []byte) error {
		c := *x.bmc().Channel
		c.Suites = slices.Clone(data[1:])
		wrong := func(b byte) bool { return b&0x0f > byte(wire.OEMPrivilege) || b>>4 > byte(wire.OEMPrivilege) }
		if slices.ContainsFunc(c.Suites, wrong) {
			return InvalidDataField
		}
		_, err := x.applyBMC(bmc.SetChannel{Channel: c})
		return err
	}},
	25: destination(25, func(b []byte) bool {
		return len(b) == 3 && (b[0] == 0 || b[0] == 1<<4)
	}, 0, 0, 0),
	26: {size: 6, read: readLockout, write: setLockout},
}

const (
	vlanOn     = 0x80
	lowestVLAN = 1 // lowest VLAN ID
)

// suiteEntries returns the IDs of the cipher suites that can be enabled, in
// ascending order.
func suiteEntries(h Host) []byte { return slices.Sorted(slices.Values(h.Dialect().IPMI.CipherSuites)) }

// suiteLimitIndex returns the position of a suite's privilege limit in
// parameter 24; -1 when it has none. ipmitool reads the limits in the order of
// suite numbers 0 to 14; the last of the 16 is suite 17's.
func suiteLimitIndex(id byte) int {
	const sha256, last = 17, 15
	switch {
	case id < last:
		return int(id)
	case id == sha256:
		return last
	}
	return -1
}

// suiteLimit returns the privilege limit of a suite; limits may be nil.
func suiteLimit(limits []byte, id byte) wire.Privilege {
	at := suiteLimitIndex(id)
	if limits == nil || at < 0 {
		return wire.OEMPrivilege
	}
	return wire.Privilege(limits[at/2] >> (at % 2 * 4) & 0x0f)
}

// suiteLimits returns all limits as parameter 24 has them; set is nil when none
// were set.
func suiteLimits(h Host, set []byte) []byte {
	if set != nil {
		return set
	}
	b := make([]byte, 8)
	for _, id := range h.Dialect().IPMI.CipherSuites {
		if at := suiteLimitIndex(id); at >= 0 {
			b[at/2] |= byte(wire.Administrator) << (at % 2 * 4)
		}
	}
	return b
}

// lockoutUnit is the unit of the times in parameter 26.
const lockoutUnit = 10 * time.Second

// readLockout returns the bad password threshold (parameter 26), which is
// Redfish's account lockout policy.
func readLockout(x *Request, _ byte) []byte {
	p, c := x.bmc().Policy, x.bmc().Channel
	units := func(d time.Duration) []byte {
		n := min((d+lockoutUnit-1)/lockoutUnit, 0xffff)
		return []byte{byte(n), byte(n >> 8)}
	}
	b := []byte{0, byte(min(p.LockoutThreshold, 0xff))}
	if c.Audit {
		b[0] = 1
	}
	if p.LockForever {
		return append(b, 0, 0, 0, 0)
	}
	return append(append(b, units(p.LockoutCounterResetAfter)...), units(p.LockoutDuration)...)
}

func setLockout(x *Request, _ byte, data []byte) error {
	if data[0] > 1 {
		return InvalidDataField
	}
	p, c := *x.bmc().Policy, *x.bmc().Channel
	p.LockoutThreshold = int(data[1])
	p.LockoutCounterResetAfter = time.Duration(le16(data[2:])) * lockoutUnit
	p.LockoutDuration = time.Duration(le16(data[4:])) * lockoutUnit
	p.LockForever = p.LockoutDuration == 0 && p.LockoutThreshold > 0
	if _, err := x.applyBMC(bmc.SetPolicy{Policy: p}); err != nil {
		return err
	}
	if on := data[0] == 1; on != c.Audit {
		c.Audit = on
		_, err := x.applyBMC(bmc.SetChannel{Channel: c})
		return err
	}
	return nil
}
