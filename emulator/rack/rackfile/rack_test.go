package rackfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/fault"
)

const full = `kind: Lab
name: demo
seed: 18446744073709551615
accounts:
  - name: root
    password: calvin
  - {name: watcher, role: ReadOnly}
hosts:
  - profile: generic
    count: 2
  - {profile: r750, namePrefix: db}
  - {profile: r750, count: 2}
racks:
  - {name: r1, hosts: [{count: 2}, {namePrefix: db}]}
  - name: r2
    hosts: &two [{}]
  - {name: r3, hosts: *two}
listen: 192.0.2.7:9000
timings: {post: 20s, powerOff: 0s}
faults:
  - {bmc: r1-*, status: 503, retryAfter: 30s, method: PATCH}
`

func TestParseFillsInDefaults(t *testing.T) {
	got, err := Parse("rack.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := Lab{
		Kind: "Lab", Name: "demo", Seed: 18446744073709551615, Speed: "60x",
		Accounts: []Account{{"root", "calvin", "Administrator"}, {"watcher", "", "ReadOnly"}},
		Hosts:    []Group{{Profile: "generic", Count: 2, NamePrefix: "node"}, {Profile: "r750", Count: 1, NamePrefix: "db"}, {Profile: "r750", Count: 2, NamePrefix: "node"}},
		Racks: []Rack{
			{"r1", []Group{{Profile: "generic", Count: 2, NamePrefix: "r1-node"}, {Profile: "generic", Count: 1, NamePrefix: "db"}}}, {"r2", []Group{{Profile: "generic", Count: 1, NamePrefix: "r2-node"}}}, {"r3", []Group{{Profile: "generic", Count: 1, NamePrefix: "r3-node"}}},
		},
		Listen:  "192.0.2.7:9000",
		Timings: Timings{POST: &fault.Duration{Duration: 20 * time.Second}, PowerOff: &fault.Duration{}},
		Faults:  []fault.Rule{{BMC: "r1-*", Status: 503, RetryAfter: fault.Duration{Duration: 30 * time.Second}, Method: fault.Methods{"PATCH"}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Parse() (-want +got):\n%s", d)
	}
	wantHosts := []Host{
		{Index: 0, Name: "node-0", Profile: "generic"}, {Index: 1, Name: "node-1", Profile: "generic"}, {Index: 2, Name: "db-0", Profile: "r750"}, {Index: 3, Name: "node-2", Profile: "r750"}, {Index: 4, Name: "node-3", Profile: "r750"},
		{Index: 5, Name: "r1-node-0", Profile: "generic", Rack: "r1"}, {Index: 6, Name: "r1-node-1", Profile: "generic", Rack: "r1"}, {Index: 7, Name: "db-1", Profile: "generic", Rack: "r1"}, {Index: 8, Name: "r2-node-0", Profile: "generic", Rack: "r2"}, {Index: 9, Name: "r3-node-0", Profile: "generic", Rack: "r3"},
	}
	if d := cmp.Diff(wantHosts, got.Each()); d != "" {
		t.Errorf("Each() (-want +got):\n%s", d)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again Lab
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, again); d != "" {
		t.Errorf("after JSON (-want +got):\n%s", d)
	}
}

func TestDefaultIsAFileWithHostsAlone(t *testing.T) {
	l := Default(2)
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
	if none := Default(0); none.Validate() == nil {
		t.Error("Validate() of a rack of 0 hosts = nil, want an error")
	}
	want, err := Parse("", []byte("kind: Lab\nhosts: [{count: 2}]"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, l); d != "" {
		t.Errorf("Default(2) is not what a file without anything gives (-file +default):\n%s", d)
	}
	if a, ok := l.Admin(); !ok || a != (Account{Name: "admin", Role: "Administrator"}) {
		t.Errorf("Admin() = %+v, %v", a, ok)
	}
	if got := l.Each()[1].Name; got != "node-1" {
		t.Errorf("second host = %s, want node-1", got)
	}
}

func TestParseNamesFileLineAndField(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", []string{"f.yaml: is empty: begin with kind: Lab"}},
		{"not YAML", "kind: Lab\nhosts: [", []string{"f.yaml:"}},
		{"two documents", "kind: Lab\nhosts: [{}]\n---\nkind: Lab\n", []string{"more than one document"}},
		{"another kind", "kind: Rack\nhosts: [{}]\n", []string{`f.yaml:1: kind: "Rack": must be Lab`}},
		{"no kind", "hosts: [{}]\n", []string{`f.yaml: kind: "": must be Lab`}},
		{"unknown field", "kind: Lab\nhosts:\n- profil: generic\n", []string{"f.yaml:3: hosts[0].profil: there is no such field: use one of profile, count, namePrefix, ipmi"}},
		{"wrong type", "kind: Lab\nhosts:\n- profile: generic\n  count: two\n", []string{`f.yaml:4: hosts[0].count: "two": must be an integer`}},
		{"hosts is a number", "kind: Lab\nhosts: 3\n", []string{`f.yaml:2: hosts: "3": must be a list`}},
		{"no hosts", "kind: Lab\nname: x\n", []string{"f.yaml: hosts: must not be empty: add - {profile: generic, count: 1}"}},
		{"count", "kind: Lab\nhosts:\n- {count: 1}\n- {count: 0}\n", []string{"f.yaml:4: hosts[1].count: 0: must be 1 or more"}},
		{"too many", "kind: Lab\nhosts:\n- {count: 9223372036854775807}\n- {count: 9223372036854775807}\n", []string{"f.yaml:2: hosts: 1000002: a lab has at most 500000"}},
		{"prefix", "kind: Lab\nhosts:\n- {namePrefix: Node_1}\n", []string{`f.yaml:3: hosts[0].namePrefix: "Node_1": use up to 50`}},
		{"speed", "kind: Lab\nspeed: fast\nhosts: [{}]\n", []string{`f.yaml:2: speed: "fast": use a form like 1x, 60x or max`}},
		{"name", "kind: Lab\nname: My Lab\nhosts: [{}]\n", []string{`f.yaml:2: name: "My Lab": use up to 63`}},
		{"accounts", "kind: Lab\nhosts: [{}]\naccounts:\n- {name: 'a:b'}\n- {name: c, password: 123456789012345678901}\n- {name: c, role: King}\n", []string{
			`f.yaml:4: accounts[0].name: "a:b": use 1 to 16`,
			`f.yaml:5: accounts[1].password: use at most 20`,
			`f.yaml:6: accounts[2].role: "King": must be one of Administrator, Operator, ReadOnly`,
			`f.yaml:6: accounts[2].name: "c": is there twice`,
		}},
		{"racks", "kind: Lab\nracks:\n- {name: A}\n- {name: b, hosts: [{}]}\n- {name: b, hosts: [{count: 0}]}\n- {name: c, hosts: 3}\n", []string{`f.yaml:6: racks[3].hosts: "3": must be a list`}},
		{"racks, again", "kind: Lab\nracks:\n- {name: A}\n- {name: b, hosts: [{}]}\n- {name: b, hosts: [{count: 0}]}\n", []string{
			`f.yaml:3: racks[0].name: "A": use up to 40`, `f.yaml:3: racks[0].hosts: must not be empty`,
			`f.yaml:5: racks[2].name: "b": is there twice`, `f.yaml:5: racks[2].hosts[0].count: 0: must be 1 or more`,
		}},
		{"osRelease", "kind: Lab\nhosts:\n- osRelease:\n    VERSION: |\n      a\n      b\n    id: ubuntu\n", []string{
			`hosts[0].osRelease.ID: "": use a-z`, `f.yaml:4: hosts[0].osRelease.VERSION: "a\nb\n": use one line`, `f.yaml:7: hosts[0].osRelease.id: use a name of os-release(5)`,
		}},
		{"count by way of an alias", "kind: Lab\nhosts:\n- &a {count: 0}\n- *a\n- {<<: *a, profile: b}\n", []string{"hosts[0].count: 0", "hosts[1].count: 0", "hosts[2].count: 0"}},
		{"listen", "kind: Lab\nhosts: [{}]\nlisten: everywhere\n", []string{`f.yaml:3: listen: "everywhere": use loopback`}},
		{"timings", "kind: Lab\nhosts: [{}]\ntimings: {post: -1s}\n", []string{"f.yaml:3: timings.post: -1s: must not be negative"}},
		{"timings, again", "kind: Lab\nhosts: [{}]\ntimings: {powerOn: 1s, post: soon, shutdown: 2s}\n", []string{`f.yaml:3: timings.post: "soon": use a form like 90s or 2m`}},
		{"no such timing", "kind: Lab\nhosts: [{}]\ntimings: {boot: 1s}\n", []string{"f.yaml:3: timings.boot: there is no such field: use one of powerOn, post"}},
		{"faults", "kind: Lab\nhosts: [{}]\nfaults:\n- {id: a, status: 5}\n- {id: a, stale: true}\n- {stale: true,\n   probability: 0}\n- {}\n", []string{
			"f.yaml:4: faults[0].status: 5: must be from 200", "f.yaml:5: faults[1].id: a: is there twice",
			"f.yaml:7: faults[2].probability: 0: must be above 0", "f.yaml:8: faults[3]: does nothing",
		}},
		{"faults, again", "kind: Lab\nhosts: [{}]\nfaults:\n- {bmc: node-0, from: soon, method: GET}\n- {stat: 500}\n", []string{
			`f.yaml:4: faults[0].from: "soon": use a form like 90s or 2m`, "f.yaml:5: faults[1].stat: there is no such field: use one of id, bmc",
		}},
		{"no administrator", "kind: Lab\nhosts: [{}]\naccounts:\n- {name: a, role: ReadOnly}\n", []string{"f.yaml:3: accounts: none is an Administrator"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tt.in))
			if err == nil {
				t.Fatalf("Parse() = nil, want %q", tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Parse() = %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "12345678901") {
				t.Errorf("Parse() = %v: shows a password", err)
			}
		})
	}
}

func TestOSReleaseIsQuotedForAShell(t *testing.T) {
	l := Lab{Hosts: []Group{{Count: 1, OSRelease: map[string]string{"NAME": "a \"$b\" `c` \\d", "ID": "x"}}}}
	want := "ID=\"x\"\nNAME=\"a \\\"\\$b\\\" \\`c\\` \\\\d\"\n"
	if got := l.Each()[0].OSRelease; got != want {
		t.Errorf("os-release %q, want %q", got, want)
	}
}

func TestSpeedFactor(t *testing.T) {
	for in, want := range map[Speed]string{
		"1x": "1 false <nil>", "60x": "60 false <nil>", "0.5x": "0.5 false <nil>", "max": "1 true <nil>",
	} {
		f, skipIdle, err := in.Factor()
		if got := fmt.Sprint(f, skipIdle, err); got != want {
			t.Errorf("Factor(%s) = %s, want %s", in, got, want)
		}
	}
	for _, in := range []Speed{"", "60", "x", "0x", "-1x", "NaNx", "Infx", "2000000x", "Max"} {
		if _, _, err := in.Factor(); err == nil {
			t.Errorf("Factor(%q) = nil, want an error", in)
		}
	}
}

func TestDiffNamesWhatCannotChange(t *testing.T) {
	base := func() Lab {
		l := Default(2)
		l.Accounts[0].Password = "made"
		return l
	}
	tests := []struct {
		name  string
		asked func(l *Lab)
		want  []string
	}{
		{"same", func(*Lab) {}, nil},
		{"open password", func(l *Lab) { l.Accounts[0].Password = "" }, nil},
		{"speed", func(l *Lab) { l.Speed, l.Listen, l.Faults = Max, "192.0.2.1", []fault.Rule{{Stale: true}} }, nil},
		{"split into groups", func(l *Lab) {
			l.Hosts = []Group{{Profile: "generic", Count: 1, NamePrefix: "node"}, {Profile: "generic", Count: 1, NamePrefix: "node"}}
		}, nil},
		{"count", func(l *Lab) { l.Hosts[0].Count = 3 }, []string{"hosts: 2 in this lab, 3 asked"}},
		{"profile", func(l *Lab) { l.Hosts[0].Profile = "r750" }, []string{"host 0: node-0 (generic) in this lab, node-0 (r750) asked"}},
		{"seed and name", func(l *Lab) { l.Seed, l.Name = 2, "b" }, []string{"name: lab in this lab, b asked", "seed: 1 in this lab, 2 asked"}},
		{"password", func(l *Lab) { l.Accounts[0].Password = "other" }, []string{"password of account admin: another one in this lab than asked"}},
		{"accounts", func(l *Lab) { l.Accounts = append(l.Accounts, Account{Name: "b", Role: "ReadOnly"}) },
			[]string{"accounts: admin (Administrator) in this lab, admin (Administrator), b (ReadOnly) asked"}},
	}
	for _, tt := range tests {
		asked := base()
		tt.asked(&asked)
		if d := cmp.Diff(tt.want, Diff(base(), asked)); d != "" {
			t.Errorf("%s: Diff() (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestListenParse(t *testing.T) {
	for in, want := range map[Listen]string{
		"lo": "127.0.0.1 8443", "lo:9000": "127.0.0.1 9000",
		"": "invalid IP 0", "loopback": "invalid IP 0", "loopback:9443": "invalid IP 9443", "192.0.2.7": "192.0.2.7 8443",
		"192.0.2.7:9000": "192.0.2.7 9000", "2001:db8::1": "2001:db8::1 8443", "[2001:db8::1]:1": "2001:db8::1 1",
	} {
		p, err := in.Parse()
		if got := fmt.Sprint(p.Addr, p.Port); got != want || err != nil {
			t.Errorf("Parse(%s) = %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []Listen{"nosuch0", "nosuch0:9000", "lo:0", "lo:", "lo:x", "loopback:", "loopback:0", "loopback:x", "0.0.0.0", "[::]:9000", "localhost:1", "192.0.2.7:", "192.0.2.7:0", "192.0.2.7:70000", "224.0.0.1", ":9000", "fe80::1%eth0"} {
		if p, err := in.Parse(); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", in, p)
		}
	}
}

func TestAdoptCopiesWhatMayChange(t *testing.T) {
	was, asked := Default(2), Default(2)
	asked.Speed, asked.Listen, asked.Seed = Max, "192.0.2.1", 99
	asked.Timings.POST = &fault.Duration{}
	if was.Adopt(asked) {
		t.Error("Adopt() = true: the faults are the same")
	}
	want := Default(2)
	want.Speed, want.Listen, want.Timings = asked.Speed, asked.Listen, asked.Timings
	if d := cmp.Diff(want, was); d != "" {
		t.Errorf("after Adopt (-want +got):\n%s", d)
	}
	asked.Faults = []fault.Rule{{Stale: true}}
	if !was.Adopt(asked) || len(was.Faults) != 1 {
		t.Errorf("Adopt() of other faults: %+v", was.Faults)
	}
}

// FuzzParse checks that no text panics, that every error names the file, and that an
// accepted definition is valid, survives JSON and has as many hosts as it counts.
func FuzzParse(f *testing.F) {
	f.Add(full)
	for _, s := range []string{
		"", "kind: Lab\nhosts: [{}]", "kind: Lab\nhosts: [&a {count: 2}, *a, {<<: *a}]", "kind: Lab\nhosts: &a [*a]",
		"kind: Lab\nracks: [{name: a, hosts: [{count: 3}]}]\nfaults: [{set: {/A: {[1]: 2}}}]", "- {", "kind: [", "? {a: b}: c",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse("f.yaml", []byte(text))
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "f.yaml") {
					t.Errorf("%q does not name the file", line)
				}
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("Validate() = %v, and Parse took it", err)
		}
		if l.Len() > 5000 {
			return // it takes long to name so many
		}
		if got := len(l.Each()); got != l.Len() {
			t.Errorf("Each() has %d hosts, Len() = %d", got, l.Len())
		}
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var again Lab
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if diff := Diff(l, again); len(diff) > 0 || l.Adopt(again) {
			t.Errorf("after JSON: %v", diff)
		}
	})
}
