package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

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
	uri, collection := c.system, c.root.Systems.ID
	c.mu.Unlock()
	if uri != "" {
		return uri, true, nil
	}
	if collection == "" {
		collection = servicePath + "Systems"
	}
	uris, err := c.members(ctx, collection)
	switch {
	case err != nil:
		return "", false, noSystem(err)
	case len(uris) != 1:
		return "", false, fmt.Errorf("redfish: %w: it has %d, and the address names none", bmc.ErrNoSystem, len(uris))
	}
	c.mu.Lock()
	c.system = uris[0]
	c.mu.Unlock()
	return uris[0], false, nil
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
	return s, nil
}

// noSystem makes ErrNoSystem of an error that says so.
func noSystem(err error) error {
	if e := new(statusError); errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusGone) {
		e.kind = bmc.ErrNoSystem
	}
	return err
}

// System reads identity, power and boot override, with one request.
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
		Boot:         s.Boot.boot(),
		POST:         power(s.Power) == bmc.PoweringOn || power(s.Power) == bmc.On && inPOST[s.Progress.Last],
	}
	if out.ID == "" {
		out.ID = s.uri
	}
	if out.Health == "" {
		out.Health = s.Status.Rollup
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

// power maps PowerState.
func power(state string) bmc.Power {
	switch schemas.PowerState(state) {
	case schemas.OnPowerState, schemas.PausedPowerState:
		return bmc.On
	case schemas.OffPowerState:
		return bmc.Off
	case schemas.PoweringOnPowerState:
		return bmc.PoweringOn
	case schemas.PoweringOffPowerState:
		return bmc.PoweringOff
	default:
		return ""
	}
}

// resetTypes are the ways to do a power action, best first.
var resetTypes = map[bmc.PowerAction][]schemas.ResetType{
	// PushPowerButton only ever reaches a system that is off: see SetPower.
	bmc.PowerOn:      {schemas.OnResetType, schemas.ForceOnResetType, schemas.PushPowerButtonResetType},
	bmc.PowerOff:     {schemas.ForceOffResetType},
	bmc.PowerSoftOff: {schemas.GracefulShutdownResetType},
	bmc.PowerReset:   {schemas.ForceRestartResetType, schemas.PowerCycleResetType},
	bmc.PowerCycle:   {schemas.PowerCycleResetType},
}

// reached are the states in which a power action has nothing left to do.
var reached = map[bmc.PowerAction][]bmc.Power{
	bmc.PowerOn:      {bmc.On, bmc.PoweringOn},
	bmc.PowerOff:     {bmc.Off},
	bmc.PowerSoftOff: {bmc.Off, bmc.PoweringOff},
}

// SetPower resets the system, unless it is as wanted: services differ on
// whether that is an error, and a power button would do the opposite.
func (c *client) SetPower(ctx context.Context, a bmc.PowerAction) error {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return err
	}
	if (a == bmc.PowerReset || a == bmc.PowerCycle) && power(s.Power) == bmc.Off {
		a = bmc.PowerOn
	}
	if done(a, s) {
		return nil
	}
	resetType, err := c.resetType(ctx, a, s)
	if err != nil {
		return err
	}
	target := s.Actions.Reset.Target
	if target == "" {
		target = strings.TrimRight(s.uri, "/") + "/Actions/ComputerSystem.Reset"
	}
	_, err = c.do(ctx, http.MethodPost, target, map[string]any{"ResetType": resetType}, nil)
	if e := new(statusError); errors.As(err, &e) && e.status/100 == 4 && !errors.Is(e.kind, bmc.ErrUnauthorized) {
		// Perhaps it came to that state by itself in between.
		if s, e := c.computerSystem(ctx); e == nil && done(a, s) {
			return nil
		}
	}
	return err
}

func done(a bmc.PowerAction, s computerSystem) bool {
	for _, state := range reached[a] {
		if power(s.Power) == state {
			return true
		}
	}
	return false
}

// resetType chooses among what the service offers. One that offers nothing
// gets the first choice.
func (c *client) resetType(ctx context.Context, a bmc.PowerAction, s computerSystem) (schemas.ResetType, error) {
	wanted := resetTypes[a]
	if wanted == nil {
		return "", fmt.Errorf("redfish: power %q: %w", a, bmc.ErrUnsupported)
	}
	offered := s.Actions.Reset.Types
	if offered == nil && s.Actions.Reset.Info != "" {
		var err error
		if offered, err = c.resetInfo(ctx, s.Actions.Reset.Info); err != nil {
			return "", err
		}
	}
	if len(offered) == 0 {
		return wanted[0], nil
	}
	for _, w := range wanted {
		for _, o := range offered {
			if o == string(w) {
				return w, nil
			}
		}
	}
	return "", fmt.Errorf("redfish: power %s: %w: it offers %s", a, bmc.ErrUnsupported, strings.Join(offered, ", "))
}

// resetInfo reads the reset types from an ActionInfo, which OpenBMC has in
// place of the annotation. They do not change while the BMC runs.
func (c *client) resetInfo(ctx context.Context, uri string) ([]string, error) {
	c.mu.Lock()
	types := c.resets
	c.mu.Unlock()
	if types != nil {
		return types, nil
	}
	var info struct {
		Parameters []struct {
			Name   string          `json:"Name"`
			Values json.RawMessage `json:"AllowableValues"`
		} `json:"Parameters"`
	}
	if _, err := c.get(ctx, uri, &info); err != nil {
		return nil, err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			_ = decode(p.Values, &types)
		}
	}
	c.mu.Lock()
	c.resets = types
	c.mu.Unlock()
	return types, nil
}
