package bmc

import (
	"slices"
	"time"
)

// AddressBlock is what failed logins made of an address that they came from.
type AddressBlock struct {
	Address  string    `json:"address"`
	Failures int       `json:"failures"`
	First    time.Time `json:"first"`
	Until    time.Time `json:"until,omitzero"` // nobody gets in from there; zero: everybody does
}

// maxBlocks bounds the addresses that are remembered.
const maxBlocks = 64

// Blocked says whether nobody gets in from an address.
func (l *LoginFailures) Blocked(address string) bool {
	return l != nil && slices.ContainsFunc(l.ByAddress, func(o AddressBlock) bool { return o.Address == address && !o.Until.IsZero() })
}

// suspects says whether logins from an address have failed lately.
func (l *LoginFailures) suspects(address string) bool {
	return l != nil && slices.ContainsFunc(l.ByAddress, func(o AddressBlock) bool { return o.Address == address })
}

// suspect counts a failed login against where it came from.
func (b *BMC) suspect(now time.Time, address string) {
	p := b.policy()
	if p.BlockAfter == 0 || address == "" || b.st.LoginFailures.Blocked(address) {
		return
	}
	l := b.forkLocks()
	is := AddressBlock{Address: address}
	if i := slices.IndexFunc(l.ByAddress, func(o AddressBlock) bool { return o.Address == address }); i >= 0 {
		is = l.ByAddress[i]
		l.ByAddress = slices.Delete(l.ByAddress, i, i+1)
	}
	if is.Failures == 0 || now.Sub(is.First) >= p.BlockWithin {
		is.Failures, is.First = 0, now
	}
	if is.Failures++; is.Failures >= p.BlockAfter {
		is.Until = now.Add(p.BlockFor)
	}
	if len(l.ByAddress) >= maxBlocks {
		l.ByAddress = l.ByAddress[1:]
	}
	l.ByAddress = append(l.ByAddress, is)
	b.st.LoginFailures = l
}
