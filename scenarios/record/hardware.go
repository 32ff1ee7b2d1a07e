package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// timings are those of a server of which nobody knows better: a BMC does not
// tell.
var timings = func() machine.Timings {
	s := func(n int) machine.Duration { return machine.Duration{Duration: time.Duration(n) * time.Second} }
	return machine.Timings{PowerOn: s(2), POST: s(90), OSBoot: s(25), Shutdown: s(12), PowerOff: s(3), Graceful: s(300), Dump: s(60)}
}()

// flags are what systems see of processors, by architecture: a BMC does not
// tell either.
var flags = map[string][]string{
	"x86_64":  {"aes", "apic", "avx", "avx2", "fpu", "ht", "lm", "mmx", "nx", "sse", "sse2", "sse4_1", "sse4_2", "ssse3"},
	"aarch64": {"aes", "asimd", "atomics", "crc32", "fp", "sha1", "sha2"},
}

// virtual is the flag by which a vendor's processors offer virtualisation.
var virtual = map[string]string{"intel": "vmx", "amd": "svm"}

// members are the pages of the collection that a page's property leads to.
func (d *deriver) members(of page, link string) []string {
	at := strings.TrimRight(of.str(link+"/@odata.id"), "/")
	if at == "" {
		return nil
	}
	return d.c.Members(at)
}

func (d *deriver) page(at string) page { return d.c.Pages[at] }

func (d *deriver) processors(p *machine.Profile, s page) {
	c := &p.Processors
	for _, at := range d.members(s, "Processors") {
		x := d.page(at)
		if kind := x.str("ProcessorType"); kind != "" && kind != "CPU" || x.absent() {
			continue
		}
		c.Sockets++
		d.place(fmt.Sprintf("/redfish/v1/Systems/{system}/Processors/CPU%d", c.Sockets), at)
		if c.Sockets > 1 {
			continue
		}
		c.Cores, c.Threads = x.int("TotalCores"), x.int("TotalThreads")
		c.Vendor, c.Model = or(x.str("Manufacturer"), x.str("ProcessorId/VendorId")), x.str("Model")
		c.TurboMHz, c.MHz = x.int("MaxSpeedMHz"), or(x.int("BaseSpeedMHz"), x.int("OperatingSpeedMHz"))
		c.Watts = or(x.int("MaxTDPWatts"), x.int("TDPWatts"))
		c.Family, c.CPUModel, c.Stepping = x.str("ProcessorId/EffectiveFamily"), x.str("ProcessorId/EffectiveModel"), x.str("ProcessorId/Step")
		c.Signature, c.Microcode = x.str("ProcessorId/IdentificationRegisters"), x.str("ProcessorId/MicrocodeInfo")
		for _, m := range x.objects("ProcessorMemory") {
			level, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(m.str("MemoryType"), "L"), "Cache"))
			if err == nil && level >= 1 && level <= 4 { // less than a MiB is told as none
				c.Caches = append(c.Caches, machine.Cache{Level: level, KiB: or(max(0, m.int("CapacityMiB"))*1024, 512)})
			}
		}
		if strings.HasPrefix(x.str("InstructionSet"), "ARM") || x.str("ProcessorArchitecture") == "ARM" {
			c.Arch = "aarch64"
		}
	}
	sum := s.sub("ProcessorSummary")
	c.Sockets = max(1, c.Sockets, sum.int("Count"))
	c.Model = or(c.Model, sum.str("Model"), "Unknown")
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
	c.Arch = or(c.Arch, "x86_64")
	c.Flags = slices.Clone(flags[c.Arch])
	for vendor, flag := range virtual {
		if strings.Contains(strings.ToLower(c.Vendor), vendor) {
			c.Flags = append(c.Flags, flag)
		}
	}
}

func (d *deriver) memory(p *machine.Profile, s page) {
	var all []page
	for _, at := range d.members(s, "Memory") {
		x := d.page(at)
		if x.absent() || x.int("CapacityMiB") <= 0 {
			continue
		}
		all = append(all, x)
		d.place(fmt.Sprintf("/redfish/v1/Systems/{system}/Memory/DIMM%d", len(all)), at)
		p.MemoryMiB += x.int("CapacityMiB")
	}
	if len(all) == 0 {
		p.MemoryMiB = int(s.num("MemorySummary/TotalSystemMemoryGiB") * 1024)
		if p.MemoryMiB <= 0 {
			p.MemoryMiB = 1024
			d.note("the BMC does not tell how much memory there is: it was taken to be 1 GiB")
		}
		return
	}
	x := all[0]
	if p.MemoryMiB != len(all)*x.int("CapacityMiB") {
		d.note("the memory modules differ: the model has %d equal ones", len(all))
		p.MemoryMiB = p.MemoryMiB / len(all) * len(all)
	}
	p.Memory = machine.Memory{
		Modules: len(all), MiB: p.MemoryMiB / len(all), Type: or(x.str("MemoryDeviceType"), "DDR4"), Form: or(x.str("BaseModuleType"), "RDIMM"),
		MHz: x.int("OperatingSpeedMhz"), Ranks: x.int("RankCount"), Vendor: x.str("Manufacturer"), PartNumber: x.str("PartNumber"),
	}
	if p.Memory.MHz == 0 {
		if speeds := list(x["AllowedSpeedsMHz"]); len(speeds) > 0 {
			n, _ := speeds[0].(float64)
			p.Memory.MHz = int(n)
		}
	}
}

// hexID is an ID of PCI as profiles have it.
func hexID(text string, digits int) string {
	text = strings.ToLower(strings.TrimSpace(text))
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSuffix(text, "h"), "0x"), 16, 32)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("0x%0*x", digits, n)
}

// pciAddress is the address of a function, which its page may tell.
func pciAddress(f page) string {
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

// functionsOf are the functions of the card at an address.
func (d *deriver) functionsOf(card string) []string {
	x := d.page(card)
	if at := d.members(x, "PCIeFunctions"); len(at) > 0 {
		return at
	}
	return x.refs("Links/PCIeFunctions")
}

// cardsAt are the addresses of all cards.
func (d *deriver) cardsAt() []string {
	if at := d.members(d.page(d.chassis), "PCIeDevices"); len(at) > 0 {
		return at
	}
	var out []string
	for _, at := range d.page(d.system).refs("PCIeDevices") {
		if d.page(at) != nil {
			out = append(out, at)
		}
	}
	return out
}

func (d *deriver) network(p *machine.Profile) {
	functions := map[string]page{} // of PCI, by the NIC
	for _, card := range d.cardsAt() {
		for _, at := range d.functionsOf(card) {
			for _, nic := range d.page(at).refs("Links/EthernetInterfaces") {
				functions[nic] = d.page(at)
			}
		}
	}
	seen := map[string]bool{}
	for _, at := range d.members(d.page(d.system), "EthernetInterfaces") {
		x := d.page(at)
		if x.absent() || seen[or(x.str("PermanentMACAddress"), x.str("MACAddress"), at)] {
			continue
		}
		seen[or(x.str("PermanentMACAddress"), x.str("MACAddress"), at)] = true
		i, id := len(p.NICs), last(at)
		d.nics[at] = id
		d.place("/redfish/v1/Systems/{system}/EthernetInterfaces/"+id, at)
		f := functions[at]
		n := machine.NICModel{
			ID: id, Name: fmt.Sprintf("eno%d", i+1), SpeedMbps: x.int("SpeedMbps"),
			PCIVendor: or(hexID(f.str("VendorId"), 4), "0x8086"), PCIDevice: or(hexID(f.str("DeviceId"), 4), "0x1592"),
			PCIAddress: or(pciAddress(f), fmt.Sprintf("0000:%02x:00.%d", 0x3b+i/8, i%8)),
		}
		for _, port := range x.refs("Links/Ports") {
			n.SpeedMbps = or(int(d.page(port).num("MaxSpeedGbps")*1000), n.SpeedMbps)
		}
		n.SpeedMbps = or(max(0, n.SpeedMbps), 10000)
		p.NICs = append(p.NICs, n)
	}
	if len(p.NICs) == 0 {
		d.ports(p)
	}
	if len(p.NICs) == 0 {
		d.note("the BMC shows no network ports of the system")
	}
}

// ports makes the ports of network cards whose system shows none: not every BMC
// is told of them.
func (d *deriver) ports(p *machine.Profile) {
	for _, card := range d.cardsAt() {
		for _, at := range d.functionsOf(card) {
			f := d.page(at)
			if f.str("DeviceClass") != "NetworkController" {
				continue
			}
			n := len(p.NICs)
			d.nics[at] = strconv.Itoa(n + 1)
			p.NICs = append(p.NICs, machine.NICModel{
				ID: strconv.Itoa(n + 1), Name: fmt.Sprintf("eno%d", n+1), SpeedMbps: 10000,
				PCIVendor: or(hexID(f.str("VendorId"), 4), "0x8086"), PCIDevice: or(hexID(f.str("DeviceId"), 4), "0x1592"),
				PCIAddress: or(pciAddress(f), fmt.Sprintf("0000:%02x:00.%d", 0x3b+n/8, n%8)),
			})
		}
	}
}

var classes = []string{
	"MassStorageController", "NetworkController", "DisplayController", "Bridge", "SerialBusController", "EncryptionController",
	"ProcessingAccelerators", "Other",
}

func (d *deriver) pcie(p *machine.Profile) {
	owned := map[string]bool{}
	for _, at := range d.cardsAt() {
		x := d.page(at)
		c := machine.Card{
			ID: last(at), Class: "Other", ClassCode: "0xff0000", Vendor: x.str("Manufacturer"), Product: or(x.str("Model"), x.str("Name")), PartNumber: x.str("PartNumber"),
			Gen: gen(or(x.str("PCIeInterface/MaxPCIeType"), x.str("PCIeInterface/PCIeType"))), Lanes: or(x.int("PCIeInterface/MaxLanes"), x.int("PCIeInterface/LanesInUse"), 1),
			Slot: x.str("Slot/Location/PartLocation/ServiceLabel"), SlotType: x.str("Slot/SlotType"),
		}
		c.Lanes = min(max(c.Lanes, 1), 32)
		all := d.functionsOf(at)
		for i, function := range all {
			f := d.page(function)
			if i == 0 {
				if k := f.str("DeviceClass"); slices.Contains(classes, k) {
					c.Class = k
				}
				c.ClassCode = or(hexID(f.str("ClassCode"), 6), c.ClassCode)
				c.PCIVendor, c.PCIDevice, c.PCIAddress = or(hexID(f.str("VendorId"), 4), "0x8086"), or(hexID(f.str("DeviceId"), 4), "0x0000"), pciAddress(f)
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
		c.PCIAddress = or(c.PCIAddress, fmt.Sprintf("0000:%02x:00.0", 0x80+len(p.Cards)))
		if len(c.NICs) > 0 {
			c.PCIVendor, c.PCIDevice, c.PCIAddress = "", "", "" // those of the ports
		} else {
			if c.Storage = d.controllerOn(p, all); c.Storage != "" && x.str("FirmwareVersion") != "" {
				c.Component = "Storage." + c.Storage
			}
		}
		d.cards[at] = c.ID
		d.place("/redfish/v1/Chassis/{chassis}/PCIeDevices/"+c.ID, at)
		p.Cards = append(p.Cards, c)
	}
}

// controllerOn is the ID of the storage whose controller is one of these
// functions.
func (d *deriver) controllerOn(p *machine.Profile, functions []string) string {
	for _, s := range p.Storage {
		at := d.places["/redfish/v1/Systems/{system}/Storage/"+s.ID]
		for _, f := range functions {
			for _, of := range d.page(f).refs("Links/StorageControllers") {
				if of, _, _ := strings.Cut(of, "#"); under(strings.TrimRight(of, "/"), at) {
					return s.ID
				}
			}
		}
		for _, c := range d.members(d.page(at), "Controllers") {
			for _, f := range d.page(c).refs("Links/PCIeFunctions") {
				if slices.Contains(functions, f) {
					return s.ID
				}
			}
		}
	}
	return ""
}

func gen(text string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "Gen"))
	if err != nil {
		return 3
	}
	return min(max(n, 1), 6)
}

func (d *deriver) bootOrder(p *machine.Profile, s page) {
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
