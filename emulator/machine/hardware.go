package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Processors describes a server's processors, which are all alike.
type Processors struct {
	Sockets   int      `json:"sockets"`   // number of processors
	Cores     int      `json:"cores"`     // per socket
	Threads   int      `json:"threads"`   // per socket
	Vendor    string   `json:"vendor"`    // as /proc/cpuinfo has it: "GenuineIntel"
	Model     string   `json:"model"`     // as /proc/cpuinfo has it
	MHz       int      `json:"mhz"`       // base frequency
	TurboMHz  int      `json:"turboMHz"`  // maximum turbo frequency
	Watts     int      `json:"watts"`     // thermal design power, per socket
	Family    string   `json:"family"`    // CPUID: "6"
	CPUModel  string   `json:"cpuModel"`  // CPUID: "143"
	Stepping  string   `json:"stepping"`  // CPUID: "8"
	Signature string   `json:"signature"` // CPUID 1.EAX: "0x000806f8"
	Microcode string   `json:"microcode"` // revision of the microcode: "0x0d0003e7"
	Caches    []Cache  `json:"caches"`
	Arch      string   `json:"arch"`  // as uname -m prints it
	Flags     []string `json:"flags"` // as /proc/cpuinfo spells them
}

// Cache is one level of a processor's cache.
type Cache struct {
	Level int `json:"level"` // 1, 2 or 3
	KiB   int `json:"kib"`   // per socket
}

// Memory describes a server's memory modules, which are all alike.
type Memory struct {
	Modules    int    `json:"modules"`    // number of modules
	MiB        int    `json:"mib"`        // size of each module, in MiB
	Type       string `json:"type"`       // DDR5
	Form       string `json:"form"`       // RDIMM
	MHz        int    `json:"mhz"`        // operating speed
	Ranks      int    `json:"ranks"`      // ranks of each module
	Vendor     string `json:"vendor"`     // manufacturer of the modules
	PartNumber string `json:"partNumber"` // part number of the modules
}

// Card is a PCI Express device. A card with NICs has one function per NIC, any
// other card one function.
type Card struct {
	ID         string   `json:"id"`         // unique within the server
	Class      string   `json:"class"`      // as Redfish spells it (DSP2046, PCIeFunction.DeviceClass)
	ClassCode  string   `json:"classCode"`  // PCI class code: "0x020000"
	Vendor     string   `json:"vendor"`     // manufacturer
	Product    string   `json:"product"`    // model name
	PartNumber string   `json:"partNumber"` // the manufacturer's part number
	Component  string   `json:"component"`  // ID of its firmware component; "" when it cannot be updated
	Gen        int      `json:"gen"`        // PCI Express generation
	Lanes      int      `json:"lanes"`      // PCI Express lanes
	Slot       string   `json:"slot"`       // slot label
	SlotType   string   `json:"slotType"`   // as Redfish spells it; "" when it is on the board
	PCIVendor  string   `json:"pciVendor"`  // PCI vendor ID: "0x8086"
	PCIDevice  string   `json:"pciDevice"`  // PCI device ID
	PCIAddress string   `json:"pciAddress"` // PCI address of function 0
	NICs       []string `json:"nics"`       // IDs of its ports
	Storage    string   `json:"storage"`    // ID of the storage controller that it is
}

// NICModel is a network port of a server model.
type NICModel struct {
	ID         string `json:"id"`         // ID of the Redfish resource: "1"
	Name       string `json:"name"`       // Linux interface name: "eno1"
	PCIVendor  string `json:"pciVendor"`  // PCI vendor ID: "0x8086"
	PCIDevice  string `json:"pciDevice"`  // PCI device ID
	PCIAddress string `json:"pciAddress"` // 0000:3b:00.0
	SpeedMbps  int    `json:"speedMbps"`  // link speed
	// Switch is the switch port that the NIC is cabled to, as LLDP describes
	// it; nil: a neighbour without LLDP.
	Switch *SwitchPort `json:"switch,omitempty"`
}

// SwitchPort is the configuration of a switch port.
type SwitchPort struct {
	Name  string `json:"name"`            // name of the switch
	VLAN  int    `json:"vlan,omitempty"`  // untagged
	VLANs []VLAN `json:"vlans,omitempty"` // tagged
}

// VLAN is a virtual LAN of a switch.
type VLAN struct {
	ID   int    `json:"id"`             // 1 to 4094
	Name string `json:"name,omitempty"` // as LLDP has it
}

const (
	maxVLAN     = 4094 // IEEE 802.1Q, §9.6
	maxVLANName = 32   // bytes (IEEE 802.1Q, annex D.2.3)
	maxName     = 255  // bytes of a switch's name (IEEE 802.1AB, §8.5.6)
)

// check reports errors of a switch port.
func (p *SwitchPort) check(need func(ok bool, field, must string)) {
	need(p.Name != "" && len(p.Name) <= maxName, "name", "have 1 to 255 bytes")
	need(p.VLAN >= 0 && p.VLAN <= maxVLAN, "vlan", "be 1 to 4094, or absent")
	need(len(p.VLANs) <= 32, "vlans", "be at most 32")
	for _, v := range p.VLANs {
		need(v.ID >= 1 && v.ID <= maxVLAN && len(v.Name) <= maxVLANName, "vlans", "have ids from 1 to 4094 and names of at most 32 bytes")
	}
}

// TPMModel is a trusted platform module.
type TPMModel struct {
	Vendor    string `json:"vendor"`    // manufacturer
	Product   string `json:"product"`   // model name
	Component string `json:"component"` // ID of its firmware component
	VendorID  string `json:"vendorID"`  // in its capabilities (TPM 2.0, TPM_PT_MANUFACTURER): "IFX"
	PCIID     string `json:"pciID"`     // ID of its interface (TCG PC Client, TPM_DID_VID): "0x15d1"
}

// PCIFunction is one PCI function of a card.
type PCIFunction struct {
	ID, PCIVendor, PCIDevice, PCIAddress string
	NIC                                  string // ID of its NIC; "" when it has none
}

// Functions returns the PCI functions of a card, in order.
func (p *Profile) Functions(c Card) []PCIFunction {
	if len(c.NICs) == 0 {
		return []PCIFunction{{ID: "0", PCIVendor: c.PCIVendor, PCIDevice: c.PCIDevice, PCIAddress: c.PCIAddress}}
	}
	var out []PCIFunction
	for _, id := range c.NICs {
		for _, n := range p.NICs {
			if n.ID == id {
				out = append(out, PCIFunction{fmt.Sprint(len(out)), n.PCIVendor, n.PCIDevice, n.PCIAddress, id})
			}
		}
	}
	return out
}

// CardOf returns the card of a NIC; false when the profile names none.
func (p *Profile) CardOf(nic string) (Card, bool) {
	i := slices.IndexFunc(p.Cards, func(c Card) bool { return slices.Contains(c.NICs, nic) })
	if i < 0 {
		return Card{}, false
	}
	return p.Cards[i], true
}

// Cabling lists the network ports without link. All others have one.
type Cabling struct {
	Down []string `json:"down"` // IDs of NICs, sorted
}

var allCabled = new(Cabling)

// Linked reports whether a NIC has a link.
func (c *Cabling) Linked(nic string) bool { return !slices.Contains(c.Down, nic) }

func (m *Machine) cabling() *Cabling {
	if m.st.Cabling == nil {
		return allCabled
	}
	return m.st.Cabling
}

// SetLink unplugs the cable of a NIC, or plugs it in.
type SetLink struct {
	NIC string
	Up  bool
}

func (c SetLink) apply(m *Machine, now time.Time) ([]Event, error) {
	if !slices.ContainsFunc(m.identity.NICs, func(n NIC) bool { return n.ID == c.NIC }) {
		return nil, fmt.Errorf("NIC %q: %w", c.NIC, ErrUnknown)
	}
	if m.cabling().Linked(c.NIC) == c.Up {
		return nil, nil
	}
	down := slices.DeleteFunc(slices.Clone(m.cabling().Down), func(id string) bool { return id == c.NIC })
	kind := event.LinkUp
	if !c.Up {
		kind = event.LinkDown
		down = append(down, c.NIC)
		slices.Sort(down)
	}
	m.st.Cabling = &Cabling{Down: down}
	card, _ := m.profile.CardOf(c.NIC)
	return []Event{event.Note{At: now, Kind: kind, Subject: event.Subject{Part: event.NIC, ID: c.NIC}, Args: []string{c.NIC, card.ID}}}, nil
}
