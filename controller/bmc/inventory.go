package bmc

import "context"

// Inventory is the hardware of a system as its BMC shows it, without the help of an
// agent. A field that the BMC does not show is zero: a list that is empty but not nil
// says that the system has none.
type Inventory struct {
	System     System
	Hostname   string // host name of the operating system, if that has set it at the BMC
	Processors Processors
	MemoryMiB  int
	NICs       []NIC
	Disks      []Disk
}

// Processors describes the processors of a system.
type Processors struct {
	Arch    string // as uname -m prints it
	Model   string
	MHz     int // without turbo
	Threads int // sum over all processors
}

// NIC is a network interface of a system.
type NIC struct {
	Name      string // the BMC's ID
	MAC       string // lower case, colons
	IPs       []string
	SpeedMbps int // 0 without a link
}

// Disk is a device that an operating system can use: a volume, or a drive that
// belongs to none.
type Disk struct {
	Name       string
	Vendor     string
	Model      string
	Serial     string
	WWN        string // as the operating system shows it; "" if unknown
	Protocol   string // SATA, SAS, NVMe; "" for a volume
	Rotational bool
	Bytes      int64
}

// Inspector is a Client that reads the hardware of a system without an agent. Its
// method returns an UnsupportedError if the BMC cannot.
type Inspector interface {
	Inventory(ctx context.Context) (Inventory, error)
}

var _ Inspector = (*pooled)(nil)

// Inventory implements Inspector.
func (c *pooled) Inventory(ctx context.Context) (i Inventory, err error) {
	in, ok := c.client.(Inspector)
	if !ok {
		return i, &UnsupportedError{Verb: "Inventory", Why: "its driver reads no hardware"}
	}
	err = c.call(func() error { i, err = in.Inventory(ctx); return err })
	return i, err
}

// Disks returns the devices of a system's storage that an operating system can use. It
// returns nil if the BMC lists no drives for any controller, and an empty list if its lists
// are empty.
func (s Storage) Disks() []Disk {
	var out []Disk
	for _, c := range s.Controllers {
		if c.Drives != nil && out == nil {
			out = []Disk{}
		}
		drives, used, single := map[string]Drive{}, map[string]bool{}, map[string]bool{}
		for _, d := range c.Drives {
			drives[d.ID] = d
		}
		for _, v := range c.Volumes {
			if v.Level == "" && len(v.Drives) == 1 { // the drive itself, which some services list as a volume
				single[v.Drives[0]] = true
				continue
			}
			disk := Disk{Name: v.Name, WWN: v.WWN, Bytes: v.Bytes}
			for _, id := range v.Drives {
				used[id] = true
				disk.Rotational = disk.Rotational || drives[id].Rotational
			}
			out = append(out, disk)
		}
		for _, d := range c.Drives {
			if used[d.ID] || d.Used && !single[d.ID] || d.Spare || d.Absent {
				continue
			}
			out = append(out, Disk{
				Name: d.Name, Vendor: d.Vendor, Model: d.Model, Serial: d.Serial, WWN: d.WWN,
				Protocol: d.Protocol, Rotational: d.Rotational, Bytes: d.Bytes,
			})
		}
	}
	return out
}
