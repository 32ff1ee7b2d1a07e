package record

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// defaultTimings are assumed, since no BMC shows how long its server takes.
var defaultTimings = func() machine.Timings {
	s := func(n int) machine.Duration { return machine.Duration{Duration: time.Duration(n) * time.Second} }
	return machine.Timings{PowerOn: s(2), POST: s(90), OSBoot: s(25), Shutdown: s(12), PowerOff: s(3), Graceful: s(300), Dump: s(60)}
}()

// defaultCPUFlags are the CPU flags that an operating system sees, by
// architecture. No BMC shows them.
var defaultCPUFlags = map[string][]string{
	"x86_64":  {"aes", "apic", "avx", "avx2", "fpu", "ht", "lm", "mmx", "nx", "sse", "sse2", "sse4_1", "sse4_2", "ssse3"},
	"aarch64": {"aes", "asimd", "atomics", "crc32", "fp", "sha1", "sha2"},
}

// virtualizationFlag is the CPU flag of virtualization by vendor.
var virtualizationFlag = map[string]string{"intel": "vmx", "amd": "svm"}

// members returns the URIs in the collection to which a property of a resource
// links.
func (d *deriver) members(of resource, link string) []string {
	at := strings.TrimRight(of.str(link+"/@odata.id"), "/")
	if at == "" {
		return nil
	}
	return d.capture.Members(at)
}

// resource returns the body at a URI; nil if it was not read.
func (d *deriver) resource(at string) resource { return d.capture.Resources[at] }

// processors derives the processors.
func (d *deriver) processors(p *machine.Profile, s resource) {
	c := &p.Processors
	for _, at := range d.members(s, "Processors") {
		x := d.resource(at)
		if kind := x.str("ProcessorType"); kind != "" && kind != "CPU" || x.absent() {
			continue
		}
		c.Sockets++
		d.locate(fmt.Sprintf("/redfish/v1/Systems/{system}/Processors/CPU%d", c.Sockets), at)
		if c.Sockets > 1 {
			continue
		}
		c.Cores, c.Threads = x.int("TotalCores"), x.int("TotalThreads")
		c.Vendor, c.Model = cmp.Or(x.str("Manufacturer"), x.str("ProcessorId/VendorId")), x.str("Model")
		c.TurboMHz, c.MHz = x.int("MaxSpeedMHz"), cmp.Or(x.int("BaseSpeedMHz"), x.int("OperatingSpeedMHz"))
		c.Watts = cmp.Or(x.int("MaxTDPWatts"), x.int("TDPWatts"))
		c.Family, c.CPUModel, c.Stepping = x.str("ProcessorId/EffectiveFamily"), x.str("ProcessorId/EffectiveModel"), x.str("ProcessorId/Step")
		c.Signature, c.Microcode = x.str("ProcessorId/IdentificationRegisters"), x.str("ProcessorId/MicrocodeInfo")
		for _, m := range x.objects("ProcessorMemory") {
			level, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(m.str("MemoryType"), "L"), "Cache"))
			if err == nil && level >= 1 && level <= 4 { // caches below 1 MiB are shown as 0
				c.Caches = append(c.Caches, machine.Cache{Level: level, KiB: cmp.Or(max(0, m.int("CapacityMiB"))*1024, 512)})
			}
		}
		if strings.HasPrefix(x.str("InstructionSet"), "ARM") || x.str("ProcessorArchitecture") == "ARM" {
			c.Arch = "aarch64"
		}
	}
	sum := s.sub("ProcessorSummary")
	c.Sockets = max(1, c.Sockets, sum.int("Count"))
	c.Model = cmp.Or(c.Model, sum.str("Model"), "Unknown")
	if c.Cores == 0 {
		c.Cores = max(1, sum.int("CoreCount")/c.Sockets)
	}
	if c.Threads == 0 {
		c.Threads = sum.int("LogicalProcessorCount") / c.Sockets
	}
	c.Threads = max(c.Threads, c.Cores)
	if c.TurboMHz != 0 {
		c.TurboMHz = max(c.TurboMHz, c.MHz)
	}
	c.Arch = cmp.Or(c.Arch, "x86_64")
	c.Flags = slices.Clone(defaultCPUFlags[c.Arch])
	for vendor, flag := range virtualizationFlag {
		if strings.Contains(strings.ToLower(c.Vendor), vendor) {
			c.Flags = append(c.Flags, flag)
		}
	}
}

// memory derives the memory modules.
func (d *deriver) memory(p *machine.Profile, s resource) {
	var all []resource
	for _, at := range d.members(s, "Memory") {
		x := d.resource(at)
		if x.absent() || x.int("CapacityMiB") <= 0 {
			continue
		}
		all = append(all, x)
		d.locate(fmt.Sprintf("/redfish/v1/Systems/{system}/Memory/DIMM%d", len(all)), at)
		p.MemoryMiB += x.int("CapacityMiB")
	}
	if len(all) == 0 {
		p.MemoryMiB = int(s.num("MemorySummary/TotalSystemMemoryGiB") * 1024)
		if p.MemoryMiB <= 0 {
			p.MemoryMiB = 1024
			d.note("the BMC does not show the size of the memory: the model has 1 GiB")
		}
		return
	}
	x := all[0]
	if p.MemoryMiB != len(all)*x.int("CapacityMiB") {
		d.note("the memory modules differ: the model has %d equal ones", len(all))
		p.MemoryMiB = p.MemoryMiB / len(all) * len(all)
	}
	p.Memory = machine.Memory{
		Modules: len(all), MiB: p.MemoryMiB / len(all), Type: cmp.Or(x.str("MemoryDeviceType"), "DDR4"), Form: cmp.Or(x.str("BaseModuleType"), "RDIMM"),
		MHz: x.int("OperatingSpeedMhz"), Ranks: x.int("RankCount"), Vendor: x.str("Manufacturer"), PartNumber: x.str("PartNumber"),
	}
	if p.Memory.MHz == 0 {
		if speeds := list(x["AllowedSpeedsMHz"]); len(speeds) > 0 {
			n, _ := speeds[0].(float64)
			p.Memory.MHz = int(n)
		}
	}
}

// hexID returns a PCI ID in the form of profiles: 0x and hexadecimal digits.
func hexID(text string, digits int) string {
	text = strings.ToLower(strings.TrimSpace(text))
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSuffix(text, "h"), "0x"), 16, 32)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("0x%0*x", digits, n)
}

// pciAddress returns the PCI address of a PCIeFunction, or "" if the resource
// lacks it.
func pciAddress(f resource) string {
	part := func(name string) (uint64, bool) {
		text := strings.TrimPrefix(strings.ToLower(f.str(name)), "0x")
		n, err := strconv.ParseUint(text, 16, 16)
		return n, err == nil
	}
	segment, _ := part("SegmentNumber")
	bus, ok := part("BusNumber")
	device, ok2 := part("DeviceNumber")
	function, ok3 := part("FunctionNumber")
	if !ok || !ok2 || !ok3 || bus > 0xff || device > 0xff || function > 7 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%d", segment, bus, device, function)
}

// functionsOf returns the URIs of a PCIeDevice's functions.
func (d *deriver) functionsOf(card string) []string {
	x := d.resource(card)
	if at := d.members(x, "PCIeFunctions"); len(at) > 0 {
		return at
	}
	return x.refs("Links/PCIeFunctions")
}

// cardsAt returns the URIs of all PCIeDevices.
func (d *deriver) cardsAt() []string {
	if at := d.members(d.resource(d.chassis), "PCIeDevices"); len(at) > 0 {
		return at
	}
	var out []string
	for _, at := range d.resource(d.system).refs("PCIeDevices") {
		if d.resource(at) != nil {
			out = append(out, at)
		}
	}
	return out
}

// network derives the network ports from the system's Ethernet interfaces.
func (d *deriver) network(p *machine.Profile) {
	functions := map[string]resource{} // PCI functions, by the NIC
	for _, card := range d.cardsAt() {
		for _, at := range d.functionsOf(card) {
			for _, nic := range d.resource(at).refs("Links/EthernetInterfaces") {
				functions[nic] = d.resource(at)
			}
		}
	}
	seen := map[string]bool{}
	for _, at := range d.members(d.resource(d.system), "EthernetInterfaces") {
		x := d.resource(at)
		if x.absent() || seen[cmp.Or(x.str("PermanentMACAddress"), x.str("MACAddress"), at)] {
			continue
		}
		seen[cmp.Or(x.str("PermanentMACAddress"), x.str("MACAddress"), at)] = true
		i, id := len(p.NICs), last(toStandardURI(d.base, at))
		d.nics[at] = id
		d.locate("/redfish/v1/Systems/{system}/EthernetInterfaces/"+id, at)
		f := functions[at]
		n := machine.NICModel{
			ID: id, Name: fmt.Sprintf("eno%d", i+1), SpeedMbps: x.int("SpeedMbps"),
			PCIVendor: cmp.Or(hexID(f.str("VendorId"), 4), "0x8086"), PCIDevice: cmp.Or(hexID(f.str("DeviceId"), 4), "0x1592"),
			PCIAddress: cmp.Or(pciAddress(f), fmt.Sprintf("0000:%02x:00.%d", 0x3b+i/8, i%8)),
		}
		for _, port := range x.refs("Links/Ports") {
			n.SpeedMbps = cmp.Or(int(d.resource(port).num("MaxSpeedGbps")*1000), n.SpeedMbps)
		}
		n.SpeedMbps = cmp.Or(max(0, n.SpeedMbps), 10000)
		p.NICs = append(p.NICs, n)
	}
	if len(p.NICs) == 0 {
		d.ports(p)
	}
	if len(p.NICs) == 0 {
		d.note("the BMC shows no network ports of the system")
	}
}

// ports derives the network ports from the network adapters: some BMCs do not
// show the system's Ethernet interfaces.
func (d *deriver) ports(p *machine.Profile) {
	for _, card := range d.cardsAt() {
		for _, at := range d.functionsOf(card) {
			f := d.resource(at)
			if f.str("DeviceClass") != "NetworkController" {
				continue
			}
			n := len(p.NICs)
			d.nics[at] = strconv.Itoa(n + 1)
			p.NICs = append(p.NICs, machine.NICModel{
				ID: strconv.Itoa(n + 1), Name: fmt.Sprintf("eno%d", n+1), SpeedMbps: 10000,
				PCIVendor: cmp.Or(hexID(f.str("VendorId"), 4), "0x8086"), PCIDevice: cmp.Or(hexID(f.str("DeviceId"), 4), "0x1592"),
				PCIAddress: cmp.Or(pciAddress(f), fmt.Sprintf("0000:%02x:00.%d", 0x3b+n/8, n%8)),
			})
		}
	}
}

// classes are the classes of PCIe functions that a profile takes.
var classes = []string{
	"MassStorageController", "NetworkController", "DisplayController", "Bridge", "SerialBusController", "EncryptionController",
	"ProcessingAccelerators", "Other",
}

// pcie derives the PCIe cards.
func (d *deriver) pcie(p *machine.Profile) {
	owned := map[string]bool{}
	for _, at := range d.cardsAt() {
		x := d.resource(at)
		c := machine.Card{
			ID: last(at), Class: "Other", ClassCode: "0xff0000", Vendor: x.str("Manufacturer"), Product: cmp.Or(x.str("Model"), x.str("Name")), PartNumber: x.str("PartNumber"),
			Gen: pcieGeneration(cmp.Or(x.str("PCIeInterface/MaxPCIeType"), x.str("PCIeInterface/PCIeType"))), Lanes: cmp.Or(x.int("PCIeInterface/MaxLanes"), x.int("PCIeInterface/LanesInUse"), 1),
			Slot: x.str("Slot/Location/PartLocation/ServiceLabel"), SlotType: x.str("Slot/SlotType"),
		}
		c.Lanes = min(max(c.Lanes, 1), 32)
		all := d.functionsOf(at)
		for i, function := range all {
			f := d.resource(function)
			if i == 0 {
				if k := f.str("DeviceClass"); slices.Contains(classes, k) {
					c.Class = k
				}
				c.ClassCode = cmp.Or(hexID(f.str("ClassCode"), 6), c.ClassCode)
				c.PCIVendor, c.PCIDevice, c.PCIAddress = cmp.Or(hexID(f.str("VendorId"), 4), "0x8086"), cmp.Or(hexID(f.str("DeviceId"), 4), "0x0000"), pciAddress(f)
			}
			for _, nic := range append(f.refs("Links/EthernetInterfaces"), function) {
				if id := d.nics[nic]; id != "" && !owned[id] {
					owned[id] = true
					c.NICs = append(c.NICs, id)
				}
			}
		}
		if len(all) == 0 {
			c.PCIVendor, c.PCIDevice = "0x8086", "0x0000"
		}
		c.PCIAddress = cmp.Or(c.PCIAddress, fmt.Sprintf("0000:%02x:00.0", 0x80+len(p.Cards)))
		if len(c.NICs) > 0 {
			c.PCIVendor, c.PCIDevice, c.PCIAddress = "", "", "" // those of the ports
		} else {
			if c.Storage = d.controllerOn(p, all); c.Storage != "" && x.str("FirmwareVersion") != "" {
				c.Component = "Storage." + c.Storage
			}
		}
		d.cards[at] = c.ID
		d.locate("/redfish/v1/Chassis/{chassis}/PCIeDevices/"+c.ID, at)
		p.Cards = append(p.Cards, c)
	}
}

// controllerOn returns the ID of the storage whose controller is on one of the
// PCIe functions; "" if there is none.
func (d *deriver) controllerOn(p *machine.Profile, functions []string) string {
	for _, s := range p.Storage {
		at := d.locations["/redfish/v1/Systems/{system}/Storage/"+s.ID]
		for _, f := range functions {
			for _, of := range d.resource(f).refs("Links/StorageControllers") {
				if of, _, _ := strings.Cut(of, "#"); isUnder(strings.TrimRight(of, "/"), at) {
					return s.ID
				}
			}
		}
		for _, c := range d.members(d.resource(at), "Controllers") {
			for _, f := range d.resource(c).refs("Links/PCIeFunctions") {
				if slices.Contains(functions, f) {
					return s.ID
				}
			}
		}
	}
	return ""
}

// pcieGeneration parses "Gen4" into 4; it returns 3 for any other text.
func pcieGeneration(text string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "Gen"))
	if err != nil {
		return 3
	}
	return min(max(n, 1), 6)
}

// bootOrder derives the boot order from AliasBootOrder; without it, it is
// disk, then network.
func (d *deriver) bootOrder(p *machine.Profile, s resource) {
	known := []machine.SourceKind{machine.Pxe, machine.Floppy, machine.Cd, machine.Usb, machine.Hdd, machine.SDCard, machine.UefiHTTP, machine.RemoteDrive}
	for _, text := range s.texts("Boot/AliasBootOrder") {
		if k := machine.SourceKind(text); slices.Contains(known, k) && !slices.Contains(p.BootOrder, k) {
			p.BootOrder = append(p.BootOrder, k)
		}
	}
	if len(p.BootOrder) == 0 {
		p.BootOrder = []machine.SourceKind{machine.Hdd, machine.Pxe}
	}
}
