package cloudinit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// netplanFor applies network data to an empty system, and returns netplan's file as JSON, with the
// access rights, and what is ignored.
func netplanFor(t testing.TB, i Instance) (file string, ignored []string) {
	t.Helper()
	files, r := Root{}, Result{}
	applyNetwork(i, files, &r)
	f, ok := files[netplanFile]
	if !ok {
		return "", r.Ignored
	}
	var doc any
	if err := yaml.Unmarshal(f.Content, &doc); err != nil {
		t.Fatalf("%s: %v", f.Content, err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		b = fmt.Append(nil, doc) // .inf is YAML
	}
	return fmt.Sprintf("%04o %s", f.Mode, b), r.Ignored
}

// Without Debian's cloud-init on this machine the most usual data are still compared with what it makes of them.
func TestNetworkDataOfBondsAndVLANs(t *testing.T) {
	for name, want := range map[string]string{
		"bond-802.3ad.json": `0644 {"network":{` +
			`"bonds":{"bond0":{"interfaces":["enp1s0","enp2s0"],"macaddress":"52:54:00:00:00:10","mtu":9000,"parameters":{"mii-monitor-interval":100,"mode":"802.3ad","transmit-hash-policy":"layer3+4"}}},` +
			`"ethernets":{"enp1s0":{"match":{"macaddress":"52:54:00:00:00:10"},"mtu":9000,"set-name":"enp1s0"},"enp2s0":{"match":{"macaddress":"52:54:00:00:00:11"},"mtu":9000,"set-name":"enp2s0"}},` +
			`"version":2,"vlans":{"bond0.42":{"addresses":["192.0.2.5/24"],"gateway4":"192.0.2.1","id":42,"link":"bond0","macaddress":"52:54:00:00:00:10",` +
			`"nameservers":{"addresses":["198.51.100.1"],"search":[]},"routes":[{"to":"0.0.0.0/0","via":"192.0.2.1"}]}}}}`,
		"networks-of-all-types.json": `0644 {"network":{"ethernets":{"enp1s0":{"accept-ra":false,"addresses":["192.0.2.5/24","192.0.2.201/24","2001:db8::5/64","2001:db8::6/48"],` +
			`"dhcp4":true,"dhcp6":true,"gateway4":"192.0.2.1","gateway6":"2001:db8::1","match":{"macaddress":"52:54:00:00:00:10"},"set-name":"enp1s0"}},"version":2}}`,
		"v1-vlan.yaml": `0644 {"network":{"ethernets":{"eth0":{"match":{"macaddress":"52:54:00:00:00:10"},"set-name":"eth0"}},"version":2,` +
			`"vlans":{"eth0.5":{"addresses":["192.0.2.7/24"],"id":5,"link":"eth0","macaddress":"52:54:00:00:00:11","mtu":1496}}}}`,
		"v2-missing-nic-without-set-name.yaml": `0644 {"network":{"ethernets":{"a":{"dhcp4":true,"match":{"macaddress":"02:00:00:00:99:99"}}},"version":2}}`,
	} {
		got, ignored := netplanFor(t, readCase(t, name))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s\nignored %q", name, got, want, ignored)
		}
	}
}

// What is lost is named with its place and the reason, whether alone or with all.
func TestLostNetworkDataAreNamed(t *testing.T) {
	const all = "the network data are not applied, as cloud-init loses all of them for this: "
	for name, want := range map[string][]string{
		"address-invalid.json":              {all + `links[0]: enp1s0: subnets[0]: address: "192.0.2.777" is no address`},
		"bond-802.3ad.json":                 {"the services of routes[0] of the network n0 are not applied: cloud-init reads those of the whole document"},
		"bond-all-parameters.json":          {"bond_all_slaves_active of bond0 is not applied: cloud-init's netplan has no such parameter", "bond_hash_policy of bond0 is not applied: cloud-init's netplan has no such parameter"},
		"bridge-with-parameters.json":       {"the link br0 is no bridge of the server: cloud-init takes the type for a NIC"},
		"damaged.json":                      {all + "network_data.json: unexpected EOF (Debian takes the whole config drive for damaged then)"},
		"damaged.yaml":                      {"the network data are not applied: network-config: yaml: line 1: did not find expected ',' or '}': the first NIC with a link uses DHCP"},
		"dns-of-network.json":               {"the services of the network n0 are not applied: cloud-init reads those of the whole document, and dns_nameservers of a network"},
		"link-with-other-mac.json":          {all + "the link l0: the server has no NIC with the MAC address 02:00:00:00:99:99"},
		"links-null.json":                   {all + "links: it is no list"},
		"netplan.json":                      {"ethernets of network_data.json is not applied: it has links, networks and services", "version of network_data.json is not applied: it has links, networks and services"},
		"network-ipv7.json":                 {"gateway, name servers of subnets[0] of enp1s0, whose type is ipv7, are not applied: cloud-init's netplan has those of static subnets alone", "subnets[0] of enp1s0 is not applied: cloud-init's netplan has no type ipv7"},
		"network-of-missing-link.json":      {"the network n0 is not applied: there is no link l5"},
		"nothing.yaml":                      {"the network data are not applied: the first NIC with a link uses DHCP"},
		"services-of-all-kinds.json":        {"services[1] of the network data has the type ntp: cloud-init takes it for a name server", "services[2] of the network data, a nameserver, is not applied: there is no address"},
		"text.yaml":                         {"the network data are not applied: network-config: it is no mapping: the first NIC with a link uses DHCP"},
		"v1-bond-without-params.yaml":       {"config[0] of the network data, a bond, is not applied: there is no params"},
		"v1-bridge-stp-perhaps.yaml":        {all + "config[0]: br0: params.bridge_stp: perhaps is neither on nor off"},
		"v1-disabled.yaml":                  {"the network data are not applied: config is disabled"},
		"v1-infiniband.yaml":                {"the interface ib0 is not applied: cloud-init's netplan has no infiniband"},
		"v1-loopback.yaml":                  {"the subnets of lo are not applied: cloud-init's netplan has no loopback"},
		"v1-mac-in-upper-case.yaml":         {all + "config[0]: the MAC address 52:54:00:00:AB:CD: give it in lower case"},
		"v1-mac-is-a-number.yaml":           {all + "config[0]: the MAC address 41135085240 is no text: quote it"},
		"v1-mtu-of-both.yaml":               {`the MTU "1500" of eth0 is not applied: that of its subnet is 1500`},
		"v1-nameservers.yaml":               {"config[5] of the network data, a nameserver, is not applied: there is no address", "the name servers of eth0 alone are not applied: cloud-init's netplan has those of a subnet and those of all"},
		"v1-route.yaml":                     {"the route to 198.51.100.0/24 is not applied: cloud-init's netplan has the routes of subnets alone", "config[2] of the network data, a route, is not applied: there is no destination"},
		"v1-two-bonds-of-one-nic.yaml":      {"eth0 is no interface of bond0: bond1 has it, too"},
		"v2-device-null.yaml":               {all + "ethernets.enp1s0: it is no mapping"},
		"v2-set-name-of-missing-nic.yaml":   {all + "ethernets.a: the server has no NIC with the MAC address 02:00:00:00:99:99"},
		"v3.yaml":                           {all + "version 3: give the number 1 or 2"},
		"vlan-without-mac.json":             {all + "links[1]: there is no vlan_mac_address"},
		"network-ipv6_dhcpv6-stateful.json": {"gateway, name servers of subnets[0] of enp1s0, whose type is ipv6_dhcpv6-stateful, are not applied: cloud-init's netplan has those of static subnets alone"},
	} {
		file, got := netplanFor(t, readCase(t, name))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if lost := strings.HasPrefix(want[0], "the network data are not applied"); lost == (file != "") {
			t.Errorf("%s: file %q", name, file)
		}
	}
}

func TestInterfacesOfADataSourceAreNamed(t *testing.T) {
	i := Instance{Source: ConfigDrive, Interfaces: true}
	if _, got := netplanFor(t, i); len(got) != 1 || !strings.Contains(got[0], "/etc/network/interfaces of the data source is not read") {
		t.Errorf("ignored %q", got)
	}
	i.NetworkData = []byte("{}") // which Debian takes in their place
	if _, got := netplanFor(t, i); len(got) > 0 {
		t.Errorf("with network data: ignored %q", got)
	}
}

// A caller that knows no NICs gets links by their IDs.
func TestLinksAreCalledByTheirIDsWhereTheNICsAreNotKnown(t *testing.T) {
	i := readCase(t, "vlan-on-nic.json")
	i.NICs = nil
	got, ignored := netplanFor(t, i)
	for _, want := range []string{`"set-name":"l0"`, `"l0.7":{`, `"link":"l0"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s; ignored %q", want, got, ignored)
		}
	}
	i.NICs = map[string]string{}
	if got, ignored := netplanFor(t, i); got != "" || !strings.Contains(strings.Join(ignored, ""), "the server has no NIC") {
		t.Errorf("of a server without NICs: %s, ignored %q", got, ignored)
	}
}

// Network data of any size end in a bounded file, with few lines on the console.
func TestNetworkDataAreBounded(t *testing.T) {
	many := func(n int, of func(int) string) string {
		var all []string
		for i := range n {
			all = append(all, of(i))
		}
		return strings.Join(all, ",")
	}
	link := func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"n%d","type":"vif"}`, i, i) }
	for _, tt := range []struct{ name, source, data, want string }{
		{"long", ConfigDrive, `{"links":[` + strings.Repeat(" ", maxNetwork) + `]}`, "more than 1048576 bytes"},
		{"deep JSON", ConfigDrive, strings.Repeat(`{"links":`, 100) + "1" + strings.Repeat("}", 100), "more than 64 lists and mappings are within each other"},
		{"deep YAML", NoCloud, strings.Repeat("{a: ", 100) + strings.Repeat("}", 100), "more than 64 lists and mappings are within each other"},
		{"many values", ConfigDrive, `{"links":[` + many(maxValues, func(int) string { return "1" }) + `]}`, "more than 65536 values"},
		{"many links", ConfigDrive, `{"links":[` + many(maxLinks+1, link) + `]}`, "more than 1024 interfaces"},
		{"an alias of itself", NoCloud, "version: 2\nethernets: &a {b: *a}", "more than 64 lists and mappings are within each other"},
		{"aliases of aliases", NoCloud, "a: &a [" + many(1000, func(int) string { return "x" }) + "]\nversion: 2\nb: [" + many(1000, func(int) string { return "*a" }) + "]", "more than 65536 values"},
		{"aliases of a long text", NoCloud, "a: &a " + strings.Repeat("x", 100_000) + "\nversion: 2\nb: [" + many(100, func(int) string { return "*a" }) + "]", "4194304 bytes"},
		{"what all interfaces share", ConfigDrive, `{"links":[` + many(1000, link) + `],"networks":[` + many(1000, func(i int) string { return fmt.Sprintf(`{"link":%d,"type":"ipv4","ip_address":"192.0.2.1"}`, i) }) +
			`],"services":[{"type":"dns","address":"` + strings.Repeat("x", 100_000) + `"}]}`, "the configuration for netplan has more than 4194304 bytes"},
		{"many lines", ConfigDrive, `{"links":[],` + many(100, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + "}", "the network data have 68 more items that are not applied"},
		{"lines with a long name", ConfigDrive, `{"links":[{"id":"l","name":"` + strings.Repeat("x", 100_000) + `","type":"vif"}],"networks":[` + many(100, func(int) string { return `{"link":"l","type":"x7"}` }) + `]}`, "the network data have 68 more items"},
		{"mistakes before a limit", ConfigDrive, `{"links":[` + many(maxLinks+1, func(i int) string { return strings.Replace(link(i), "vif", "new", 1) }) + `]}`, "the network data are not applied: links[1024]: there are more than 1024 interfaces"},
		{"a long line", ConfigDrive, `{"links":[{"id":"l","name":"l","type":"` + strings.Repeat("é", 1000) + `\u001b[2J"}]}`, "é..."},
	} {
		file, ignored := netplanFor(t, Instance{Source: tt.source, NetworkData: []byte(tt.data)})
		if lost := strings.HasPrefix(strings.Join(ignored, "\n"), "the network data are not applied: "); lost == (file != "") {
			t.Errorf("%s: %d bytes of netplan, ignored %.400q", tt.name, len(file), ignored)
		}
		if got := strings.Join(ignored, "\n"); !strings.Contains(got, tt.want) || len(ignored) > 40 || slices.ContainsFunc(ignored, func(s string) bool { return len(s) > 310 || strings.Contains(s, "\x1b") }) {
			t.Errorf("%s: ignored %.400q, want %q", tt.name, got, tt.want)
		}
	}
}

// A bond gives its members what has an effect on them: otherwise a thousand members of a bond with ten
// thousand parameters have ten million.
func TestMembersOfABondHaveNoUnknownParameters(t *testing.T) {
	bond := dict{"type": "bond", "name": "b", "bond_interfaces": []any{"m"}, "params": dict{"bond_mode": int64(1), "bond_new": int64(2)}}
	r := losses{}
	all, err := linksOf(version1{[]any{bond}, func(int) string { return "bond" }}, &r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dict{"bond_mode": int64(1)}, all.byName["m"].params); diff != "" {
		t.Errorf("parameters of a member (-want +got):\n%s", diff)
	}
	if want := []string{"bond_new of b is not applied: cloud-init's netplan has no such parameter"}; !cmp.Equal(r.lines, want) {
		t.Errorf("ignored %q, want %q", r.lines, want)
	}
}

// Network data are written by users, and a server boots whatever they are: with a file that can be
// read, or a reason.
func FuzzNetwork(f *testing.F) {
	for _, name := range caseNames(f) {
		i := readCase(f, name)
		f.Add(i.NetworkData, i.Source == NoCloud)
	}
	f.Fuzz(func(t *testing.T, data []byte, noCloud bool) {
		for _, nics := range []map[string]string{nil, caseNICs} {
			i := Instance{Source: ConfigDrive, NetworkData: data, NICs: nics}
			if noCloud {
				i.Source = NoCloud
			}
			if file, ignored := netplanFor(t, i); file == "" && len(ignored) == 0 && len(data) > 0 {
				t.Error("no file is written, without a reason")
			}
		}
	})
}

func TestNICsAreThoseOfTheKernel(t *testing.T) {
	system := fstest.MapFS{}
	for name, mac := range map[string]string{"eno1": "52:54:00:00:00:0A", "eno4": "52:54:00:00:00:0a", "eno1.7": "52:54:00:00:00:0a", "lo": "00:00:00:00:00:00", "eno2": "", "eno3": "00:00:00:00:00:00"} {
		system["sys/class/net/"+name+"/address"] = &fstest.MapFile{Data: []byte(mac + "\n")}
		if strings.HasPrefix(name, "eno") && !strings.Contains(name, ".") {
			system["sys/class/net/"+name+"/device/vendor"] = &fstest.MapFile{}
		}
	}
	if diff := cmp.Diff(map[string]string{"52:54:00:00:00:0a": "eno1"}, NICs(system)); diff != "" {
		t.Errorf("NICs (-want +got):\n%s", diff)
	}
	if got := NICs(fstest.MapFS{}); got == nil || len(got) > 0 {
		t.Errorf("NICs of a system without any: %v, want an empty map: they are known", got)
	}
}
