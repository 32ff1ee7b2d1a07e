package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ParseProfile reads a server model from YAML. Its errors name each field that
// is wrong and what it must be.
func ParseProfile(b []byte) (*Profile, error) {
	var doc any
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("machine: profile: %w", err)
	}
	// By way of JSON, whose names the fields have.
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("machine: profile: %w", err)
	}
	p := new(Profile)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("machine: profile: %w", err)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

var (
	pciID      = regexp.MustCompile(`^0x[0-9a-f]{4}$`)
	pciAddress = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

// maxPorts and maxDrives are what identities have room for: one byte each.
const maxPorts, maxDrives = 256, 256

// Validate says what is missing or wrong in a profile.
func (p *Profile) Validate() error {
	var errs []error
	need := func(ok bool, field, must string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("machine: profile %s: %s: must %s", p.Name, fmt.Sprintf(field, args...), must))
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
	}
	clear(seen)
	drives := 0
	for i, s := range p.Storage {
		need(s.ID != "" && !seen[s.ID], "storage[%d].id", "be there, and differ from the others", i)
		seen[s.ID] = true
		drives += len(s.Bays)
		for j, d := range s.Bays {
			need(d.BlockSize == 512 || d.BlockSize == 4096, "storage[%d].bays[%d].blockSize", "be 512 or 4096", i, j)
			need(d.Capacity > 0 && d.BlockSize > 0 && d.Capacity%int64(d.BlockSize) == 0, "storage[%d].bays[%d].capacity", "be whole blocks", i, j)
			need(d.Protocol.Known(), "storage[%d].bays[%d].protocol", "be SATA, SAS or NVMe", i, j)
			need(d.Media.Known(), "storage[%d].bays[%d].media", "be HDD or SSD", i, j)
		}
	}
	need(drives <= maxDrives, "storage", "have at most 256 bays")
	for i, k := range p.BootOrder {
		need(slices.Contains(SourceKinds, k) && k != None && k != BiosSetup, "bootOrder[%d]", "be Hdd, Pxe or Cd", i)
	}
	p.checkFirmware(need)
	return errors.Join(errs...)
}
