package host

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

func shownHardware() *bmc.Inventory {
	return &bmc.Inventory{
		Hostname:   "controlplane-0",
		Processors: bmc.Processors{Arch: "x86_64", Model: "Xeon Gold 6138", MHz: 2000, Threads: 40},
		MemoryMiB:  131072,
		NICs:       []bmc.NIC{{Name: "1", MAC: "02:00:00:00:00:0a", IPs: []string{"192.0.2.9", "2001:db8::9"}, SpeedMbps: 25000}},
		Disks: []bmc.Disk{
			{Name: "Bay 1", Model: "ST2400MM0159", Serial: "WBM0", Protocol: "SAS", Rotational: true, Bytes: 2400476553216},
			{Name: "Bay 2", Protocol: "NVMe", Serial: "S1", Bytes: 960197124096},
		},
	}
}

// B-260: an externally provisioned host shows the hardware that its BMC shows, and
// shows other hardware when that has changed.
func TestExternallyProvisionedHostShowsItsHardware(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true })
	b.bmc.SetHardware(shownHardware())
	b.until("externally provisioned", in(metal3.StateExternallyProvisioned))
	b.until("hardware", func(h *metal3.BareMetalHost) bool { return h.Status.HardwareDetails != nil })
	sys, _ := b.bmc.System(t.Context())
	want := &metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: sys.Manufacturer, ProductName: sys.Model, SerialNumber: sys.Serial},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Version: sys.BIOSVersion}},
		Hostname:     "controlplane-0", RAMMebibytes: 131072,
		CPU: metal3.CPU{Arch: "x86_64", Model: "Xeon Gold 6138", ClockMegahertz: 2000, Count: 40},
		NIC: []metal3.NIC{
			{Name: "1", MAC: "02:00:00:00:00:0a", IP: "192.0.2.9", SpeedGbps: 25}, {Name: "1", MAC: "02:00:00:00:00:0a", IP: "2001:db8::9", SpeedGbps: 25},
		},
		Storage: []metal3.Storage{
			{Name: "Bay 1", Model: "ST2400MM0159", SerialNumber: "WBM0", Type: metal3.HDD, Rotational: true, SizeBytes: 2400476553216},
			{Name: "Bay 2", SerialNumber: "S1", Type: metal3.NVME, SizeBytes: 960197124096},
		},
	}
	stored := func() (hd metal3.HardwareData) {
		if err := b.kube.Get(t.Context(), client.ObjectKeyFromObject(b.host()), &hd); err != nil {
			t.Fatal(err)
		}
		return hd
	}
	if d := cmp.Diff(want, b.host().Status.HardwareDetails); d != "" {
		t.Errorf("status.hardware (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, stored().Spec.HardwareDetails); d != "" {
		t.Errorf("HardwareData (-want +got):\n%s", d)
	}
	if s := b.host().Status; s.HardwareProfile != "unknown" || !slices.Contains(b.reasons(), "InspectionComplete") {
		t.Errorf("profile %q, events %v", s.HardwareProfile, b.reasons())
	}
	changed := shownHardware()
	changed.Disks = changed.Disks[:1]
	b.bmc.SetHardware(changed)
	b.until("one disk", func(h *metal3.BareMetalHost) bool { return len(h.Status.HardwareDetails.Storage) == 1 })
	if got := stored().Spec.HardwareDetails.Storage; len(got) != 1 || !slices.Contains(b.reasons(), "UpdateHardwareDetails") {
		t.Errorf("HardwareData %+v, events %v", got, b.reasons())
	}
	if s := b.host().Status; s.ErrorType != "" || s.Provisioning.State != metal3.StateExternallyProvisioned {
		t.Errorf("%s in %s", s.ErrorType, s.Provisioning.State)
	}
	if h := b.host(); h.Spec.Architecture != "x86_64" { // B-252
		t.Errorf("architecture %q", h.Spec.Architecture)
	}
}

// B-260: the last disk and the last NIC that are pulled leave status.hardware and HardwareData.
// A BMC that lists no NICs and disks, as most do without the help of a driver, takes none away;
// an empty list of a server that is off or has just started takes none away either.
func TestLastDiskAndNICLeaveTheHardware(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true })
	b.bmc.SetHardware(shownHardware())
	b.until("hardware", func(h *metal3.BareMetalHost) bool { return h.Status.HardwareDetails != nil && h.Status.PoweredOn })
	counts := func() (nics, disks, storedNICs, storedDisks int) {
		var hd metal3.HardwareData
		if err := b.kube.Get(t.Context(), client.ObjectKeyFromObject(b.host()), &hd); err != nil {
			t.Fatal(err)
		}
		d, s := b.host().Status.HardwareDetails, hd.Spec.HardwareDetails
		return len(d.NIC), len(d.Storage), len(s.NIC), len(s.Storage)
	}
	readings := func(n int) {
		t.Helper()
		for range n {
			b.clock.Step(inventoryInterval)
			b.passes(3)
		}
	}
	expect := func(when string, nics, disks int) {
		t.Helper()
		if n, d, sn, sd := counts(); n != nics || sn != nics || d != disks || sd != disks {
			t.Errorf("%s: %d NICs and %d disks, in HardwareData %d and %d; want %d and %d", when, n, d, sn, sd, nics, disks)
		}
	}
	silent, bare := shownHardware(), shownHardware()
	silent.NICs, silent.Disks = nil, nil
	b.bmc.SetHardware(silent)
	readings(3)
	expect("not listed", 2, 2)

	bare.NICs, bare.Disks = []bmc.NIC{}, []bmc.Disk{}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	b.until("off", func(h *metal3.BareMetalHost) bool { return !h.Status.PoweredOn })
	b.bmc.SetHardware(bare)
	readings(3)
	expect("off", 2, 2)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	b.until("on", func(h *metal3.BareMetalHost) bool { return h.Status.PoweredOn })
	b.passes(3)
	expect("just started", 2, 2)
	readings(2)
	expect("pulled", 0, 0)
	b.bmc.SetHardware(shownHardware())
	readings(2)
	expect("inserted again", 2, 2)
}

// The hardware is read every ten minutes and after a start of the server, and not by
// every pass.
func TestHardwareIsReadSeldom(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true })
	b.bmc.SetHardware(shownHardware())
	reads := func() (n int) {
		for _, c := range b.bmc.Calls() {
			if c.Verb == bmctest.ReadInventory {
				n++
			}
		}
		return n
	}
	b.until("hardware", func(h *metal3.BareMetalHost) bool { return h.Status.HardwareDetails != nil && h.Status.PoweredOn })
	b.passes(5)
	before, began := reads(), b.clock.Now()
	b.until("another reading", func(*metal3.BareMetalHost) bool { return reads() > before })
	if took := b.clock.Since(began); took < inventoryInterval/2 || took > 2*inventoryInterval {
		t.Errorf("the hardware was read again after %v", took)
	}
	before = reads()
	b.bmc.Press(bmc.Off)
	b.passes(2)
	b.until("on", func(h *metal3.BareMetalHost) bool { return h.Status.PoweredOn })
	b.passes(2)
	if got := reads() - before; got != 1 {
		t.Errorf("%d readings after a start, want 1", got)
	}
}

// A BMC that shows no hardware, or not now, does not disturb a host.
func TestHardwareThatCannotBeRead(t *testing.T) {
	for name, fail := range map[string]error{"unsupported": nil, "failing": errors.New("500")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true })
			if fail != nil {
				b.bmc.SetHardware(shownHardware())
				b.bmc.Fail(bmctest.ReadInventory, fail)
			}
			b.until("externally provisioned and on", func(h *metal3.BareMetalHost) bool {
				return in(metal3.StateExternallyProvisioned)(h) && h.Status.PoweredOn
			})
			b.passes(10)
			if s := b.host().Status; s.ErrorType != "" || s.HardwareDetails != nil {
				t.Errorf("error %q, hardware %+v", s.ErrorType, s.HardwareDetails)
			}
			if fail == nil {
				return
			}
			b.bmc.Fail(bmctest.ReadInventory, nil)
			began := b.clock.Now()
			b.until("hardware", func(h *metal3.BareMetalHost) bool { return h.Status.HardwareDetails != nil })
			if took := b.clock.Since(began); took > 5*time.Minute {
				t.Errorf("read after %v", took)
			}
		})
	}
}

// Inspection that is disabled covers the BMC, too (B-51).
func TestHardwareIsNotReadWithInspectionDisabled(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		h.Spec.ExternallyProvisioned, h.Spec.InspectionMode, h.Spec.BootMACAddress = true, metal3.InspectionModeDisabled, mac
	})
	b.bmc.SetHardware(shownHardware())
	b.until("externally provisioned", in(metal3.StateExternallyProvisioned))
	b.passes(30)
	if d := b.host().Status.HardwareDetails; d != nil {
		t.Errorf("hardware %+v", d)
	}
}

// The inventory of a BMC has no flags of processors and no names of NICs and disks.
func TestBMCsHardwareKeepsWhatTheAgentFound(t *testing.T) {
	found := &metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: "Contoso", ProductName: "C3500", SerialNumber: "SN"},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Vendor: "Contoso", Version: "1.0", Date: "01/02/2026"}},
		CPU:          metal3.CPU{Arch: "x86_64", Model: "Xeon", ClockMegahertz: 1999, Count: 20, Flags: []string{"vmx"}},
		NIC: []metal3.NIC{
			{Name: "eno1", MAC: "02:00:00:00:00:0a", IP: "192.0.2.1", SpeedGbps: 10, PXE: true}, {Name: "eno1", MAC: "02:00:00:00:00:0a", IP: "2001:db8::1", SpeedGbps: 10, PXE: true},
			{Name: "eno2", MAC: "02:00:00:00:00:0b"},
		},
		Storage: []metal3.Storage{
			{Name: "/dev/sda", SerialNumber: "WBM0", HCTL: "0:0:0:0", Type: metal3.HDD, Rotational: true, SizeBytes: 2400476553216},
			{Name: "/dev/sdb", WWN: "0x5000c500a1b2c3d4", Type: metal3.SSD, SizeBytes: 1},
			{Name: "/dev/sdc", SerialNumber: "gone"},
		},
	}
	in := *shownHardware()
	in.System = bmc.System{Serial: "SN2", BIOSVersion: "1.1"}
	in.Disks = append(in.Disks, bmc.Disk{Name: "Volume", WWN: "0x5000c500a1b2c3d4", Bytes: 2})
	got := inventoryDetails(in, found)
	want := found.DeepCopy()
	want.SystemVendor.SerialNumber, want.Firmware.BIOS.Version, want.Hostname, want.RAMMebibytes = "SN2", "1.1", "controlplane-0", 131072
	want.CPU.Count, want.CPU.Model = 40, "Xeon Gold 6138"
	want.NIC = want.NIC[:2]
	want.NIC[0].SpeedGbps, want.NIC[1].SpeedGbps = 25, 25
	want.Storage = []metal3.Storage{want.Storage[0], {Name: "Bay 2", SerialNumber: "S1", Type: metal3.NVME, SizeBytes: 960197124096}, want.Storage[1]}
	want.Storage[2].SizeBytes = 2
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("inventoryDetails (-want +got):\n%s", d)
	}
	if d := cmp.Diff(found, inventoryDetails(bmc.Inventory{}, found)); d != "" {
		t.Errorf("inventoryDetails of a BMC that shows nothing (-want +got):\n%s", d)
	}
}
