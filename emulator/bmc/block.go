package bmc

import (
	"slices"
	"time"
)

// AddressBlock counts the failed logins from an address. Its times are client
// times.
type AddressBlock struct {
	Address  string    `json:"address"`
	Failures int       `json:"failures"`
	First    time.Time `json:"first"`
	Until    time.Time `json:"until,omitzero"` // end of the block; zero: not blocked
}

// maxBlocks is the number of addresses that are remembered.
const maxBlocks = 64

// Blocked reports whether an address is blocked.
func (l *LoginFailures) Blocked(address string) bool {
	return l != nil && slices.ContainsFunc(l.ByAddress, func(o AddressBlock) bool { return o.Address == address && !o.Until.IsZero() })
}

// suspects reports whether logins from an address have failed recently.
func (l *LoginFailures) suspects(address string) bool {
	return l != nil && slices.ContainsFunc(l.ByAddress, func(o AddressBlock) bool { return o.Address == address })
}

// countAddressFailure counts a failed login from an address at a client time.
func (b *BMC) countAddressFailure(client time.Time, address string) {
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
	if is.Failures == 0 || client.Sub(is.First) >= p.BlockWithin {
		is.Failures, is.First = 0, client
	}
	if is.Failures++; is.Failures >= p.BlockAfter {
		is.Until = client.Add(p.BlockFor)
	}
	if len(l.ByAddress) >= maxBlocks {
		l.ByAddress = l.ByAddress[1:]
	}
	l.ByAddress = append(l.ByAddress, is)
	b.st.LoginFailures = l
}
