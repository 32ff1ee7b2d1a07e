package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// computerSystem holds the properties that the driver reads of a ComputerSystem.
type computerSystem struct {
	ID           string `json:"@odata.id"`
	Type         string `json:"@odata.type"`
	UUID         string `json:"UUID"`
	Manufacturer string `json:"Manufacturer"`
	Model        string `json:"Model"`
	SKU          string `json:"SKU"`
	Serial       string `json:"SerialNumber"`
	BIOS         string `json:"BiosVersion"`
	Power        string `json:"PowerState"`
	Status       struct {
		Health string `json:"Health"`
		Rollup string `json:"HealthRollup"`
	} `json:"Status"`
	Boot     *bootOverride `json:"Boot"`
	Progress struct {
		Last string `json:"LastState"`
	} `json:"BootProgress"`
	Locator      *bool  `json:"LocationIndicatorActive"`
	LED          string `json:"IndicatorLED"`
	VirtualMedia link   `json:"VirtualMedia"`
	SecureBoot   link   `json:"SecureBoot"`
	Bios         link   `json:"Bios"`
	LogServices  link   `json:"LogServices"`
	Storage      link   `json:"Storage"`
	HostName     string `json:"HostName"`
	Processors   struct {
		Model   string `json:"Model"`
		Logical int    `json:"LogicalProcessorCount"`
	} `json:"ProcessorSummary"`
	Memory struct {
		GiB float64 `json:"TotalSystemMemoryGiB"`
	} `json:"MemorySummary"`
	ProcessorList link `json:"Processors"`
	Interfaces    link `json:"EthernetInterfaces"`
	Links         struct {
		ManagedBy []link `json:"ManagedBy"`
		Chassis   []link `json:"Chassis"`
	} `json:"Links"`
	Actions struct {
		Reset struct {
			Target string   `json:"target"`
			Types  []string `json:"ResetType@Redfish.AllowableValues"`
			Info   string   `json:"@Redfish.ActionInfo"`
		} `json:"#ComputerSystem.Reset"`
	} `json:"Actions"`
	Settings struct {
		Object link `json:"SettingsObject"`
	} `json:"@Redfish.Settings"`

	uri string
	tag string // ETag
}

// computerSystem reads the system that the client's address names.
func (c *client) computerSystem(ctx context.Context) (computerSystem, error) {
	uri, known, err := c.systemURI(ctx)
	if err != nil {
		return computerSystem{}, err
	}
	s, err := c.readSystem(ctx, uri)
	if errors.Is(err, bmc.ErrNoSystem) && known && c.address.Path == "" {
		// The only system has been renamed, perhaps by a firmware update.
		c.mu.Lock()
		c.knownSystem = ""
		c.mu.Unlock()
		if uri, _, err = c.systemURI(ctx); err != nil {
			return computerSystem{}, err
		}
		return c.readSystem(ctx, uri)
	}
	return s, err
}

// systemURI returns the URI of the address's system, or of the only system. known
// reports whether it was found earlier.
func (c *client) systemURI(ctx context.Context) (uri string, known bool, err error) {
	if c.address.Path != "" {
		return c.address.Path, true, nil
	}
	c.mu.Lock()
	uri = c.knownSystem
	c.mu.Unlock()
	if uri != "" {
		return uri, true, nil
	}
	uris, err := c.systems(ctx)
	switch {
	case err != nil:
		return "", false, asNoSystem(err)
	case len(uris) == 0:
		return "", false, errNoSystemYet
	case len(uris) != 1:
		return "", false, fmt.Errorf("redfish: %w: it has %d, and the address names none", bmc.ErrNoSystem, len(uris))
	}
	c.mu.Lock()
	c.knownSystem = uris[0]
	c.mu.Unlock()
	return uris[0], false, nil
}

// systems returns the URIs of all systems.
func (c *client) systems(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	collection := c.root.Systems.ID
	c.mu.Unlock()
	if collection == "" {
		collection = servicePath + "Systems"
	}
	return c.members(ctx, collection)
}

// errNoSystemYet reports a BMC without a system: iDRACs show empty collections for
// minutes after a start (quadsproject/badfish issue 129).
var errNoSystemYet = fmt.Errorf("redfish: %w: it shows no system", bmc.ErrBusy)

// checkAwake returns errNoSystemYet while the BMC shows no system. The caller has
// not found some resource; once a system is shown, the BMC does not have that
// resource.
func (c *client) checkAwake(ctx context.Context) error {
	all, err := c.systems(ctx)
	if err == nil && len(all) == 0 {
		err = errNoSystemYet
	}
	return err
}

func (c *client) readSystem(ctx context.Context, uri string) (computerSystem, error) {
	var s computerSystem
	a, err := c.get(ctx, uri, &s)
	if err != nil {
		return computerSystem{}, asNoSystem(err)
	}
	if !strings.HasPrefix(s.Type, "#ComputerSystem.") && (s.Type != "" || s.Power == "" && s.Actions.Reset.Target == "") {
		return computerSystem{}, fmt.Errorf("redfish: %w: %s is a %s", bmc.ErrNoSystem, uri, s.Type)
	}
	s.uri, s.tag = uri, etag(a)
	if s.Power == "" {
		s.Power = c.chassisPower(ctx, s)
	}
	return s, nil
}

// chassisPower returns the PowerState of the system's chassis, for a system that
// has none.
func (c *client) chassisPower(ctx context.Context, s computerSystem) string {
	for _, chassis := range s.Links.Chassis {
		var resource struct {
			Power string `json:"PowerState"`
		}
		if chassis.ID == "" {
			continue
		}
		if _, err := c.get(ctx, chassis.ID, &resource); err == nil && resource.Power != "" {
			return resource.Power
		}
	}
	return ""
}

// asNoSystem turns a 404 into bmc.ErrNoSystem.
func asNoSystem(err error) error {
	if e := new(statusError); errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone) {
		e.kind = bmc.ErrNoSystem
	}
	return err
}

// System reads identity, power and boot override. It sends one request to a BMC
// that follows the standard.
func (c *client) System(ctx context.Context) (bmc.System, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return bmc.System{}, err
	}
	out := bmc.System{
		ID:           s.ID,
		UUID:         s.UUID,
		Manufacturer: s.Manufacturer,
		Model:        s.Model,
		Serial:       s.Serial,
		BIOSVersion:  s.BIOS,
		Power:        powerState(s.Power),
		Health:       s.Status.Health,
		Identify:     s.indicatorOn(),
		POST:         powerState(s.Power) == bmc.PoweringOn || powerState(s.Power) == bmc.On && inPOST[s.Progress.Last],
	}
	if out.ID == "" {
		out.ID = s.uri
	}
	if out.Health == "" {
		out.Health = s.Status.Rollup
	}
	if out.Boot, err = c.currentBoot(ctx, s); err != nil {
		return bmc.System{}, err
	}
	if strings.HasPrefix(s.Manufacturer, "Dell") && s.SKU != "" {
		// On an iDRAC SerialNumber is the board's; the service tag, which SMBIOS
		// and the case show, is the SKU (Ironic reads it, too).
		out.Serial = s.SKU
	}
	return out, nil
}

// inPOST lists the values of BootProgress.LastState during which the firmware
// still tests and configures the hardware (DSP2046,
// ComputerSystem.BootProgressTypes).
var inPOST = map[string]bool{
	"PrimaryProcessorInitializationStarted": true, "BusInitializationStarted": true, "MemoryInitializationStarted": true,
	"SecondaryProcessorInitializationStarted": true, "PCIResourceConfigStarted": true,
}
