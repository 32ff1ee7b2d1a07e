package rackfile

import (
	"strconv"
	"strings"
)

// Part is a range of hosts, in the order of the definition. A lab of that part is a shard:
// its hosts have the names, identities and loopback addresses that they have in the complete
// lab.
type Part struct {
	First int `json:"first"` // position of the first host, counted from 0
	Count int `json:"count"` // 0: none, for what stands beside the shards
}

// Find returns the position of a host in the definition, in whichever part it is, and false
// when there is no such host.
func (l *Lab) Find(name string) (position int, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return 0, false
	}
	prefix, digits := name[:i], name[i+1:]
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || strconv.Itoa(n) != digits {
		return 0, false
	}
	first := 0
	for _, g := range l.Groups() {
		if g.NamePrefix == prefix {
			if n < g.Count {
				return first + n, true
			}
			n -= g.Count
		}
		first += g.Count
	}
	return 0, false
}
