// Package rackfile defines rack files: the servers of a lab, their names, the accounts
// and addresses of their BMCs, the speed of the lab's time, and faults. It has the
// defaults and checks what can be checked without other files; it does not know
// which profiles exist, nor that a lab runs.
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
package rackfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// Kind is the value of the field kind of a rack file.
const Kind = "Lab"

// MaxHosts is how many hosts a rack may have. Half a million take the addresses
// from 127.64.0.1 up to 127.71, which leaves room below 127.128.
const MaxHosts = 500_000

// Lab is a rack file.
type Lab struct {
	Kind     string       `json:"kind"`             // must be Lab
	Name     string       `json:"name"`             // up to 63 of a-z, 0-9 and -; default lab
	Seed     uint64       `json:"seed"`             // all identities (serial numbers, MAC addresses, UUIDs) and all chance follow from it; default 1
	Speed    Speed        `json:"speed"`            // default 60x
	Listen   Listen       `json:"listen,omitempty"` // default loopback
	Accounts []Account    `json:"accounts"`         // accounts of every BMC, at least one an Administrator; default admin
	Hosts    []Group      `json:"hosts"`            // hosts outside of racks
	Racks    []Rack       `json:"racks,omitempty"`  // racks, whose hosts come after Hosts
	Timings  Timings      `json:"timings,omitzero"` // replace the timings of the profiles
	Faults   []fault.Rule `json:"faults,omitempty"` // faults from the start on: at most 1000
	Part     *Part        `json:"part,omitempty"`   // the hosts that a shard runs; absent: all
	With     []string     `json:"with,omitempty"`   // families of kinds that the lab's Kubernetes API and controllers have beside those of hosts: hoc, machineconfig, elemental, nodes
}

// Rack is a rack of hosts.
type Rack struct {
	Name  string  `json:"name"`  // up to 40 of a-z, 0-9 and -
	Hosts []Group `json:"hosts"` // at least one
}

// Account is an account of every BMC of the rack.
type Account struct {
	Name     string `json:"name"`               // 1 to 16 printable characters without a colon
	Password string `json:"password,omitempty"` // up to 20 printable characters; "": the lab makes one
	Role     string `json:"role"`               // Administrator (the default), Operator or ReadOnly
}

// roles are the predefined roles of DSP0266.
var roles = []string{"Administrator", "Operator", "ReadOnly"}

// Group is a number of equal hosts.
type Group struct {
	Profile    string `json:"profile"`        // name of a profile, as labctl profile ls lists them; default generic
	Count      int    `json:"count"`          // number of hosts; default 1
	NamePrefix string `json:"namePrefix"`     // node names the hosts node-0, node-1, …; default node, and in rack r1 r1-node
	IPMI       *IPMI  `json:"ipmi,omitempty"` // changes to the IPMI of the BMCs; absent: as the dialect has it
	// Quirks are quirks of the BMCs in addition to those of their dialect: the name of
	// a quirk, as labctl quirk ls lists them, with its parameters:
	// "power-settle-409 for=30s".
	Quirks []string `json:"quirks,omitempty"`
	// OSRelease are fields of os-release(5) of the servers that boot the lab's image, or one
	// of the user's whose root file system the lab cannot read: {ID: ubuntu, VERSION_ID:
	// "22.04", VERSION_CODENAME: jammy}; absent: those of Debian 12. The server's other files
	// follow them.
	OSRelease map[string]string `json:"osRelease,omitempty"`
	// FirstBoot is who applies the data source of cloud-init: image, the cloud-init of the
	// image that was written, at each boot as there; lab, the lab's reader. Default lab.
	FirstBoot string `json:"firstBoot,omitempty"`
}

// QuirkText returns the quirks as one text, which is equal for equal quirks.
func (g *Group) QuirkText() string { return strings.Join(g.Quirks, "\n") }

// Placed is a group with its place in the definition.
type Placed struct {
	Group
	Rack  string // name of its rack; "" outside of racks
	Field string // racks[0].hosts[1]
}

// Timings replace the delays that the profiles give to the hosts. A delay that is
// absent stays as the profile has it.
type Timings struct {
	PowerOn  *fault.Duration `json:"powerOn,omitempty"`  // from the power button to the first instruction
	POST     *fault.Duration `json:"post,omitempty"`     // power-on self test
	OSBoot   *fault.Duration `json:"osBoot,omitempty"`   // from the boot loader to a running operating system
	Shutdown *fault.Duration `json:"shutdown,omitempty"` // graceful shutdown of an operating system
	PowerOff *fault.Duration `json:"powerOff,omitempty"` // from power off to the loss of power
	Graceful *fault.Duration `json:"graceful,omitempty"` // how long a graceful shutdown waits for an operating system that ignores it
	Dump     *fault.Duration `json:"dump,omitempty"`     // memory dump of an operating system that has crashed
}

// Host is one host of the rack.
type Host struct {
	Index   int // counted from 0 over the hosts that this rack runs
	Name    string
	Profile string
	Rack    string // "" outside of racks
	IPMI    string // IPMI.Text of its group
	Quirks  string // QuirkText of its group
	// OSRelease is the text of os-release(5) of its group; "" for that of Debian 12.
	OSRelease string
	FirstBoot string // that of its group; "": FirstBootLab
}

// Values of Group.FirstBoot.
const (
	FirstBootLab   = "lab"
	FirstBootImage = "image"
)

// Default returns a rack with a number of generic hosts, node-0 and up, and one
// administrator whose password the rack makes.
func Default(hosts int) Lab {
	l := Lab{Kind: Kind, Hosts: []Group{{Count: hosts}}}
	l.fill()
	return l
}

// fill sets defaults, except for counts: only the file tells a count of 0 from
// none.
func (l *Lab) fill() {
	or := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	or(&l.Name, "lab")
	or((*string)(&l.Speed), string(DefaultSpeed))
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

// Groups returns all groups in the order of their hosts.
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

// Total returns the number of hosts of the definition, in all parts.
func (l *Lab) Total() int {
	n := 0
	for _, g := range l.Groups() {
		n += g.Count
	}
	return n
}

// Len returns the number of hosts that this rack runs.
func (l *Lab) Len() int {
	n := l.Total()
	if p := l.Part; p != nil {
		n = max(0, min(p.Count, n-p.First))
	}
	return n
}

// First returns the position of the first of them in the definition.
func (l *Lab) First() int {
	if l.Part == nil {
		return 0
	}
	return l.Part.First
}

// Each returns the hosts that this rack runs in their order. Groups with the same prefix
// share one numbering, so that names are unique.
func (l *Lab) Each() []Host {
	hosts, number := make([]Host, 0, l.Len()), -1
	next := map[string]int{}
	for _, g := range l.Groups() {
		for range g.Count {
			if number++; number < l.First() || len(hosts) == cap(hosts) {
				next[g.NamePrefix]++
				continue
			}
			hosts = append(hosts, Host{
				Index: len(hosts), Name: fmt.Sprintf("%s-%d", g.NamePrefix, next[g.NamePrefix]), Profile: g.Profile, Rack: g.Rack, IPMI: g.IPMI.Text(), Quirks: g.QuirkText(),
				OSRelease: osReleaseText(g.OSRelease), FirstBoot: g.FirstBoot,
			})
			next[g.NamePrefix]++
		}
	}
	return hosts
}

// Admin returns the first administrator.
func (l *Lab) Admin() (Account, bool) {
	i := slices.IndexFunc(l.Accounts, func(a Account) bool { return a.Role == roles[0] })
	if i < 0 {
		return Account{}, false
	}
	return l.Accounts[i], true
}

// Diff returns the differences that keep a rack that was made as a from being started
// as b. It leaves out the fields that Adopt copies, and passwords that b leaves
// open.
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
	differ("part", a.First(), b.First())
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
	if slices.ContainsFunc(a.With, func(family string) bool { return !slices.Contains(b.With, family) }) { // families come, and do not go
		differ("with", fmt.Sprint(a.With), fmt.Sprint(b.With))
	}
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
	if h.OSRelease != "" {
		what += ", osRelease: " + strings.ReplaceAll(strings.TrimSuffix(h.OSRelease, "\n"), "\n", ", ")
	}
	if h.FirstBoot != "" {
		what += ", firstBoot: " + h.FirstBoot
	}
	return fmt.Sprintf("%s (%s)", h.Name, what)
}

// Adopt copies the fields that may change from one start of a lab to the next. It
// reports whether the faults have changed.
func (l *Lab) Adopt(asked Lab) (faults bool) {
	was, err := json.Marshal(l.Faults)
	now, err2 := json.Marshal(asked.Faults)
	l.Speed, l.Listen, l.Timings, l.Faults, l.With = asked.Speed, asked.Listen, asked.Timings, asked.Faults, asked.With
	return err != nil || err2 != nil || string(was) != string(now)
}

// timing is a delay with its key.
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
