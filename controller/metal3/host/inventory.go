package host

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// inventoryInterval is how often the hardware of an externally provisioned host is
// read from its BMC. A reading takes a request for each part.
const inventoryInterval = 10 * time.Minute

// inventoryRetry is the wait after a reading that has failed.
const inventoryRetry = time.Minute

// inventoryReading is the last reading of the hardware.
type inventoryReading struct {
	next time.Time // time of the next one
	on   bool      // the server was on, then or in a later pass
}

// observeInventory reads the hardware of a host that others provision, which is never
// inspected by an agent (B-260). It is read when the host has none yet, after each
// start of the server and every inventoryInterval.
func (r *Reconciler) observeInventory(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if o.facts.State != metal3.StateExternallyProvisioned || o.facts.InspectionDisabled {
		return nil
	}
	inspector, ok := o.client.(bmc.Inspector)
	if !ok {
		return nil
	}
	now, on := r.Clock.Now(), o.system.Power == bmc.On
	last := r.memory.get(h.UID).inventory
	if last != nil && now.Before(last.next) && (last.on || !on) {
		if last.on != on {
			r.memory.update(h.UID, func(m *hostMemory) { m.inventory = &inventoryReading{next: last.next, on: on} })
		}
		return nil
	}
	reading := inventoryReading{next: now.Add(inventoryInterval), on: on}
	in, err := inspector.Inventory(ctx)
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, bmc.ErrUnsupported):
	case err != nil: // the BMC works: power and boot override have just been read
		ctrl.LoggerFrom(ctx).Info("hardware not read", "error", err.Error())
		reading.next = now.Add(inventoryRetry)
	default:
		if last == nil || !last.on || !on {
			dropEmptyLists(&in)
		}
		if d := inventoryDetails(in, h.Status.HardwareDetails); !equality.Semantic.DeepEqual(d, h.Status.HardwareDetails) {
			o.hardware, o.facts.HardwareChanged = d, true
		}
	}
	o.hardwareRead = &reading
	return nil
}

// dropEmptyLists makes lists that say that the server has none of a kind say nothing. A BMC
// may show no NICs and disks of a server that is off or has just started, before the server's
// firmware has found them; the readings of a server that has been on since the one before
// count.
func dropEmptyLists(in *bmc.Inventory) {
	if len(in.NICs) == 0 {
		in.NICs = nil
	}
	if len(in.Disks) == 0 {
		in.Disks = nil
	}
}

// storeInventoryReading remembers the reading of a pass, unless that has not recorded
// the hardware: then it is read again in the next pass.
func (r *Reconciler) storeInventoryReading(h *metal3.BareMetalHost, o *observation, d phase.Decision) {
	if o.hardwareRead != nil && (!o.facts.HardwareChanged || d.Do == phase.StoreHardware) {
		r.memory.update(h.UID, func(m *hostMemory) { m.inventory = o.hardwareRead })
	}
}

// inventoryDetails returns the hardware of a BMC's inventory. It copies the properties that
// no BMC has from an earlier inspection: flags of the processors, and the names that an
// operating system gives to NICs and disks.
func inventoryDetails(in bmc.Inventory, before *metal3.HardwareDetails) *metal3.HardwareDetails {
	out := &metal3.HardwareDetails{}
	if before != nil {
		out = before.DeepCopy()
	}
	set := func(into *string, value string) { *into = cmp.Or(value, *into) }
	set(&out.SystemVendor.Manufacturer, in.System.Manufacturer)
	set(&out.SystemVendor.ProductName, in.System.Model)
	set(&out.SystemVendor.SerialNumber, in.System.Serial)
	set(&out.Firmware.BIOS.Version, in.System.BIOSVersion)
	set(&out.Hostname, in.Hostname)
	set(&out.CPU.Arch, in.Processors.Arch)
	set(&out.CPU.Model, in.Processors.Model)
	out.CPU.Count = cmp.Or(in.Processors.Threads, out.CPU.Count)
	if in.Processors.MHz > 0 && before == nil {
		out.CPU.ClockMegahertz = metal3.ClockSpeed(in.Processors.MHz) * metal3.MegaHertz
	}
	out.RAMMebibytes = cmp.Or(in.MemoryMiB, out.RAMMebibytes)
	if in.NICs != nil {
		known := out.NIC
		out.NIC = nil
		for _, n := range in.NICs {
			out.NIC = append(out.NIC, inventoryNICs(n, known)...)
		}
	}
	if in.Disks != nil {
		known := out.Storage
		out.Storage = nil
		for _, d := range in.Disks {
			out.Storage = append(out.Storage, inventoryDisk(d, known))
		}
	}
	return out
}

// inventoryNICs returns the entries of a NIC: one for each address (B-250). An earlier
// inspection knows more of it.
func inventoryNICs(n bmc.NIC, known []metal3.NIC) (out []metal3.NIC) {
	for _, k := range known {
		if strings.EqualFold(k.MAC, n.MAC) {
			k.SpeedGbps = n.SpeedMbps / 1000
			out = append(out, k)
		}
	}
	one := metal3.NIC{Name: n.Name, MAC: n.MAC, SpeedGbps: n.SpeedMbps / 1000}
	switch {
	case len(out) > 0 && (out[0].Name != n.Name || len(n.IPs) == 0):
		return out // an operating system has named it, and has its addresses
	case len(n.IPs) == 0:
		return []metal3.NIC{one}
	}
	out = nil
	for _, ip := range n.IPs {
		one.IP = ip
		out = append(out, one)
	}
	return out
}

// diskTypes maps protocols to types, of drives that do not rotate.
var diskTypes = map[string]metal3.DiskType{"NVMe": metal3.NVME}

func inventoryDisk(d bmc.Disk, known []metal3.Storage) metal3.Storage {
	for _, k := range known {
		if d.Serial != "" && k.SerialNumber == d.Serial || d.WWN != "" && (k.WWN == d.WWN || k.WWNWithExtension == d.WWN) {
			k.SizeBytes = metal3.Capacity(d.Bytes)
			return k
		}
	}
	out := metal3.Storage{
		Name: d.Name, Rotational: d.Rotational, Type: cmp.Or(diskTypes[d.Protocol], metal3.SSD), SizeBytes: metal3.Capacity(d.Bytes),
		Vendor: d.Vendor, Model: d.Model, SerialNumber: d.Serial, WWN: d.WWN,
	}
	if d.Rotational {
		out.Type = metal3.HDD
	}
	return out
}
