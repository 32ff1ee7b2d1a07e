package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// computerSystem is what the driver reads of a ComputerSystem.
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
	Boot     *override `json:"Boot"`
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
	Links        struct {
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

// computerSystem reads the system of the client's address.
func (c *client) computerSystem(ctx context.Context) (computerSystem, error) {
	uri, known, err := c.systemURI(ctx)
	if err != nil {
		return computerSystem{}, err
	}
	s, err := c.readSystem(ctx, uri)
	if errors.Is(err, bmc.ErrNoSystem) && known && c.address.Path == "" {
		// What was the only system has another name since, perhaps because
		// the firmware is another.
		c.mu.Lock()
		c.system = ""
		c.mu.Unlock()
		if uri, _, err = c.systemURI(ctx); err != nil {
			return computerSystem{}, err
		}
		return c.readSystem(ctx, uri)
	}
	return s, err
}

// systemURI is the address's system, or the only one that there is; known
// says that it was found earlier.
func (c *client) systemURI(ctx context.Context) (uri string, known bool, err error) {
	if c.address.Path != "" {
		return c.address.Path, true, nil
	}
	c.mu.Lock()
	uri = c.system
	c.mu.Unlock()
	if uri != "" {
		return uri, true, nil
	}
	uris, err := c.systems(ctx)
	switch {
	case err != nil:
		return "", false, noSystem(err)
	case len(uris) == 0:
		return "", false, errNoneYet
	case len(uris) != 1:
		return "", false, fmt.Errorf("redfish: %w: it has %d, and the address names none", bmc.ErrNoSystem, len(uris))
	}
	c.mu.Lock()
	c.system = uris[0]
	c.mu.Unlock()
	return uris[0], false, nil
}

// systems are the URIs of all systems.
func (c *client) systems(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	collection := c.root.Systems.ID
	c.mu.Unlock()
	if collection == "" {
		collection = servicePath + "Systems"
	}
	return c.members(ctx, collection)
}

// errNoneYet is a BMC without a system: iDRACs show no members of any collection
// for minutes after they came up (quadsproject/badfish issue 129).
var errNoneYet = fmt.Errorf("redfish: %w: it shows no system", bmc.ErrBusy)

// awake says whether a BMC that does not show something shows any system: then
// it has no such thing.
func (c *client) awake(ctx context.Context) error {
	all, err := c.systems(ctx)
	if err == nil && len(all) == 0 {
		err = errNoneYet
	}
	return err
}

func (c *client) readSystem(ctx context.Context, uri string) (computerSystem, error) {
	var s computerSystem
	a, err := c.get(ctx, uri, &s)
	if err != nil {
		return computerSystem{}, noSystem(err)
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

// chassisPower is the power of a system that does not tell: its chassis may.
func (c *client) chassisPower(ctx context.Context, s computerSystem) string {
	for _, chassis := range s.Links.Chassis {
		var of struct {
			Power string `json:"PowerState"`
		}
		if chassis.ID == "" {
			continue
		}
		if _, err := c.get(ctx, chassis.ID, &of); err == nil && of.Power != "" {
			return of.Power
		}
	}
	return ""
}

// noSystem makes ErrNoSystem of an error that says so.
func noSystem(err error) error {
	if e := new(statusError); errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone) {
		e.kind = bmc.ErrNoSystem
	}
	return err
}

// System reads identity, power and boot override, with one request where the
// BMC is as the standard has it.
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
		Power:        power(s.Power),
		Health:       s.Status.Health,
		Identify:     s.lit(),
		POST:         power(s.Power) == bmc.PoweringOn || power(s.Power) == bmc.On && inPOST[s.Progress.Last],
	}
	if out.ID == "" {
		out.ID = s.uri
	}
	if out.Health == "" {
		out.Health = s.Status.Rollup
	}
	if out.Boot, err = c.shownBoot(ctx, s); err != nil {
		return bmc.System{}, err
	}
	if strings.HasPrefix(s.Manufacturer, "Dell") && s.SKU != "" {
		// iDRAC: SerialNumber is the board's; the service tag, which SMBIOS
		// and the case show, is the SKU (as Ironic reads it too).
		out.Serial = s.SKU
	}
	return out, nil
}

// inPOST are the states of boot progress up to which the firmware is at work
// (DSP2046, ComputerSystem.BootProgressTypes).
var inPOST = map[string]bool{
	"PrimaryProcessorInitializationStarted": true, "BusInitializationStarted": true, "MemoryInitializationStarted": true,
	"SecondaryProcessorInitializationStarted": true, "PCIResourceConfigStarted": true,
}
