package bmc

import "time"

// ChassisCapabilities is what a BMC says of the chassis that it looks after, to who asks by
// IPMI (IPMI v2.0 rev 1.1, §28.1). Somebody may have written it.
type ChassisCapabilities struct {
	Intrusion bool `json:"intrusion"` // there is a sensor of the cover
	Lockout   bool `json:"lockout"`   // buttons can be disabled
	// Addresses on the IPMB of what serves those.
	FRU        byte `json:"fru"`
	SDR        byte `json:"sdr"`
	SEL        byte `json:"sel"`
	Management byte `json:"management"`
	Bridge     byte `json:"bridge"`
}

// ownAddress is the address of a BMC on the IPMB (§5.2 of the IPMB's
// specification).
const ownAddress = 0x20

// asBuilt is a chassis whose BMC does everything itself.
var asBuilt = &ChassisCapabilities{
	Intrusion: true, Lockout: true, FRU: ownAddress, SDR: ownAddress, SEL: ownAddress, Management: ownAddress, Bridge: ownAddress,
}

// chassis is what is said of the chassis.
func (b *BMC) chassis() *ChassisCapabilities {
	if b.st.Chassis == nil {
		return asBuilt
	}
	return b.st.Chassis
}

// SetChassisCapabilities sets it, whole.
type SetChassisCapabilities struct{ ChassisCapabilities }

func (c SetChassisCapabilities) apply(b *BMC, _ time.Time) ([]Event, error) {
	if *b.chassis() != c.ChassisCapabilities {
		b.st.Chassis = &c.ChassisCapabilities
	}
	return nil, nil
}
