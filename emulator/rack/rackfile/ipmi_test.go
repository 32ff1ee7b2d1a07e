package rackfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIPMIOfAGroupSetsKeyAndAuthTypes(t *testing.T) {
	l, err := Parse("f.yaml", []byte(`
kind: Lab
hosts:
- {count: 1}
- {count: 1, ipmi: {suites: [17, 3, 0], v15: [md5, none], kg: secret, advertisedPort: 6230}}
- {count: 1, ipmi: {kg: "0x000102030405060708090a0b0c0d0e0f10111213"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	plain, weak, keyed := l.Hosts[0].IPMI, l.Hosts[1].IPMI, l.Hosts[2].IPMI
	if plain.Key() != nil || plain.AuthTypes() != nil || plain.Text() != "" {
		t.Errorf("as usual: key [% x], types [% x], text %q", plain.Key(), plain.AuthTypes(), plain.Text())
	}
	if d := cmp.Diff(append([]byte("secret"), make([]byte, 14)...), weak.Key()); d != "" {
		t.Errorf("key (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]byte{5, 5, 5, 5, 5}, weak.AuthTypes()); d != "" {
		t.Errorf("types (-want +got):\n%s", d)
	}
	if k := keyed.Key(); len(k) != 20 || k[19] != 0x13 || k[0] != 0 {
		t.Errorf("key in digits = [% x]", k)
	}
	hosts := l.Each()
	if hosts[0].IPMI == hosts[1].IPMI || hosts[1].IPMI == hosts[2].IPMI {
		t.Errorf("hosts that speak differently look alike: %v", hosts)
	}
	other := l
	other.Hosts = append([]Group(nil), l.Hosts...)
	other.Hosts[0].IPMI = &IPMI{Suites: []int{3}}
	if diff := Diff(l, other); len(diff) != 1 || !strings.Contains(diff[0], "its own IPMI") {
		t.Errorf("Diff() = %q", diff)
	}
}

func TestParseRefusesWrongIPMIOfAGroup(t *testing.T) {
	for yaml, want := range map[string]string{
		"suites: [18]":              "hosts[0].ipmi.suites[0]: 18: must be 0 to 17",
		"suites: [3, 3]":            "hosts[0].ipmi.suites[1]: 3: is there twice",
		"v15: [md4]":                `hosts[0].ipmi.v15[0]: "md4": must be one of none, md2, md5, password`,
		"kg: 123456789012345678901": "hosts[0].ipmi.kg: use up to 20",
		"kg: 0x0102":                "hosts[0].ipmi.kg: use up to 20",
		"advertisedPort: 65536":     "hosts[0].ipmi.advertisedPort: 65536",
		"suites: all":               `hosts[0].ipmi.suites: "all": must be a list`,
		"suite: [3]":                "use one of suites, v15, kg, advertisedPort",
	} {
		_, err := Parse("f.yaml", []byte("kind: Lab\nhosts:\n- {ipmi: {"+yaml+"}}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%s) = %v, want %s", yaml, err, want)
		}
	}
}
