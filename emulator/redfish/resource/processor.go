package resource

import (
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func processorRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/Processors", Schema: "ProcessorCollection", collectionName: "Processors", memberVariable: "processor"},
		{URI: "/redfish/v1/Systems/{system}/Processors/{processor}", Schema: "Processor.v1_22_0", DependsOn: partIdentity | partFirmware,
			Read: processor},
		{URI: "/redfish/v1/Systems/{system}/Memory", Schema: "MemoryCollection", collectionName: "Memory", memberVariable: "dimm"},
		{URI: "/redfish/v1/Systems/{system}/Memory/{dimm}", Schema: "Memory.v1_23_0", DependsOn: partIdentity,
			Read: dimm},
	}
}

// cpuIDs returns the IDs of the processors.
func cpuIDs(p *machine.Profile) []string { return numberedIDs("CPU", p.Processors.Sockets) }

// dimmIDs returns the IDs of the memory modules.
func dimmIDs(p *machine.Profile) []string { return numberedIDs("DIMM", p.Memory.Modules) }

// numberedIDs returns n IDs: the prefix and a number from 1 on.
func numberedIDs(prefix string, n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i+1))
	}
	return out
}

// ordinal returns the index, from 0, of an ID that numberedIDs made; 0 for any other ID.
func ordinal(prefix, id string) int {
	var n int
	if _, err := fmt.Sscan(strings.TrimPrefix(id, prefix), &n); err != nil {
		return 0
	}
	return n - 1
}

// architectures maps an architecture as uname prints it to Processor.ProcessorArchitecture
// and Processor.InstructionSet.
var architectures = map[string][2]string{"x86_64": {"x86", "x86-64"}, "aarch64": {"ARM", "ARM-A64"}}

// processors returns ComputerSystem.ProcessorSummary.
func processors(p machine.Processors) Object {
	return Object{
		"Count": p.Sockets, "CoreCount": p.Sockets * p.Cores, "LogicalProcessorCount": p.Sockets * p.Threads,
		"Model": p.Model, "ThreadingEnabled": p.Threads > p.Cores, "Status": rolledUp("Enabled"),
	}
}

// memorySummary returns ComputerSystem.MemorySummary.
func memorySummary(p *machine.Profile) Object {
	return Object{
		"TotalSystemMemoryGiB": float64(p.MemoryMiB) / 1024, "TotalSystemPersistentMemoryGiB": 0, "MemoryMirroring": "None",
		"Status": rolledUp("Enabled"),
	}
}

func processor(v View) Object {
	p, on, id := v.Machine.Profile.Processors, v.Machine.Processors(), v.IDs["processor"]
	n := ordinal("CPU", id)
	o := Object{
		"Name": "Processor " + id, "ProcessorType": "CPU", "Socket": id, "ProcessorIndex": n,
		"Manufacturer": p.Vendor, "Model": p.Model, "Version": p.Model, "SerialNumber": v.Machine.Identity.SerialOf("cpu", n),
		"BaseSpeedMHz": p.MHz, "OperatingSpeedMHz": p.MHz, "MaxSpeedMHz": max(p.MHz, p.TurboMHz),
		"TotalCores": p.Cores, "TotalEnabledCores": on.Cores, "TotalThreads": p.Threads, "TotalEnabledThreads": on.Threads,
		"ProcessorId": Object{
			"VendorId": p.Vendor, "EffectiveFamily": orNull(p.Family), "EffectiveModel": orNull(p.CPUModel), "Step": orNull(p.Stepping),
			"IdentificationRegisters": orNull(p.Signature), "MicrocodeInfo": orNull(p.Microcode),
		},
		"Status": status("Enabled"), "PartNumber": nil, "Replaceable": true,
		"Location": partLocation(id, "Socket", n),
		"Links":    Object{"Chassis": Ref(v.chassis())},
	}
	if a, ok := architectures[p.Arch]; ok {
		o["ProcessorArchitecture"], o["InstructionSet"] = a[0], a[1]
	}
	if p.TurboMHz > p.MHz {
		o["TurboState"] = "Enabled"
	}
	if p.Watts > 0 {
		o["TDPWatts"], o["MaxTDPWatts"] = p.Watts, p.Watts
	}
	if p.Family != "" {
		o["Family"] = p.Family
	}
	caches := []Object{}
	for _, c := range p.Caches {
		caches = append(caches, Object{
			"CapacityMiB": c.KiB / 1024, "IntegratedMemory": true, "MemoryType": fmt.Sprintf("L%dCache", c.Level),
		})
	}
	o["ProcessorMemory"] = caches
	return o
}

// partLocation returns a Resource.Location with the label beside a part.
func partLocation(text, kind string, ordinal int) Object {
	return Object{"PartLocation": Object{"ServiceLabel": text, "LocationType": kind, "LocationOrdinalValue": ordinal}}
}

// dimmsPerSocket returns how many memory modules a processor has.
func dimmsPerSocket(p *machine.Profile) int {
	return max(1, (p.Memory.Modules+p.Processors.Sockets-1)/p.Processors.Sockets)
}

// dimmSocket returns the index, from 0, of the processor of a memory module.
func dimmSocket(p *machine.Profile, id string) int { return ordinal("DIMM", id) / dimmsPerSocket(p) }

func dimm(v View) Object {
	p, m, id := v.Machine.Profile, v.Machine.Profile.Memory, v.IDs["dimm"]
	n := ordinal("DIMM", id)
	socket, channel := dimmSocket(p, id), n%dimmsPerSocket(p)
	name := fmt.Sprintf("P%d-DIMM%c1", socket, 'A'+channel%26)
	return Object{
		"Name": "Memory module " + name, "DeviceLocator": name, "MemoryType": "DRAM", "MemoryDeviceType": m.Type, "BaseModuleType": m.Form,
		"MemoryMedia": []string{"DRAM"}, "OperatingMemoryModes": []string{"Volatile"}, "ErrorCorrection": "MultiBitECC",
		"CapacityMiB": m.MiB, "VolatileSizeMiB": m.MiB, "NonVolatileSizeMiB": 0, "DataWidthBits": 64, "BusWidthBits": 80, "RankCount": m.Ranks,
		"AllowedSpeedsMHz": []int{m.MHz}, "OperatingSpeedMhz": m.MHz,
		"Manufacturer": m.Vendor, "PartNumber": m.PartNumber, "SerialNumber": v.Machine.Identity.SerialOf("dimm", n),
		"MemoryLocation": Object{"Socket": socket, "MemoryController": channel / 2, "Channel": channel, "Slot": 0},
		"Location":       partLocation(name, "Slot", n), "Status": status("Enabled"), "Enabled": true,
		"Links": Object{
			"Chassis": Ref(v.chassis()), "Processors": refs(v.system("Processors", fmt.Sprint("CPU", socket+1))), "Processors@odata.count": 1,
		},
	}
}
