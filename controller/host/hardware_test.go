package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/agent/job"
)

func TestNICsInHardwareDetails(t *testing.T) { // B-250
	for name, tt := range map[string]struct {
		found job.NIC
		want  metal3.NIC
	}{
		"nothing but itself": {job.NIC{Name: "eno2", MAC: "02:00:00:00:00:02"}, metal3.NIC{Name: "eno2", MAC: "02:00:00:00:00:02"}},
		"all that there is": {
			job.NIC{
				Name: "eno1", MAC: "02:00:00:00:00:01", Model: "0x8086 0x1592", IP: "192.0.2.9", SpeedMbps: 25000, Carrier: true, PCIAddress: "0000:18:00.0",
				PXE: true, VLANID: 10, VLANs: []job.VLAN{{ID: 100, Name: "storage"}, {ID: 200}},
				LLDP: &job.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "Ethernet1", SwitchName: "leaf-1"},
			},
			metal3.NIC{
				Name: "eno1", MAC: "02:00:00:00:00:01", Model: "0x8086 0x1592", IP: "192.0.2.9", SpeedGbps: 25, PCIAddress: "0000:18:00.0",
				PXE: true, VLANID: 10, VLANs: []metal3.VLAN{{ID: 100, Name: "storage"}, {ID: 200}},
				LLDP: &metal3.LLDP{SwitchID: "00:1c:73:00:01:01", PortID: "Ethernet1", SwitchSystemName: "leaf-1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := hardwareDetails(&job.Hardware{NICs: []job.NIC{tt.found}}).NIC
			if d := cmp.Diff([]metal3.NIC{tt.want}, got); d != "" {
				t.Errorf("NICs (-want +got):\n%s", d)
			}
		})
	}
}
