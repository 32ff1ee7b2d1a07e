package layout

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
)

// Span is a range of addresses, both ends included.
type Span struct{ First, Last netip.Addr }

// String implements fmt.Stringer.
func (s Span) String() string { return s.First.String() + "-" + s.Last.String() }

// Spans returns the addresses of a Subnet that can be allocated, in their order. No two of
// the ranges overlap.
func Spans(s *ipamv1.SubnetSpec) ([]Span, error) {
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return nil, fmt.Errorf("spec.cidr: %q is no network: give ADDRESS/LENGTH", s.CIDR)
	}
	p = p.Masked()
	first, last := p.Addr(), lastOf(p)
	include := []Span{{first, last}}
	if len(s.IncludeRanges) > 0 {
		if include, err = spans("spec.includeRanges", s.IncludeRanges, p); err != nil {
			return nil, err
		}
	}
	exclude, err := spans("spec.excludeRanges", s.ExcludeRanges, p)
	if err != nil {
		return nil, err
	}
	if !s.UseCompleteCIDR && p.Bits() < p.Addr().BitLen()-1 { // RFC 3021: a network of two has no broadcast
		exclude = append(exclude, Span{first, first})
		if p.Addr().Is4() {
			exclude = append(exclude, Span{last, last})
		}
	}
	if s.Gateway != "" {
		g, err := netip.ParseAddr(s.Gateway)
		if err != nil {
			return nil, fmt.Errorf("spec.gateway: %q is no address", s.Gateway)
		}
		exclude = append(exclude, Span{g, g})
	}
	return subtract(merge(include), exclude), nil
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b) // b has 4 or 16 bytes
	return a
}

func spans(field string, texts []ipamv1.AddressRange, in netip.Prefix) (out []Span, err error) {
	for i, text := range texts {
		from, to, two := strings.Cut(string(text), "-")
		if !two {
			to = from
		}
		a, errA := netip.ParseAddr(strings.TrimSpace(from))
		b, errB := netip.ParseAddr(strings.TrimSpace(to))
		if errA != nil || errB != nil || b.Less(a) {
			return nil, fmt.Errorf("%s[%d]: %q is no range: give an address or FIRST-LAST", field, i, text)
		}
		if !in.Contains(a) || !in.Contains(b) {
			return nil, fmt.Errorf("%s[%d]: %q is not in %s", field, i, text, in)
		}
		out = append(out, Span{a, b})
	}
	return out, nil
}

// merge sorts ranges and joins those that overlap.
func merge(in []Span) (out []Span) {
	slices.SortFunc(in, func(a, b Span) int { return a.First.Compare(b.First) })
	for _, s := range in {
		if n := len(out); n > 0 && !out[n-1].Last.Less(s.First) {
			if out[n-1].Last.Less(s.Last) {
				out[n-1].Last = s.Last
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

func subtract(from, what []Span) []Span {
	for _, w := range what {
		var next []Span
		for _, s := range from {
			if w.Last.Less(s.First) || s.Last.Less(w.First) {
				next = append(next, s)
				continue
			}
			if s.First.Less(w.First) {
				next = append(next, Span{s.First, w.First.Prev()})
			}
			if w.Last.Less(s.Last) {
				next = append(next, Span{w.Last.Next(), s.Last})
			}
		}
		from = next
	}
	return from
}

// maxCapacity is the largest capacity that a Subnet's status shows.
const maxCapacity = 1 << 32

// Capacity counts the addresses of ranges, up to 2^32.
func Capacity(all []Span) (n int64) {
	for _, s := range all {
		size := new(big.Int).Sub(new(big.Int).SetBytes(s.Last.AsSlice()), new(big.Int).SetBytes(s.First.AsSlice()))
		if !size.IsInt64() || size.Int64() >= maxCapacity {
			return maxCapacity
		}
		n += size.Int64() + 1
	}
	return min(n, maxCapacity)
}

// Free returns the first address of ranges that is not used; false when there is none.
func Free(all []Span, used func(netip.Addr) bool) (netip.Addr, bool) {
	for _, s := range all {
		for a := s.First; a.IsValid() && !s.Last.Less(a); a = a.Next() {
			if !used(a) {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}
