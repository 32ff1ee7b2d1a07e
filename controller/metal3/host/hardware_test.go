package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// B-51 B-99 B-190: a HardwareData that is there beforehand stands for the inspection, if
// that is disabled: the profile is matched with it.
func TestHardwareDataThatIsThereBeforehandIsAdopted(t *testing.T) {
	disabled := func(h *metal3.BareMetalHost) {
		h.Spec.InspectionMode, h.Spec.BootMACAddress = metal3.InspectionModeDisabled, mac
	}
	external := func(h *metal3.BareMetalHost) { disabled(h); h.Spec.ExternallyProvisioned = true }
	details := metal3.HardwareDetails{
		Hostname: "by-hand", CPU: metal3.CPU{Arch: "x86_64"},
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: "Dell Inc."}, Storage: []metal3.Storage{{Name: "/dev/sda", HCTL: "0:0:0:0"}},
	}
	yes := true
	foreign := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: &yes}}
	for name, tt := range map[string]struct {
		host   func(*metal3.BareMetalHost)
		spec   metal3.HardwareDataSpec
		owners []metav1.OwnerReference
		in     metal3.ProvisioningState
		// hostname and profile of the status, and the number of owners and finalizers
		hostname, profile string
		owned, finalizers int
	}{
		"disabled":               {disabled, metal3.HardwareDataSpec{HardwareDetails: &details}, nil, metal3.StateAvailable, "by-hand", "dell", 1, 1},
		"externally provisioned": {external, metal3.HardwareDataSpec{HardwareDetails: &details}, nil, metal3.StateExternallyProvisioned, "by-hand", "dell", 1, 1},
		"another controller's":   {disabled, metal3.HardwareDataSpec{HardwareDetails: &details}, foreign, metal3.StateAvailable, "by-hand", "dell", 1, 0},
		"without details":        {disabled, metal3.HardwareDataSpec{}, nil, metal3.StateAvailable, "", "unknown", 0, 0},
		"inspected":              {nil, metal3.HardwareDataSpec{HardwareDetails: &details}, nil, metal3.StateAvailable, hostName, "unknown", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, tt.host)
			b.create(&metal3.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: hostName, OwnerReferences: tt.owners}, Spec: tt.spec})
			b.until("in its state", in(tt.in))
			s, hostname := b.host().Status, ""
			if s.HardwareDetails != nil {
				hostname = s.HardwareDetails.Hostname
			}
			if hostname != tt.hostname || s.HardwareProfile != tt.profile {
				t.Errorf("hostname %q, profile %q, want %q, %q", hostname, s.HardwareProfile, tt.hostname, tt.profile)
			}
			if hints := s.Provisioning.RootDeviceHints; tt.profile == "dell" && (hints == nil || hints.HCTL != "0:0:0:0") {
				t.Errorf("root device hints %+v, want those of the profile", hints)
			}
			var hd metal3.HardwareData
			if err := b.kube.Get(t.Context(), client.ObjectKeyFromObject(b.host()), &hd); err != nil {
				t.Fatal(err)
			}
			if len(hd.OwnerReferences) != tt.owned || len(hd.Finalizers) != tt.finalizers {
				t.Errorf("the HardwareData has owners %v and finalizers %v, want %d and %d", hd.OwnerReferences, hd.Finalizers, tt.owned, tt.finalizers)
			}
			if n := len(b.events("UpdateHardwareDetails")); n > 1 || (n == 1) != (hostname == "by-hand") {
				t.Errorf("%d events UpdateHardwareDetails", n)
			}
			if err := b.kube.Delete(t.Context(), b.host()); err != nil {
				t.Fatal(err)
			}
			b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
		})
	}
}
