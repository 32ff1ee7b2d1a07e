// Package rack owns the definition of a rack: which servers a lab has, how they
// are named, who may log in to their BMCs. It is data, its defaults and what
// can be said of it without looking elsewhere; it does not know what profiles
// there are, nor that a lab runs.
package rack

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind that a rack file begins with.
const Kind = "Lab"

// MaxHosts is how many hosts a rack may have. Half a million take the addresses
// from 127.64.0.1 up to 127.71, which leaves room below 127.128.
const MaxHosts = 500_000

// Lab defines a rack and the lab around it.
type Lab struct {
	Kind     string    `yaml:"kind" json:"kind"`
	Name     string    `yaml:"name" json:"name"`
	Seed     uint64    `yaml:"seed" json:"seed"` // every identity is derived from it
	Speed    Speed     `yaml:"speed" json:"speed"`
	Accounts []Account `yaml:"accounts" json:"accounts"` // of every BMC
	Hosts    []Group   `yaml:"hosts" json:"hosts"`
}

// Account is a login to every BMC of the rack.
type Account struct {
	Name     string `yaml:"name" json:"name"`
	Password string `yaml:"password" json:"password,omitempty"` // "" leaves it to the lab to make one
	Role     string `yaml:"role" json:"role"`                   // as Redfish spells it
}

// roles are the predefined roles of DSP0266.
var roles = []string{"Administrator", "Operator", "ReadOnly"}

// Group is a number of equal hosts.
type Group struct {
	Profile    string `yaml:"profile" json:"profile"` // name of a hardware profile
	Count      int    `yaml:"count" json:"count"`
	NamePrefix string `yaml:"namePrefix" json:"namePrefix"` // "node" gives node-0, node-1, …
}

// Host is one host of the rack.
type Host struct {
	Index   int // counted from 0 over the whole rack
	Name    string
	Profile string
}

// Speed is how fast the lab's time runs: "60x", or "max" for as fast as there
// is work.
type Speed string

// The speeds that have a name.
const (
	RealTime Speed = "1x"
	Max      Speed = "max"
)

// Factor is how much faster than real time the lab runs; hurry means as fast as
// there is work, and then the factor is 1.
func (s Speed) Factor() (factor float64, hurry bool, err error) {
	if s == Max {
		return 1, true, nil
	}
	number, ok := strings.CutSuffix(string(s), "x")
	f, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(f > 0) || f > 1e6 {
		return 0, false, fmt.Errorf("rack: speed %q: use a form like 1x, 60x or 0.5x, at most 1000000x, or max", s)
	}
	return f, false, nil
}

// Default is a rack of so many generic hosts, node-0 and up, with one
// administrator whose password the lab makes.
func Default(hosts int) Lab {
	l := Lab{Kind: Kind, Hosts: []Group{{Count: hosts}}}
	l.fill()
	return l
}

// fill puts the defaults where nothing was said. A count is not among them:
// only who reads the file can tell 0 from nothing.
func (l *Lab) fill() {
	or := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	or(&l.Name, "lab")
	or((*string)(&l.Speed), string(RealTime))
	if l.Seed == 0 {
		l.Seed = 1
	}
	if len(l.Accounts) == 0 {
		l.Accounts = []Account{{Name: "admin"}}
	}
	for i := range l.Accounts {
		or(&l.Accounts[i].Role, roles[0])
	}
	for i := range l.Hosts {
		or(&l.Hosts[i].Profile, "generic")
		or(&l.Hosts[i].NamePrefix, "node")
	}
}

// Len is the number of hosts.
func (l *Lab) Len() int {
	n := 0
	for _, g := range l.Hosts {
		n += g.Count
	}
	return n
}

// Each lists the hosts in their order. Groups with the same prefix are numbered
// through, so that no two hosts have the same name.
func (l *Lab) Each() []Host {
	hosts := make([]Host, 0, l.Len())
	next := map[string]int{}
	for _, g := range l.Hosts {
		for range g.Count {
			hosts = append(hosts, Host{
				Index: len(hosts), Name: fmt.Sprintf("%s-%d", g.NamePrefix, next[g.NamePrefix]), Profile: g.Profile,
			})
			next[g.NamePrefix]++
		}
	}
	return hosts
}

// Admin is the first administrator.
func (l *Lab) Admin() (Account, bool) {
	i := slices.IndexFunc(l.Accounts, func(a Account) bool { return a.Role == roles[0] })
	if i < 0 {
		return Account{}, false
	}
	return l.Accounts[i], true
}

// Diff names what keeps a lab that was made as a from being used as b. Speed is
// no such thing, nor is a password that b leaves open.
func Diff(a, b Lab) []string {
	var out []string
	differ := func(field string, x, y any) {
		if x != y {
			out = append(out, fmt.Sprintf("%s: %v in this lab, %v asked", field, x, y))
		}
	}
	differ("name", a.Name, b.Name)
	differ("seed", a.Seed, b.Seed)
	differ("hosts", a.Len(), b.Len())
	if a.Len() == b.Len() {
		was, asked := a.Each(), b.Each()
		for i := range was {
			if was[i] != asked[i] { // one is enough: the others are mostly shifted by it
				differ(fmt.Sprintf("host %d", i), was[i].describe(), asked[i].describe())
				break
			}
		}
	}
	names := func(l Lab) string {
		var s []string
		for _, acc := range l.Accounts {
			s = append(s, fmt.Sprintf("%s (%s)", acc.Name, acc.Role))
		}
		return strings.Join(s, ", ")
	}
	differ("accounts", names(a), names(b))
	for i := range min(len(a.Accounts), len(b.Accounts)) {
		x, y := a.Accounts[i], b.Accounts[i]
		if x.Name == y.Name && y.Password != "" && x.Password != y.Password {
			out = append(out, fmt.Sprintf("password of account %s: another one in this lab than asked", x.Name))
		}
	}
	return out
}

func (h Host) describe() string { return fmt.Sprintf("%s (%s)", h.Name, h.Profile) }
