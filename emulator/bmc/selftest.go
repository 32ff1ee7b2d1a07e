package bmc

import (
	"fmt"
	"time"
)

// SelfTest is the result of the BMC's self test (IPMI v2.0 rev 1.1, §20.4).
type SelfTest struct {
	Result byte `json:"result"` // 57h: corrupt or inaccessible data or devices; 58h: fatal hardware error
	Detail byte `json:"detail"` // with 57h, a bit for each
}

// Values of SelfTest.Result.
const (
	SelfTestPassed byte = 0x55
	selfTestNone   byte = 0xff // reserved
)

// SetSelfTest sets the result of self tests; nil: passed.
type SetSelfTest struct{ To *SelfTest }

func (c SetSelfTest) apply(b *BMC, _ time.Time) ([]Event, error) {
	switch t := c.To; {
	case t == nil:
	case t.Result == 0 || t.Result == selfTestNone:
		return nil, fmt.Errorf("bmc: self test: result %02Xh: use 55h (passed), 57h, 58h or a code of the device's own", t.Result)
	case t.Result == SelfTestPassed && t.Detail == 0:
		c.To = nil
	}
	b.st.SelfTest = c.To
	return nil, nil
}
