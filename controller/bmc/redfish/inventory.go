package redfish

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// processorResource holds the properties that the driver reads of a Processor.
type processorResource struct {
	Type         string `json:"ProcessorType"`
	Architecture string `json:"ProcessorArchitecture"`
	Instructions string `json:"InstructionSet"`
	Model        string `json:"Model"`
	Version      string `json:"Version"`
	BaseMHz      int    `json:"BaseSpeedMHz"`
	NowMHz       int    `json:"OperatingSpeedMHz"`
	MaxMHz       int    `json:"MaxSpeedMHz"`
	Threads      int    `json:"TotalThreads"`
	Status       struct {
		State string `json:"State"`
	} `json:"Status"`
}

// architectures maps Processor.InstructionSet and, for services that lack it,
// ProcessorArchitecture to the names of uname -m.
var architectures = map[string]string{
	"x86-64": "x86_64", "x86": "x86_64", "ARM-A64": "aarch64", "ARM": "aarch64", "PowerISA": "ppc64le", "Power": "ppc64le",
}

// ethernetInterface holds the properties that the driver reads of an
// EthernetInterface.
type ethernetInterface struct {
	ID        string `json:"Id"`
	MAC       string `json:"MACAddress"`
	Permanent string `json:"PermanentMACAddress"`
	Mbps      int    `json:"SpeedMbps"`
	Link      string `json:"LinkStatus"`
	IPv4      []struct {
		Address string `json:"Address"`
	} `json:"IPv4Addresses"`
	IPv6 []struct {
		Address string `json:"Address"`
		Origin  string `json:"AddressOrigin"`
	} `json:"IPv6Addresses"`
}

// Inventory implements bmc.Inspector. The lists of collections that the service does not
// have are nil.
func (c *client) Inventory(ctx context.Context) (bmc.Inventory, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return bmc.Inventory{}, err
	}
	out := bmc.Inventory{
		System: bmc.System{
			ID: s.uri, UUID: s.UUID, Manufacturer: s.Manufacturer, Model: s.Model, Serial: s.Serial, BIOSVersion: s.BIOS,
		},
		Hostname:   s.HostName,
		Processors: bmc.Processors{Model: s.Processors.Model, Threads: s.Processors.Logical},
		MemoryMiB:  int(math.Round(s.Memory.GiB * 1024)),
	}
	if err := c.readProcessors(ctx, s, &out.Processors); err != nil {
		return bmc.Inventory{}, err
	}
	nics, err := readMembers(ctx, c, s.Interfaces.ID, c.nic)
	if err != nil && !isNotFound(err) {
		return bmc.Inventory{}, err
	}
	if nics != nil && len(nics) == 0 {
		out.NICs = []bmc.NIC{}
	}
	for _, n := range nics {
		if n.MAC != "" {
			out.NICs = append(out.NICs, n)
		}
	}
	store, err := c.Storage(ctx)
	if err != nil && !errors.Is(err, bmc.ErrUnsupported) && !isNotFound(err) {
		return bmc.Inventory{}, err
	}
	out.Disks = store.Disks()
	return out, nil
}

// readProcessors completes the summary of the system with the processors.
func (c *client) readProcessors(ctx context.Context, s computerSystem, out *bmc.Processors) error {
	all, err := readMembers(ctx, c, s.ProcessorList.ID, func(ctx context.Context, uri string) (p processorResource, err error) {
		_, err = c.get(ctx, uri, &p)
		return p, err
	})
	if err != nil && !isNotFound(err) {
		return err
	}
	threads := 0
	for _, p := range all {
		if p.Type != "" && p.Type != string(schemas.CPUProcessorType) || schemas.State(p.Status.State) == schemas.AbsentState {
			continue
		}
		threads += p.Threads
		out.Model = cmp.Or(out.Model, p.Model, p.Version)
		out.MHz = cmp.Or(out.MHz, p.BaseMHz, p.NowMHz, p.MaxMHz)
		out.Arch = cmp.Or(out.Arch, architectures[p.Instructions], architectures[p.Architecture])
	}
	out.Threads = cmp.Or(out.Threads, threads)
	return nil
}

func (c *client) nic(ctx context.Context, uri string) (bmc.NIC, error) {
	var e ethernetInterface
	if _, err := c.get(ctx, uri, &e); err != nil {
		return bmc.NIC{}, err
	}
	out := bmc.NIC{Name: e.ID, MAC: strings.ReplaceAll(strings.ToLower(cmp.Or(e.MAC, e.Permanent)), "-", ":")}
	if e.Link == "" || e.Link == string(schemas.LinkUpLinkStatus) {
		out.SpeedMbps = e.Mbps
	}
	for _, a := range e.IPv4 {
		if a.Address != "" && a.Address != "0.0.0.0" {
			out.IPs = append(out.IPs, a.Address)
		}
	}
	for _, a := range e.IPv6 {
		if a.Address != "" && a.Address != "::" && a.Origin != string(schemas.LinkLocalIPv6AddressOrigin) {
			out.IPs = append(out.IPs, a.Address)
		}
	}
	return out, nil
}
