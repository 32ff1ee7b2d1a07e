package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
)

func TestServersObtainAddressesByDHCP(t *testing.T) {
	const static = "network: {version: 2, ethernets: {eno1: {addresses: [192.0.2.5/24]}}}"
	for _, tt := range []struct {
		name    string
		netplan []string
		want    []string // addresses of three NICs; the first has no link
	}{
		{"without a configuration the first NIC with a link", nil, []string{"", "198.18.0.17", ""}},
		{"none by a static configuration", []string{static}, []string{"", "", ""}},
		{"by name", []string{static, "network: {ethernets: {eno3: {dhcp4: true}}}"}, []string{"", "", "198.18.0.18"}},
		{"by MAC address", []string{"network: {ethernets: {lan: {match: {macaddress: 'AA:BB:CC:00:00:02'}, dhcp4: true}}}"}, []string{"", "198.18.0.17", ""}},
		{"by a name to match", []string{"network: {ethernets: {lan: {match: {name: eno3}, dhcp4: true}}}"}, []string{"", "", "198.18.0.18"}},
		{"not without a link", []string{"network: {ethernets: {eno1: {dhcp4: true}}}"}, []string{"", "", ""}},
		{"not by IPv6 alone", []string{"network: {ethernets: {eno2: {dhcp6: true}}}"}, []string{"", "", ""}},
		{"not by a file that netplan does not read", []string{"network: ["}, []string{"", "", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nics := []job.NIC{
				{Name: "eno1", MAC: "aa:bb:cc:00:00:01"},
				{Name: "eno2", MAC: "aa:bb:cc:00:00:02", Carrier: true},
				{Name: "eno3", MAC: "aa:bb:cc:00:00:03", Carrier: true},
			}
			var files [][]byte
			for _, f := range tt.netplan {
				files = append(files, []byte(f))
			}
			obtainAddresses(files, 1, nics)
			got := []string{nics[0].IP, nics[1].IP, nics[2].IP}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDHCPAddressesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for host := range 3000 {
		for nic := range dhcpNICs {
			at, ok := dhcpAddress(host, nic)
			if !ok || seen[at.String()] {
				t.Fatalf("dhcpAddress(%d, %d) = %v, %v", host, nic, at, ok)
			}
			seen[at.String()] = true
		}
	}
	if at, ok := dhcpAddress(1<<14, 0); ok {
		t.Errorf("dhcpAddress(%d, 0) = %v beyond %v", 1<<14, at, dhcpNetwork)
	}
}
