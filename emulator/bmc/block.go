package bmc

import (
	"slices"
	"time"
)

// Block is what failed logins made of an address that they came from.
type Block struct {
	Address  string    `json:"address"`
	Failures int       `json:"failures"`
	First    time.Time `json:"first"`
	Until    time.Time `json:"until,omitzero"` // nobody gets in from there; zero: everybody does
}

// maxBlocks bounds the addresses that are remembered.
const maxBlocks = 64

// Blocked says whether nobody gets in from an address.
func (l *Locks) Blocked(address string) bool {
	return l != nil && slices.ContainsFunc(l.From, func(o Block) bool { return o.Address == address && !o.Until.IsZero() })
}

// suspects says whether logins from an address have failed lately.
func (l *Locks) suspects(address string) bool {
	return l != nil && slices.ContainsFunc(l.From, func(o Block) bool { return o.Address == address })
}

// suspect counts a failed login against where it came from.
func (b *BMC) suspect(now time.Time, address string) {
	p := b.policy()
	if p.BlockAfter == 0 || address == "" || b.st.Locks.Blocked(address) {
		return
	}
	l := b.forkLocks()
	is := Block{Address: address}
	if i := slices.IndexFunc(l.From, func(o Block) bool { return o.Address == address }); i >= 0 {
		is = l.From[i]
		l.From = slices.Delete(l.From, i, i+1)
	}
	if is.Failures == 0 || now.Sub(is.First) >= p.BlockWithin {
		is.Failures, is.First = 0, now
	}
	if is.Failures++; is.Failures >= p.BlockAfter {
		is.Until = now.Add(p.BlockFor)
	}
	if len(l.From) >= maxBlocks {
		l.From = l.From[1:]
	}
	l.From = append(l.From, is)
	b.st.Locks = l
}
