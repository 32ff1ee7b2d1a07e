package bmc

import "time"

// SelfTest is what a BMC found when it tested itself, as IPMI has it (IPMI v2.0
// rev 1.1, §20.4).
type SelfTest struct {
	Result byte `json:"result"` // 57h: data or devices are corrupt or out of reach; 58h: the hardware is broken
	Detail byte `json:"detail"` // with 57h which, a bit each
}

// SetSelfTest sets what the BMC finds from now on; nil is that all is well.
type SetSelfTest struct{ To *SelfTest }

func (c SetSelfTest) apply(b *BMC, _ time.Time) ([]Event, error) {
	b.st.SelfTest = c.To
	return nil, nil
}
