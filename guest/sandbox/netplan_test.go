package sandbox_test

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// netplan checks its files, with the messages of netplan 0.106.
func TestNetplan(t *testing.T) {
	s, _ := booted(t)
	const file = "etc/netplan/60.yaml"
	put(t, s, sandbox.Tree{
		file:                            sandbox.File(0o600, "network:\n  version: 2\n  bridges: {br0: {interfaces: [eno1], addresses: [10.0.0.2/24, {10.0.0.3/24: {label: x}}], parameters: {stp: false}}}\n"),
		"etc/netplan/70.yaml":           sandbox.File(0o600, "network:\n  ethernets: {eno1: {dhcp4: off}}\n  vlans: {v: {id: 5, link: br0}}\n"),
		"etc/netplan/80.yaml":           sandbox.File(0o600, "network: [\n"),
		"run/netplan/80.yaml":           sandbox.File(0o600, ""),
		"etc/netplan/not-a-file-of.txt": sandbox.File(0o600, "?"),
	})
	checkAnswers(t, s, []answer{
		{"netplan apply", "", "", 0},
		{"netplan --debug generate", "", "", 0},
		{"netplan --help", "usage: /usr/sbin/netplan", "", 0},
		{"netplan try", "", "netplan: of its commands are apply and generate done here, not 'try'\n", 1},
		{"netplan apply now", "", "unrecognized arguments: now\n", 1},
		{"netplan apply --now", "", "netplan: unrecognized option '--now'\n", 1},
	})
	const top = "network:\n  version: 2\n"
	for text, want := range map[string]string{
		top + "  bridges: {br0: {interfaces: [eno9]}}\n": "3:32: Error in network definition: br0: interface 'eno9' is not defined\n  bridges: {br0: {interfaces: [eno9]}}\n" + strings.Repeat(" ", 31) + "^\n",
		top + "  foo: {}\n":        "3:3: Error in network definition: unknown key 'foo'\n  foo: {}\n  ^\n",
		"foo: 5\n":                 "1:1: Error in network definition: unknown key 'foo'",
		"network: 5\n":             "1:10: Error in network definition: expected mapping (check indentation)",
		"network:\n  version: 3\n": "2:12: Error in network definition: Only version 2 is supported",
		top + "  renderer: bla\n":  "3:13: Error in network definition: unknown renderer 'bla'",
		top + "  ethernets: {a: {addresses: [1.2.3.4]}}\n":                                                   "3:30: Error in network definition: address '1.2.3.4' is missing /prefixlength",
		top + "  ethernets: {a: {addresses: [10.0.0.300/24]}}\n":                                             "3:30: Error in network definition: malformed address '10.0.0.300/24', must be",
		top + "  ethernets: {a: {addresses: [10.0.0.3/44]}}\n":                                               "3:30: Error in network definition: invalid prefix length in address '10.0.0.3/44'",
		top + "  ethernets: {a: {addresses: 10.0.0.3/24}}\n":                                                 "3:30: Error in network definition: expected sequence",
		top + "  ethernets: {a: {dhcp4: maybe}}\n":                                                           "3:26: Error in network definition: invalid boolean value 'maybe'",
		top + "  ethernets: {a: {mtu: x}}\n":                                                                 "3:24: Error in network definition: invalid unsigned int value 'x'",
		top + "  ethernets: {a: {bla: 1}}\n":                                                                 "3:19: Error in network definition: unknown key 'bla'",
		top + "  ethernets: {a: {set-name: q}}\n":                                                            "3:18: Error in network definition: a: 'set-name:' requires 'match:' properties",
		top + "  bridges: {b: {id: 4}}\n":                                                                    "3:17: Error in network definition: unknown key 'id'",
		top + "  vlans: {a: {id: 5}}\n":                                                                      "3:14: Error in network definition: a: missing 'link' property",
		top + "  vlans: {a: {link: b, id: 1}}\n":                                                             "3:21: Error in network definition: a: interface 'b' is not defined",
		top + "  ethernets: {a: {}}\n  vlans: {v: {id: 4095, link: a}}\n":                                    "4:14: Error in network definition: v: invalid id '4095' (allowed values are 0 to 4094)",
		top + "  ethernets: {a: {}}\n  bonds: {a: {}}\n":                                                     "4:11: Error in network definition: Updated definition 'a' changes device type",
		top + "  ethernets: {a: {}}\n  bonds: {b1: {interfaces: [a]}}\n  bridges: {b0: {interfaces: [a]}}\n": "5:30: Error in network definition: b0: interface 'a' is already assigned to bond b1",
		"network: [\n": ": Invalid YAML: ",
	} {
		put(t, s, sandbox.Tree{file: sandbox.File(0o600, text)})
		for line, code := range map[string]int{"netplan generate": 1, "netplan apply": 78} {
			out, problems, got := call(t, s, line)
			if got != code || out != "" || !strings.HasPrefix(problems, "/"+file+":") || !strings.Contains(problems, want) {
				t.Errorf("%s of\n%s= code %d, %q, %q; want %d, %q", line, text, got, out, problems, code, want)
			}
		}
	}
}
