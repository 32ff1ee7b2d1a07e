package machine

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// ParseProfile reads a server model from YAML. file stands in messages; the error
// joins a yamlfile.Error for each mistake.
func ParseProfile(file string, b []byte) (*Profile, error) {
	f, err := yamlfile.Read(file, b, "name: NAME")
	if err != nil {
		return nil, err
	}
	p := new(Profile)
	if err := f.Decode(p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, f.Locate(err)
	}
	p.Thermal.Complete(p.Processors.Sockets)
	p.defaultTelemetry()
	return p, nil
}

var (
	pciID      = regexp.MustCompile(`^0x[0-9a-f]{4}$`)
	pciAddress = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

// maxPorts and maxDrives are bounded by the identities, which have one byte for each
// of them.
const maxPorts, maxDrives = 256, 256

// Validate checks a profile. The error joins a yamlfile.Error for each mistake.
func (p *Profile) Validate() error {
	var errs []error
	need := func(ok bool, field, must string, args ...any) {
		if !ok {
			errs = append(errs, yamlfile.Errorf(fmt.Sprintf(field, args...), "must %s", must))
		}
	}
	need(p.Name != "", "name", "not be empty")
	need(p.Dialect != "", "dialect", "not be empty")
	need(p.Manufacturer != "", "manufacturer", "not be empty")
	need(p.Model != "", "model", "not be empty")
	need(p.MemoryMiB > 0, "memoryMiB", "be positive")
	c := p.Processors
	need(c.Sockets > 0 && c.Cores > 0 && c.Threads >= c.Cores, "processors", "have sockets, cores, and at least as many threads")
	need(len(p.NICs) <= maxPorts, "nics", "be at most 256")
	seen := map[string]bool{}
	for i, n := range p.NICs {
		need(n.ID != "" && !seen[n.ID], "nics[%d].id", "be there, and differ from the others", i)
		seen[n.ID] = true
		need(n.Name != "", "nics[%d].name", "not be empty", i)
		need(pciID.MatchString(n.PCIVendor), "nics[%d].pciVendor", "be like 0x8086", i)
		need(pciID.MatchString(n.PCIDevice), "nics[%d].pciDevice", "be like 0x1592", i)
		need(pciAddress.MatchString(n.PCIAddress), "nics[%d].pciAddress", "be like 0000:3b:00.0", i)
		need(n.SpeedMbps >= 0, "nics[%d].speedMbps", "not be negative", i)
		if n.Switch != nil {
			n.Switch.check(func(ok bool, field, must string) { need(ok, "nics[%d].switch."+field, must, i) })
		}
	}
	drives := 0
	clear(seen)
	for i, s := range p.Storage {
		need(s.ID != "" && !seen[s.ID], "storage[%d].id", "be there, and differ from the others", i)
		seen[s.ID] = true
		drives += len(s.Bays)
		for _, f := range s.Flaws() {
			need(false, "storage[%d]."+f.Field, f.Must, i)
		}
	}
	p.validateParts(need)
	p.checkSecureBoot(need)
	p.Thermal.Check(func(field, must string) { need(false, "thermal."+field, must) })
	need(drives <= maxDrives, "storage", "have at most 256 bays")
	for i, k := range p.BootOrder {
		need(targets[k].device, "bootOrder[%d]", "be a kind of device, such as Hdd, Pxe, Cd, Usb or UefiHttp", i)
	}
	for i, k := range p.OS.ForcedAfterTimeout {
		need(forcedReset[k] != "", "os.forces[%d]", "be GracefulShutdown or GracefulRestart", i)
	}
	p.checkFirmware(need)
	return errors.Join(errs...)
}

// validateParts checks processors, memory and cards.
func (p *Profile) validateParts(need func(ok bool, field, must string, args ...any)) {
	if mem := p.Memory; mem != (Memory{}) {
		need(mem.Modules > 0 && mem.Modules*mem.MiB == p.MemoryMiB, "memory", "have modules whose mib add up to memoryMiB")
		need(mem.Type != "" && mem.Form != "", "memory", "have a type, such as DDR5, and a form, such as RDIMM")
		need(mem.MHz >= 0 && mem.Ranks >= 0, "memory", "have no negative mhz or ranks")
	}
	c := p.Processors
	need(c.TurboMHz == 0 || c.TurboMHz >= c.MHz, "processors.turboMHz", "be no less than mhz")
	need(c.Watts >= 0, "processors.watts", "not be negative")
	for i, cache := range c.Caches {
		need(cache.Level >= 1 && cache.Level <= 4 && cache.KiB > 0, "processors.caches[%d]", "have a level of 1 to 4 and a positive kib", i)
	}
	ids, nics, controllers := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range p.NICs {
		nics[n.ID] = true
	}
	for _, s := range p.Storage {
		controllers[s.ID] = true
	}
	for i, card := range p.Cards {
		need(card.ID != "" && !ids[card.ID], "cards[%d].id", "be there, and differ from the others", i)
		ids[card.ID] = true
		need(deviceClasses[card.Class], "cards[%d].class", "be one of Redfish's device classes, such as NetworkController", i)
		need(classCode.MatchString(card.ClassCode), "cards[%d].classCode", "be like 0x020000", i)
		need(card.Gen >= 1 && card.Gen <= 6, "cards[%d].gen", "be 1 to 6", i)
		need(card.Lanes > 0 && card.Lanes <= 32, "cards[%d].lanes", "be 1 to 32", i)
		for j, id := range card.NICs {
			need(nics[id], "cards[%d].nics[%d]", "be one of nics, which no other card has", i, j)
			delete(nics, id)
		}
		if len(card.NICs) > 0 {
			need(card.Storage == "", "cards[%d].storage", "not be there on a card with nics", i)
			continue
		}
		need(pciID.MatchString(card.PCIVendor) && pciID.MatchString(card.PCIDevice), "cards[%d].pciVendor and pciDevice", "be like 0x8086", i)
		need(pciAddress.MatchString(card.PCIAddress), "cards[%d].pciAddress", "be like 0000:3b:00.0", i)
		if card.Storage != "" {
			need(controllers[card.Storage], "cards[%d].storage", "be one of storage, which no other card is", i)
			delete(controllers, card.Storage)
		}
	}
	if t := p.TPM; t != nil {
		need(t.Vendor != "" && t.Product != "", "tpm", "have a vendor and a product")
		need(t.PCIID == "" || pciID.MatchString(t.PCIID), "tpm.pciID", "be like 0x15d1")
	}
}

var classCode = regexp.MustCompile(`^0x[0-9a-f]{6}$`)

// deviceClasses are the values of PCIeFunction.DeviceClass (DSP2046) that cards of
// servers have.
var deviceClasses = map[string]bool{
	"MassStorageController": true, "NetworkController": true, "DisplayController": true, "Bridge": true,
	"SerialBusController": true, "EncryptionController": true, "ProcessingAccelerators": true, "Other": true,
}
