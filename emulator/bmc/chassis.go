package bmc

import "time"

// ChassisCapabilities is the answer to IPMI's Get Chassis Capabilities (IPMI
// v2.0 rev 1.1, §28.1), which clients can set.
type ChassisCapabilities struct {
	Intrusion bool `json:"intrusion"` // has an intrusion sensor
	Lockout   bool `json:"lockout"`   // has front panel lockout
	// IPMB addresses of the devices that serve these functions.
	FRU        byte `json:"fru"`
	SDR        byte `json:"sdr"`
	SEL        byte `json:"sel"`
	Management byte `json:"management"`
	Bridge     byte `json:"bridge"`
}

// bmcAddress is the BMC's IPMB address (IPMB specification, §5.2).
const bmcAddress = 0x20

// defaultChassis is a chassis whose BMC serves all functions.
var defaultChassis = &ChassisCapabilities{
	Intrusion: true, Lockout: true, FRU: bmcAddress, SDR: bmcAddress, SEL: bmcAddress, Management: bmcAddress, Bridge: bmcAddress,
}

// chassis returns the chassis capabilities.
func (b *BMC) chassis() *ChassisCapabilities {
	if b.st.Chassis == nil {
		return defaultChassis
	}
	return b.st.Chassis
}

// SetChassisCapabilities replaces the chassis capabilities.
type SetChassisCapabilities struct{ ChassisCapabilities }

func (c SetChassisCapabilities) apply(b *BMC, _ time.Time) ([]Event, error) {
	if *b.chassis() != c.ChassisCapabilities {
		b.st.Chassis = &c.ChassisCapabilities
	}
	return nil, nil
}
