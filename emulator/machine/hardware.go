package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Processors describes a server's equal processors.
type Processors struct {
	Sockets   int      `json:"sockets"`
	Cores     int      `json:"cores"`   // per socket
	Threads   int      `json:"threads"` // per socket
	Vendor    string   `json:"vendor"`
	Model     string   `json:"model"`
	MHz       int      `json:"mhz"`
	TurboMHz  int      `json:"turboMHz"`  // at most
	Watts     int      `json:"watts"`     // thermal design power, per socket
	Family    string   `json:"family"`    // CPUID: "6"
	CPUModel  string   `json:"cpuModel"`  // CPUID: "143"
	Stepping  string   `json:"stepping"`  // CPUID: "8"
	Signature string   `json:"signature"` // CPUID 1.EAX: "0x000806f8"
	Microcode string   `json:"microcode"`
	Caches    []Cache  `json:"caches"`
	Arch      string   `json:"arch"`  // as uname -m says
	Flags     []string `json:"flags"` // as /proc/cpuinfo spells them
}

// Cache is one level of a processor's cache.
type Cache struct {
	Level int `json:"level"`
	KiB   int `json:"kib"` // per socket
}

// Memory describes a server's equal memory modules.
type Memory struct {
	Modules    int    `json:"modules"`
	MiB        int    `json:"mib"`  // of each
	Type       string `json:"type"` // DDR5
	Form       string `json:"form"` // RDIMM
	MHz        int    `json:"mhz"`
	Ranks      int    `json:"ranks"`
	Vendor     string `json:"vendor"`
	PartNumber string `json:"partNumber"`
}

// Card is a PCI Express device. One with NICs has a function for each of them,
// any other has one.
type Card struct {
	ID         string   `json:"id"`    // unique in the server
	Class      string   `json:"class"` // as Redfish spells it (DSP2046, PCIeFunction.DeviceClass)
	ClassCode  string   `json:"classCode"`
	Vendor     string   `json:"vendor"`
	Product    string   `json:"product"`
	PartNumber string   `json:"partNumber"`
	Component  string   `json:"component"` // of firmware that it runs; "" when no update reaches it
	Gen        int      `json:"gen"`       // of PCI Express
	Lanes      int      `json:"lanes"`
	Slot       string   `json:"slot"`     // as its label says
	SlotType   string   `json:"slotType"` // as Redfish spells it; "" when it is on the board
	PCIVendor  string   `json:"pciVendor"`
	PCIDevice  string   `json:"pciDevice"`
	PCIAddress string   `json:"pciAddress"` // of its first function
	NICs       []string `json:"nics"`       // IDs of the ports that it has
	Storage    string   `json:"storage"`    // ID of the controller that it is
}

// NICModel is one network port of a model.
type NICModel struct {
	ID         string `json:"id"`   // of the Redfish resource: "1"
	Name       string `json:"name"` // as Linux names it: "eno1"
	PCIVendor  string `json:"pciVendor"`
	PCIDevice  string `json:"pciDevice"`
	PCIAddress string `json:"pciAddress"` // 0000:3b:00.0
	SpeedMbps  int    `json:"speedMbps"`
}

// TPMModel is a trusted platform module.
type TPMModel struct {
	Vendor    string `json:"vendor"`
	Product   string `json:"product"`
	Component string `json:"component"` // of firmware that it runs
	VendorID  string `json:"vendorID"`  // in its capabilities (TPM 2.0, TPM_PT_MANUFACTURER): "IFX"
	PCIID     string `json:"pciID"`     // of its interface (TCG PC Client, TPM_DID_VID): "0x15d1"
}

// PCIFunction is one function of a card.
type PCIFunction struct {
	ID, PCIVendor, PCIDevice, PCIAddress string
	NIC                                  string // ID; "" of one that is none
}

// Functions are the functions of a card, in order.
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

// CardOf is the card that a NIC is on; false when the model does not say.
func (p *Profile) CardOf(nic string) (Card, bool) {
	i := slices.IndexFunc(p.Cards, func(c Card) bool { return slices.Contains(c.NICs, nic) })
	if i < 0 {
		return Card{}, false
	}
	return p.Cards[i], true
}

// Cabling is which network ports have no link. All others have one.
type Cabling struct {
	Down []string `json:"down"` // IDs of NICs, sorted
}

var allCabled = new(Cabling)

// Linked says whether a NIC has a link.
func (c *Cabling) Linked(nic string) bool { return !slices.Contains(c.Down, nic) }

func (m *Machine) cabling() *Cabling {
	if m.st.Cabling == nil {
		return allCabled
	}
	return m.st.Cabling
}

// SetLink pulls the cable out of a NIC, or plugs it in.
type SetLink struct {
	NIC string
	Up  bool
}

func (c SetLink) apply(m *Machine, now time.Time) ([]Event, error) {
	if !slices.ContainsFunc(m.identity.NICs, func(n NIC) bool { return n.ID == c.NIC }) {
		return nil, fmt.Errorf("machine: NIC %q: %w", c.NIC, ErrUnknown)
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
