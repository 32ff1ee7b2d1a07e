package layout

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/guest/cloudinit"
)

func TestSpans(t *testing.T) {
	for _, tt := range []struct {
		name     string
		spec     ipamv1.SubnetSpec
		want     string
		capacity int64
		err      string
	}{
		{"network and broadcast", ipamv1.SubnetSpec{CIDR: "10.0.0.0/29"}, "10.0.0.1-10.0.0.6", 6, ""},
		{"whole", ipamv1.SubnetSpec{CIDR: "10.0.0.0/30", UseCompleteCIDR: true}, "10.0.0.0-10.0.0.3", 4, ""},
		{"two addresses", ipamv1.SubnetSpec{CIDR: "10.0.0.0/31"}, "10.0.0.0-10.0.0.1", 2, ""},
		{"one address", ipamv1.SubnetSpec{CIDR: "10.0.0.9/32"}, "10.0.0.9-10.0.0.9", 1, ""},
		{"address within the network", ipamv1.SubnetSpec{CIDR: "10.0.0.5/29"}, "10.0.0.1-10.0.0.6", 6, ""},
		{"gateway", ipamv1.SubnetSpec{CIDR: "10.0.0.0/29", Gateway: "10.0.0.3"}, "10.0.0.1-10.0.0.2 10.0.0.4-10.0.0.6", 5, ""},
		{"ranges that overlap", ipamv1.SubnetSpec{CIDR: "10.0.0.0/24", IncludeRanges: []ipamv1.AddressRange{"10.0.0.20-10.0.0.30", "10.0.0.25-10.0.0.40", "10.0.0.10"}}, "10.0.0.10-10.0.0.10 10.0.0.20-10.0.0.40", 22, ""},
		{"excluded", ipamv1.SubnetSpec{CIDR: "10.0.0.0/24", IncludeRanges: []ipamv1.AddressRange{"10.0.0.10-10.0.0.20"}, ExcludeRanges: []ipamv1.AddressRange{"10.0.0.10-10.0.0.12", "10.0.0.15", "10.0.0.20-10.0.0.90"}}, "10.0.0.13-10.0.0.14 10.0.0.16-10.0.0.19", 6, ""},
		{"the last network", ipamv1.SubnetSpec{CIDR: "255.255.255.252/30", UseCompleteCIDR: true}, "255.255.255.252-255.255.255.255", 4, ""},
		{"IPv6", ipamv1.SubnetSpec{CIDR: "fd00::/126"}, "fd00::1-fd00::3", 3, ""},
		{"large", ipamv1.SubnetSpec{CIDR: "fd00::/64"}, "fd00::1-fd00::ffff:ffff:ffff:ffff", 1 << 32, ""},
		{"outside", ipamv1.SubnetSpec{CIDR: "10.0.0.0/24", IncludeRanges: []ipamv1.AddressRange{"10.0.1.1"}}, "", 0, "spec.includeRanges[0]"},
		{"backwards", ipamv1.SubnetSpec{CIDR: "10.0.0.0/24", ExcludeRanges: []ipamv1.AddressRange{"10.0.0.9-10.0.0.8"}}, "", 0, "spec.excludeRanges[0]"},
		{"no network", ipamv1.SubnetSpec{CIDR: "ten"}, "", 0, "spec.cidr"},
	} {
		got, err := Spans(&tt.spec)
		var texts []string
		for _, s := range got {
			texts = append(texts, s.String())
		}
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: Spans() error = %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if s := strings.Join(texts, " "); err != nil || s != tt.want || Capacity(got) != tt.capacity {
			t.Errorf("%s: Spans() = %s, %d addresses, %v, want %s, %d", tt.name, s, Capacity(got), err, tt.want, tt.capacity)
		}
	}
}

func l2(name string, labels map[string]string) ipamv1.L2Template {
	return ipamv1.L2Template{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: ipamv1.L2TemplateSpec{ClusterRef: "c1"}}
}

func TestChoose(t *testing.T) {
	mark := map[string]string{ipamv1.DefaultForClusterLabel: "1"}
	other := l2("other", mark)
	other.Spec.ClusterRef = "c2"
	labelled := l2("labelled", map[string]string{ipamv1.ClusterNameLabel: "c1", "by": "label"})
	labelled.Spec.ClusterRef = ""
	moved := l2("moved", map[string]string{ipamv1.ClusterNameLabel: "c2"}) // the label counts, not the older field
	unbound := l2("unbound", nil)
	unbound.Spec.ClusterRef = ""
	all := []ipamv1.L2Template{l2("default", mark), l2("ceph", map[string]string{"role": "ceph"}), l2("off", map[string]string{ipamv1.DefaultForClusterLabel: "0"}), other, labelled, moved, unbound}
	for _, tt := range []struct {
		name     string
		selector *baremetalv1.L2TemplateSelector
		all      []ipamv1.L2Template
		want     string
		err      string
	}{
		{"default", nil, all, "default", ""},
		{"empty selector", &baremetalv1.L2TemplateSelector{}, all, "default", ""},
		{"name", &baremetalv1.L2TemplateSelector{Name: "ceph"}, all, "ceph", ""},
		{"label", &baremetalv1.L2TemplateSelector{Label: "role"}, all, "ceph", ""},
		{"no default", nil, all[1:], "", ""},
		{"without clusterRef", &baremetalv1.L2TemplateSelector{Label: "by"}, all, "labelled", ""},
		{"of another cluster by its label", &baremetalv1.L2TemplateSelector{Name: "moved"}, all, "", `Cluster "c1" has no L2Template "moved"`},
		{"of no cluster", &baremetalv1.L2TemplateSelector{Name: "unbound"}, all, "", `Cluster "c1" has no L2Template "unbound"`},
		{"name of another cluster's", &baremetalv1.L2TemplateSelector{Name: "other"}, all, "", `l2TemplateSelector.name: Cluster "c1" has no L2Template "other"`},
		{"missing label", &baremetalv1.L2TemplateSelector{Label: "gpu"}, all, "", `l2TemplateSelector.label`},
		{"two defaults", nil, append([]ipamv1.L2Template{l2("a", mark)}, all...), "", "the L2Templates a, default fit"},
	} {
		got, err := Choose(tt.all, "c1", tt.selector)
		name := ""
		if got != nil {
			name = got.Name
		}
		if name != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: Choose() = %q, %v, want %q, %q", tt.name, name, err, tt.want, tt.err)
		}
	}
}

const example = `
version: 2
ethernets:
  {{nic 0}}:
    match: {macaddress: "{{mac 0}}"}
    set-name: {{nic 0}}
    addresses: [{{ip "0:lcm"}}]
    routes: [{to: default, via: {{gateway_from_subnet "lcm"}}}]
    nameservers: {addresses: {{nameservers_from_subnet "lcm"}}}
`

func server() *ipamv1.IpamHost {
	h := &ipamv1.IpamHost{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}}
	h.Spec.NICMACMap = []ipamv1.NIC{{Name: "enp1s0", MAC: "02:00:00:00:00:01"}, {Name: "eno1", MAC: "02:00:00:00:00:AA"}}
	return h
}

func templateOf(text string) *ipamv1.L2Template {
	out := l2("default", nil)
	out.Spec.NPTemplate, out.Spec.L3Layout = text, []ipamv1.L3Layout{{SubnetName: "lcm"}, {SubnetName: "bare"}}
	out.Spec.AutoIfMappingPrio = []string{"eno", "enp"}
	return &out
}

var networks = []ipamv1.Subnet{
	{ObjectMeta: metav1.ObjectMeta{Name: "lcm"}, Spec: ipamv1.SubnetSpec{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Nameservers: []ipamv1.Address{"10.0.0.2", "10.0.0.3"}}},
	{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: ipamv1.SubnetSpec{CIDR: "10.1.0.0/24"}},
}

func TestRender(t *testing.T) {
	r, err := NewTemplate(templateOf(example), server(), networks)
	if err != nil {
		t.Fatal(err)
	}
	needs, err := r.Needs()
	if diff := cmp.Diff([]Need{{"0", "lcm"}}, needs); err != nil || diff != "" {
		t.Fatalf("Needs() (-want +got): %v\n%s", err, diff)
	}
	got, err := r.Render(map[Need]netip.Addr{needs[0]: netip.MustParseAddr("10.0.0.7")})
	const want = `{"ethernets":{"eno1":{"addresses":["10.0.0.7/24"],"match":{"macaddress":"02:00:00:00:00:aa"},"nameservers":{"addresses":["10.0.0.2","10.0.0.3"]},` +
		`"routes":[{"to":"default","via":"10.0.0.1"}],"set-name":"eno1"}},"version":2}`
	if string(got) != want || err != nil {
		t.Errorf("Render() = %s, %v, want %s", got, err, want)
	}
	data, err := NetworkData(got)
	const wantData = `{"links":[{"ethernet_mac_address":"02:00:00:00:00:aa","id":"eno1","name":"eno1","type":"phy"}],` +
		`"networks":[{"dns_nameservers":["10.0.0.2","10.0.0.3"],"id":"eno1-0","ip_address":"10.0.0.7","link":"eno1","netmask":"255.255.255.0","routes":[{"gateway":"10.0.0.1","netmask":"0.0.0.0","network":"0.0.0.0"}],"type":"ipv4"}],"services":[]}`
	if string(data) != wantData || err != nil {
		t.Errorf("NetworkData() = %s, %v, want %s", data, err, wantData)
	}
}

// nics are two NICs of a template, the second without set-name.
const nics = "version: 2\nethernets: {a: {match: {macaddress: 02:00:00:00:00:01}, set-name: a}, b: {match: {macaddress: 02:00:00:00:00:02}}}\n"

// What a template says of bonds and VLANs arrives in the netplan of a server, by way of network data
// and cloud-init.
func TestBondsAndVLANsArriveOnTheServer(t *testing.T) {
	const config = `{"version": 2, "ethernets": {
	    "port0": {"match": {"macaddress": "02:00:00:00:00:01"}, "set-name": "lcm0", "mtu": 9000}, "port1": {"match": {"macaddress": "02:00:00:00:00:AA"}}},
	  "bonds": {"bond0": {"interfaces": ["port0", "port1"], "macaddress": "02:00:00:00:00:BB", "mtu": 9000, "addresses": ["10.0.0.7/24"], "nameservers": {"addresses": ["10.0.0.2"], "search": ["example.com"]},
	    "parameters": {"mode": "802.3ad", "mii-monitor-interval": 100, "transmit-hash-policy": "layer3+4", "lacp-rate": "fast", "up-delay": 1, "down-delay": 2, "ad-select": "stable",
	      "arp-interval": 3, "arp-validate": "none", "fail-over-mac-policy": "none", "gratuitous-arp": 4, "min-links": 1, "primary": "port0", "primary-reselect-policy": "always"}}},
	  "vlans": {"bond0.42": {"id": 42, "link": "bond0", "dhcp4": true}, "v": {"id": 7, "link": "port0", "macaddress": "02:00:00:00:00:CC"}}}`
	data, err := NetworkData([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	root := cloudinit.Root{}
	r := cloudinit.Configure(cloudinit.Instance{
		Source: cloudinit.ConfigDrive, NetworkData: data, NICs: map[string]string{"02:00:00:00:00:01": "enp1s0", "02:00:00:00:00:aa": "eno1"},
	}, root)
	if len(r.Ignored) > 0 {
		t.Errorf("ignored %q", r.Ignored)
	}
	var got, want map[string]any
	if err := yaml.Unmarshal(root["etc/netplan/50-cloud-init.yaml"].Content, &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(`network:
  version: 2
  ethernets:
    lcm0: {match: {macaddress: "02:00:00:00:00:01"}, set-name: lcm0, mtu: 9000}
    eno1: {match: {macaddress: "02:00:00:00:00:aa"}, set-name: eno1}
  bonds:
    bond0:
      {interfaces: [eno1, lcm0], macaddress: "02:00:00:00:00:bb", mtu: 9000, addresses: [10.0.0.7/24], nameservers: {addresses: [10.0.0.2], search: [example.com]},
      parameters: {mode: 802.3ad, mii-monitor-interval: 100, transmit-hash-policy: layer3+4, lacp-rate: fast, up-delay: 1, down-delay: 2, ad-select: stable,
        arp-interval: 3, arp-validate: none, fail-over-mac-policy: none, gratuitous-arp: 4, min-links: 1, primary: lcm0, primary-reselect-policy: always}}
  vlans:
    bond0.42: {id: 42, link: bond0, dhcp4: true}
    lcm0.7: {id: 7, link: lcm0, macaddress: "02:00:00:00:00:cc"}
`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("netplan of the server (-want +got):\n%s\nnetwork data %s", diff, data)
	}
}

// A configuration with bridges reaches the server as a file for netplan, which takes what cloud-init
// loses, and with empty network data.
func TestBridgesNeedAFile(t *testing.T) {
	const text = nics + `
bonds: {one: {interfaces: [a, b], parameters: {mode: 802.3ad, primary: b, resend-igmp: 2}}}
vlans: {v: {id: 5, link: one}, w: {id: 6, link: br0, addresses: [10.0.1.2/24]}}
bridges: {br0: {interfaces: [v], macaddress: 02:00:00:00:00:09, mtu: 9000, addresses: [10.0.0.2/24], routes: [{to: default, via: 10.0.0.1}], parameters: {stp: false, priority: 9, path-cost: {v: 3}}}}
`
	r, err := NewTemplate(templateOf(text), server(), networks)
	if err != nil {
		t.Fatal(err)
	}
	config, err := r.Render(nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := NetworkData(config)
	if err != nil || string(data) != `{"links":[],"networks":[],"services":[]}` || !NeedsFile(config) {
		t.Errorf("NetworkData = %s, %v; NeedsFile = %t", data, err, NeedsFile(config))
	}
	if other := []byte(`{"version":2,"vlans":{}}`); NeedsFile(other) {
		t.Errorf("NeedsFile of %s", other)
	}
}

// Mistakes are errors that name the field.
func TestTemplateWithMistakes(t *testing.T) {
	const field = `L2Template "default": spec.npTemplate`
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"unclosed":         {"version: 2\n{{nic 0", []string{field, ":2"}},
		"unknown function": {"{{exec 0}}", []string{field, "exec"}},
		"missing NIC":      {"{{nic 7}}", []string{field, "no interface 7: it has 2"}},
		"missing subnet":   {`{{ip "0:storage"}}`, []string{field, `no subnetName "storage"`}},
		"ip without NIC":   {`{{ip "lcm"}}`, []string{field, "INTERFACE:SUBNET"}},
		"no gateway":       {`{{gateway_from_subnet "bare"}}`, []string{field, `Subnet "bare" has no spec.gateway`}},
		"no YAML":          {"version: 2\n  x: [", []string{field, "no YAML"}},
		"version 1":        {"version: 1", []string{field, "version 1: give 2"}},
		"bridge of none":   {nics + "bridges: {x: {interfaces: [a, c]}}", []string{field, `bridges.x: interfaces[1]: there is no interface "c"`}},
		"two masters":      {nics + "bonds: {x: {interfaces: [a]}}\nbridges: {z: {interfaces: [b, a]}}", []string{field, "bridges.z: interfaces[1]: a is an interface of bonds.x already"}},
		"own bridge":       {nics + "bridges: {x: {interfaces: [x]}}", []string{field, "bridges.x: it stands on itself"}},
		"circle":           {nics + "bridges: {x: {interfaces: [v, a]}}\nvlans: {v: {id: 5, link: x}}", []string{field, "bridges.x: it stands on itself"}},
		"bridge's key":     {nics + "bridges: {x: {interfaces: [a], id: 5}}", []string{field, "bridges.x: id: only vlans have it"}},
		"bridge's address": {nics + "bridges: {x: {interfaces: [a], addresses: [10.0.0.1]}}", []string{field, "bridges.x: addresses[0]"}},
		"no such of one":   {nics + "bridges: {x: {interfaces: [a], parameters: {bridge_stp: true}}}", []string{field, "bridges.x: parameters.bridge_stp: there is no such parameter: give one of ageing-time,"}},
		"stp":              {nics + "bridges: {x: {interfaces: [a], parameters: {stp: 1}}}", []string{field, "bridges.x: parameters.stp: give true or false"}},
		"cost of all":      {nics + "bridges: {x: {interfaces: [a], parameters: {path-cost: 5}}}", []string{field, "bridges.x: parameters.path-cost: give a number for each interface"}},
		"cost of another":  {nics + "bridges: {x: {interfaces: [a], parameters: {path-cost: {b: 5}}}}", []string{field, "bridges.x: parameters.path-cost.b: name one of the bridge's interfaces"}},
		"bond in a file":   {nics + "bridges: {x: {interfaces: [z]}}\nbonds: {z: {interfaces: [a], parameters: {miimon: 1}}}", []string{field, "bonds.z: parameters.miimon: there is no such parameter"}},
		"primary in one":   {nics + "bridges: {x: {interfaces: [z]}}\nbonds: {z: {interfaces: [a], parameters: {primary: b}}}", []string{field, "bonds.z: parameters.primary: b: name one of the bond's interfaces"}},
		"VLAN in a file":   {nics + "bridges: {x: {interfaces: [a]}}\nvlans: {v: {id: 5, link: c}}", []string{field, `vlans.v: link: there is no interface "c"`}},
		"MAC in a file":    {"version: 2\nethernets: {a: {}}\nbridges: {x: {}}", []string{field, "ethernets.a: match.macaddress"}},
		"tunnels":          {"version: 2\ntunnels: {t: {}}", []string{field, "tunnels", "use ethernets, bonds, vlans and bridges"}},
		"no MAC":           {"version: 2\nethernets: {a: {}}", []string{field, "ethernets.a: match.macaddress"}},
		"bad address":      {nics + "vlans: {v: {id: 5, link: a, addresses: [10.0.0.1]}}", []string{field, "vlans.v: addresses[0]"}},
		"lonely route":     {nics + "vlans: {v: {id: 5, link: a, routes: [{to: default, via: 10.0.0.1}]}}", []string{field, "vlans.v: routes"}},
		"lonely servers":   {nics + "vlans: {v: {id: 5, link: a, dhcp4: true, nameservers: {addresses: [10.0.0.1]}}}", []string{field, "vlans.v: nameservers: network data have those of an address alone"}},
		"VLAN on nothing":  {nics + "vlans: {v: {id: 5, link: c}}", []string{field, `vlans.v: link: there is no interface "c"`}},
		"bond of nothing":  {nics + "bonds: {x: {interfaces: [a, c]}}", []string{field, `bonds.x: interfaces[1]: there is no interface "c"`}},
		"NIC's parameters": {"version: 2\nethernets: {a: {match: {macaddress: 02:00:00:00:00:01}, parameters: {mode: 1}}}", []string{field, "ethernets.a: parameters: only bonds and bridges have it"}},
		"name of a VLAN":   {nics + "vlans: {v: {id: 5, link: a, set-name: w}}", []string{field, "vlans.v: set-name: only ethernets have it"}},
		"MAC of a NIC":     {"version: 2\nethernets: {a: {match: {macaddress: 02:00:00:00:00:01}, macaddress: 02:00:00:00:00:02}}", []string{field, "ethernets.a: macaddress: only bonds and vlans and bridges have it"}},
		"no field":         {nics + "bonds: {x: {interfaces: [a], parameters: {mode: 1, resend-igmp: 1}}}", []string{field, "bonds.x: parameters.resend-igmp: network data have no field for it that Debian 12's cloud-init gives to netplan"}},
		"lost by Debian":   {nics + "bonds: {x: {interfaces: [a], parameters: {arp-ip-targets: [10.0.0.1]}}}", []string{field, "parameters.arp-ip-targets: Debian 12's cloud-init gives netplan a parameter that it does not know"}},
		"no parameter":     {nics + "bonds: {x: {interfaces: [a], parameters: {miimon: 1}}}", []string{field, "parameters.miimon: there is no such parameter: give one of ad-select,"}},
		"parameter's list": {nics + "bonds: {x: {interfaces: [a], parameters: {mode: [1]}}}", []string{field, "parameters.mode: give a text or a number"}},
		"parameter twice":  {nics + "bonds: {x: {interfaces: [a], parameters: {gratuitous-arp: 1, gratuitious-arp: 2}}}", []string{field, "parameters.gratuitous-arp: it is given twice"}}, //nolint:misspell // netplan takes this spelling, too
		"primary":          {nics + "bonds: {x: {interfaces: [a], parameters: {primary: b}}}", []string{field, "parameters.primary: b: name one of ethernets that has set-name"}},
	} {
		r, err := NewTemplate(templateOf(tt.text), server(), networks)
		if err == nil {
			if _, err = r.Needs(); err == nil {
				_, err = r.Render(nil)
			}
		}
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error = %v, want %s", name, err, want)
			}
		}
	}
	template := templateOf(example)
	template.Spec.IfMapping = []string{"eno1", "eth9"}
	if _, err := NewTemplate(template, server(), networks); err == nil || !strings.Contains(err.Error(), `spec.ifMapping[1]: the server has no interface "eth9"`) {
		t.Errorf("a mapping to a missing interface: %v", err)
	}
	if _, err := NewTemplate(templateOf(example), server(), networks[1:]); err == nil || !strings.Contains(err.Error(), "spec.l3Layout[0]: 0 Subnets") {
		t.Errorf("a missing Subnet: %v", err)
	}
}

// Global Subnets are those of the namespace default: elsewhere the error says what to do.
func TestGlobalSubnets(t *testing.T) {
	for namespace, want := range map[string]string{
		"default": "",
		"lab":     `L2Template "a": spec.l3Layout[0].scope: global Subnets are in the namespace "default", and Machines of "lab" get no addresses there: create the Subnet here, and give namespace`,
	} {
		a := l2("a", nil)
		a.Namespace, a.Spec.L3Layout = namespace, []ipamv1.L3Layout{{SubnetName: "lcm", Scope: ipamv1.ScopeGlobal}}
		got, err := Subnets(&a, []ipamv1.Subnet{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lcm"}}})
		if want == "" && (err != nil || got["lcm"] == nil) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("Subnets() in %s = %v, %v, want error %q", namespace, got, err, want)
		}
	}
}
