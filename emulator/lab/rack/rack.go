// Package rack owns the definition of a rack: which servers a lab has, how they
// are named, who may log in to their BMCs, where those are, how fast time runs
// and what goes wrong. It is data, its defaults and what can be said of it
// without looking elsewhere; it does not know what profiles there are, nor that
// a lab runs.
//
//	kind: Lab
//	seed: 7
//	speed: 60x
//	accounts:
//	- {name: admin, password: secret}
//	racks:
//	- name: r1
//	  hosts:
//	  - {profile: generic, count: 40}
//	  - {count: 2, namePrefix: weak, ipmi: {suites: [17, 3, 0], v15: [md5]}}
//	timings: {post: 20s}
//	faults:
//	- {bmc: r1-node-7, path: /redfish/v1/Systems/**, status: 503, retryAfter: 30s, probability: 0.1}
package rack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// Kind is the kind that a rack file begins with.
const Kind = "Lab"

// MaxHosts is how many hosts a rack may have. Half a million take the addresses
// from 127.64.0.1 up to 127.71, which leaves room below 127.128.
const MaxHosts = 500_000

// Lab defines racks and the lab around them.
type Lab struct {
	Kind     string       `json:"kind"`
	Name     string       `json:"name"`
	Seed     uint64       `json:"seed"` // every identity is derived from it, and all chance
	Speed    Speed        `json:"speed"`
	Listen   Listen       `json:"listen,omitempty"`
	Accounts []Account    `json:"accounts"`         // of every BMC
	Hosts    []Group      `json:"hosts"`            // that are in no rack
	Racks    []Rack       `json:"racks,omitempty"`  // their hosts come after Hosts
	Timings  Timings      `json:"timings,omitzero"` // instead of those of the profiles
	Faults   []fault.Rule `json:"faults,omitempty"`
}

// Rack is a number of hosts that stand together.
type Rack struct {
	Name  string  `json:"name"`
	Hosts []Group `json:"hosts"`
}

// Account is a login to every BMC of the rack.
type Account struct {
	Name     string `json:"name"`
	Password string `json:"password,omitempty"` // "" leaves it to the lab to make one
	Role     string `json:"role"`               // as Redfish spells it
}

// roles are the predefined roles of DSP0266.
var roles = []string{"Administrator", "Operator", "ReadOnly"}

// Group is a number of equal hosts.
type Group struct {
	Profile    string `json:"profile"` // name of a hardware profile
	Count      int    `json:"count"`
	NamePrefix string `json:"namePrefix"`     // "node" gives node-0, node-1, …; in rack r1 the default is r1-node
	IPMI       *IPMI  `json:"ipmi,omitempty"` // nil: as usual
	// Quirks are what the BMCs do wrong beyond what their dialect does: a name
	// each, with its parameters: "power-settle-409 for=30s".
	Quirks []string `json:"quirks,omitempty"`
}

// QuirkText are the quirks as a text that can be compared.
func (g *Group) QuirkText() string { return strings.Join(g.Quirks, "\n") }

// Placed is a group with its place in the definition.
type Placed struct {
	Group
	Rack  string // "" of hosts that are in none
	Field string // racks[0].hosts[1]
}

// Timings are the delays of every host, where they shall be others than the
// profile says; nil leaves it.
type Timings struct {
	PowerOn  *fault.Duration `json:"powerOn,omitempty"`  // from the button to the first instruction
	POST     *fault.Duration `json:"post,omitempty"`     // power-on self test
	OSBoot   *fault.Duration `json:"osBoot,omitempty"`   // from the boot loader to a running system
	Shutdown *fault.Duration `json:"shutdown,omitempty"` // an operating system going down by itself
	PowerOff *fault.Duration `json:"powerOff,omitempty"` // until the supply has really gone
	Graceful *fault.Duration `json:"graceful,omitempty"` // for which a system is waited that does not hear that it shall go down
	Dump     *fault.Duration `json:"dump,omitempty"`     // a crashed system saving its memory
}

// Host is one host of the rack.
type Host struct {
	Index   int // counted from 0 over the whole lab
	Name    string
	Profile string
	Rack    string // "" when it is in none
	IPMI    string // how it speaks that, as text that can be compared; "" as usual
	Quirks  string // likewise
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
	or((*string)(&l.Listen), string(Loopback))
	fill := func(groups []Group, prefix string) {
		for i := range groups {
			or(&groups[i].Profile, "generic")
			or(&groups[i].NamePrefix, prefix)
		}
	}
	fill(l.Hosts, "node")
	for _, r := range l.Racks {
		fill(r.Hosts, r.Name+"-node")
	}
}

// Groups lists all groups in the order of their hosts.
func (l *Lab) Groups() []Placed {
	var out []Placed
	for i, g := range l.Hosts {
		out = append(out, Placed{Group: g, Field: fmt.Sprintf("hosts[%d]", i)})
	}
	for i, r := range l.Racks {
		for j, g := range r.Hosts {
			out = append(out, Placed{Group: g, Rack: r.Name, Field: fmt.Sprintf("racks[%d].hosts[%d]", i, j)})
		}
	}
	return out
}

// Len is the number of hosts.
func (l *Lab) Len() int {
	n := 0
	for _, g := range l.Groups() {
		n += g.Count
	}
	return n
}

// Each lists the hosts in their order. Groups with the same prefix are numbered
// through, so that no two hosts have the same name.
func (l *Lab) Each() []Host {
	hosts := make([]Host, 0, l.Len())
	next := map[string]int{}
	for _, g := range l.Groups() {
		for range g.Count {
			hosts = append(hosts, Host{
				Index: len(hosts), Name: fmt.Sprintf("%s-%d", g.NamePrefix, next[g.NamePrefix]), Profile: g.Profile, Rack: g.Rack, IPMI: g.IPMI.Text(), Quirks: g.QuirkText(),
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

// Diff names what keeps a lab that was made as a from being used as b. What
// Adopt takes over is no such thing, nor is a password that b leaves open.
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

func (h Host) describe() string {
	what := h.Profile
	if h.Rack != "" {
		what += ", rack " + h.Rack
	}
	if h.IPMI != "" {
		what += ", its own IPMI"
	}
	if h.Quirks != "" {
		what += ", quirks: " + strings.ReplaceAll(h.Quirks, "\n", ", ")
	}
	return fmt.Sprintf("%s (%s)", h.Name, what)
}

// Adopt takes over from what is asked all that can differ from one start of a
// lab to the next. It tells whether the faults are others than before.
func (l *Lab) Adopt(asked Lab) (faults bool) {
	was, err := json.Marshal(l.Faults)
	now, err2 := json.Marshal(asked.Faults)
	l.Speed, l.Listen, l.Timings, l.Faults = asked.Speed, asked.Listen, asked.Timings, asked.Faults
	return err != nil || err2 != nil || string(was) != string(now)
}

// timing is a delay with the name that it is written with.
type timing struct {
	name string
	is   *fault.Duration
}

func (t *Timings) all() []timing {
	return []timing{
		{"powerOn", t.PowerOn}, {"post", t.POST}, {"osBoot", t.OSBoot}, {"shutdown", t.Shutdown}, {"powerOff", t.PowerOff},
		{"graceful", t.Graceful}, {"dump", t.Dump},
	}
}
