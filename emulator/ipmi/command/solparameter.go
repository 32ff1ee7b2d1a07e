package command

import (
	"cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// solParameter is a SOL configuration parameter (table 26-5); without write it
// is read-only.
type solParameter struct {
	size  int
	read  func(x *Request, s *bmc.SOL) []byte
	write func(x *Request, s *bmc.SOL, b []byte) error
}

// solState is the volatile state of SOL.
type solState struct {
	setInProgress byte // set in progress: a client is setting parameters
	volatileRate  byte // volatile bit rate; 0: the stored one
}

// Parameters that commands use by number.
const (
	solInProgress = 0
	solRate       = 6
)

// solParameters are the SOL configuration parameters by number (table 26-5).
var solParameters = []solParameter{
	solInProgress: {1, func(x *Request, _ *bmc.SOL) []byte { return []byte{x.State.sol.setInProgress} }, nil},
	1: {1, func(_ *Request, s *bmc.SOL) []byte { return []byte{flag(!s.Off)} }, func(_ *Request, s *bmc.SOL, b []byte) error {
		s.Off = b[0]&1 == 0
		return requireDefined(b[0] < 2)
	}},
	2: {1, func(_ *Request, s *bmc.SOL) []byte {
		return []byte{flag(s.Encrypted)<<7 | flag(s.Authenticated)<<6 | s.Privilege}
	}, func(_ *Request, s *bmc.SOL, b []byte) error {
		s.Encrypted, s.Authenticated, s.Privilege = b[0]&0x80 != 0, b[0]&0x40 != 0, b[0]&0x0f
		return requireDefined(b[0]&0x30 == 0)
	}},
	3: {2, func(_ *Request, s *bmc.SOL) []byte { return []byte{s.Accumulate, s.Threshold} }, func(_ *Request, s *bmc.SOL, b []byte) error {
		s.Accumulate, s.Threshold = b[0], b[1]
		return nil
	}},
	4: {2, func(_ *Request, s *bmc.SOL) []byte { return []byte{s.Retries, s.Interval} }, func(_ *Request, s *bmc.SOL, b []byte) error {
		s.Retries, s.Interval = b[0], b[1]
		return nil
	}},
	5: {1, func(_ *Request, s *bmc.SOL) []byte { return []byte{s.BitRate} }, func(x *Request, s *bmc.SOL, b []byte) error {
		s.BitRate, x.State.sol.volatileRate = b[0], 0
		return checkBitRate(b[0])
	}},
	solRate: {1, func(x *Request, s *bmc.SOL) []byte {
		if x.State.sol.volatileRate != 0 {
			return []byte{x.State.sol.volatileRate}
		}
		return []byte{s.BitRate}
	}, nil},
	7: {1, func(*Request, *bmc.SOL) []byte { return []byte{lanChannel} }, nil},
	8: {2, func(x *Request, s *bmc.SOL) []byte {
		port := cmp.Or(s.Port, x.defaultSOLPort())
		return []byte{byte(port), byte(port >> 8)}
	}, func(x *Request, s *bmc.SOL, b []byte) error {
		s.Port = le16(b)
		if s.Port == x.defaultSOLPort() {
			s.Port = 0 // the port that is used by default is stored as 0
		}
		return nil
	}},
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func requireDefined(is bool) error {
	if is {
		return nil
	}
	return InvalidDataField
}

// checkBitRate returns an error for an unsupported bit rate.
func checkBitRate(b byte) error {
	if b < 6 || b > 10 {
		return ParameterOutOfRange // as table 26-5 recommends
	}
	return nil
}

// getSOL handles Get SOL Configuration Parameters (§26.3). No parameter has
// sets or blocks.
func getSOL(x *Request) error {
	const revision, revisionOnly = 0x11, 0x80
	n := int(x.data[1])
	switch {
	case !x.isLANChannel(x.data[0] & 0x7f):
		return InvalidDataField
	case n >= len(solParameters):
		return Code(0x80) // not supported
	}
	x.put(revision)
	if x.data[0]&revisionOnly == 0 {
		x.put(solParameters[n].read(x, x.bmc().SOL())...)
	}
	return nil
}

// setSOL handles Set SOL Configuration Parameters (§26.2).
func setSOL(x *Request) error {
	n, data := int(x.data[1]), x.data[2:]
	switch {
	case !x.isLANChannel(x.data[0] & 0x7f):
		return InvalidDataField
	case n >= len(solParameters):
		return Code(0x80) // not supported
	case len(data) != solParameters[n].size:
		return DataLengthInvalid
	case n == solInProgress:
		return x.setSOLInProgress(data[0])
	case n == solRate: // volatile until the BMC restarts
		if err := checkBitRate(data[0]); err != nil {
			return err
		}
		x.State.sol.volatileRate = data[0]
		return nil
	case solParameters[n].write == nil:
		return Code(0x82) // read only
	}
	s := *x.bmc().SOL()
	if err := solParameters[n].write(x, &s, data); err != nil {
		return err
	}
	if _, err := x.applyBMC(bmc.SetSOL{SOL: s}); err != nil {
		return err
	}
	x.State.Server.ConfigureSOL(&s)
	return nil
}

// setSOLInProgress sets parameter 0, set in progress. There is no rollback:
// parameters take effect at once and "commit" changes nothing, but is accepted
// because ipmitool sends it and reports a refusal as an error.
func (x *Request) setSOLInProgress(b byte) error {
	const complete, inProgress, commit = 0, 1, 2
	switch {
	case b > commit:
		return InvalidDataField
	case b == commit:
		b = inProgress
	case b == inProgress && x.State.sol.setInProgress == inProgress:
		return Code(0x81) // another client has begun
	}
	x.State.sol.setInProgress = b
	return nil
}
