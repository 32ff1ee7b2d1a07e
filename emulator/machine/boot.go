package machine

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Source is something that a machine can boot from.
type Source struct {
	Kind   SourceKind `json:"kind"`
	Device string     `json:"device,omitempty"` // drive or NIC ID, or a UEFI device path that is no boot option's; "" of a CD or USB stick: the BMC's media
	URI    string     `json:"uri,omitempty"`    // of an HTTP boot; "" is asked of DHCP
}

// SourceKind is a boot target; the values are Redfish's BootSource (DSP2046,
// ComputerSystem.Boot.BootSourceOverrideTarget).
type SourceKind string

// The boot targets.
const (
	None         SourceKind = "None"
	Pxe          SourceKind = "Pxe"
	Floppy       SourceKind = "Floppy"
	Cd           SourceKind = "Cd"
	Usb          SourceKind = "Usb"
	Hdd          SourceKind = "Hdd"
	BiosSetup    SourceKind = "BiosSetup"
	Utilities    SourceKind = "Utilities"
	Diags        SourceKind = "Diags"
	UefiShell    SourceKind = "UefiShell"
	UefiTarget   SourceKind = "UefiTarget" // Override.Path says which
	SDCard       SourceKind = "SDCard"
	UefiHTTP     SourceKind = "UefiHttp"
	RemoteDrive  SourceKind = "RemoteDrive"
	UsbCd        SourceKind = "UsbCd"        // the BMC's CD, of which some say Cd as well; no word of DSP2046
	UefiBootNext SourceKind = "UefiBootNext" // Override.Next says which
)

// SourceKinds are all boot targets, in the order in which services list them.
var SourceKinds = []SourceKind{
	None, Pxe, Floppy, Cd, Usb, Hdd, BiosSetup, Utilities, Diags, UefiShell, UefiTarget, SDCard, UefiHTTP, RemoteDrive,
	UefiBootNext, UsbCd,
}

// targets says what is special about a boot target: those without a row are
// kinds of device, in either mode.
var targets = map[SourceKind]struct {
	device bool // the machine may have such devices
	app    bool // a program of the firmware's own, which stays on the screen
	uefi   bool // is not to be had in legacy mode
}{
	None:         {},
	Pxe:          {device: true},
	Floppy:       {device: true},
	Cd:           {device: true},
	Usb:          {device: true},
	Hdd:          {device: true},
	BiosSetup:    {app: true},
	Utilities:    {app: true},
	Diags:        {app: true},
	UefiShell:    {app: true, uefi: true},
	UefiTarget:   {uefi: true},
	SDCard:       {device: true},
	UefiHTTP:     {device: true, uefi: true},
	RemoteDrive:  {device: true},
	UefiBootNext: {uefi: true},
	UsbCd:        {device: true},
}

// Enabled says for how long an override holds.
type Enabled string

// The values of Override.Enabled, as Redfish spells them.
const (
	Disabled   Enabled = "Disabled"
	Once       Enabled = "Once"
	Continuous Enabled = "Continuous"
)

// Enableds are all values of Enabled.
var Enableds = []Enabled{Disabled, Once, Continuous}

// Mode is the firmware interface of a boot.
type Mode string

// The boot modes, as Redfish spells them.
const (
	UEFI   Mode = "UEFI"
	Legacy Mode = "Legacy"
)

// Modes are all boot modes.
var Modes = []Mode{UEFI, Legacy}

// Override takes precedence over the boot order.
type Override struct {
	Enabled    Enabled    `json:"enabled"`
	Target     SourceKind `json:"target"`
	Mode       Mode       `json:"mode"`
	Path       string     `json:"path,omitempty"` // UEFI device path, of UefiTarget
	BootNext   string     `json:"next,omitempty"` // ID of a boot option, of UefiBootNext
	LocalDrive bool       `json:"own,omitempty"`  // it means a drive of the machine's own, and none of the BMC's
}

// SetOverride sets the boot override, whole.
type SetOverride struct{ Override }

func (c SetOverride) apply(m *Machine, _ time.Time) ([]Event, error) {
	o := c.Override
	switch {
	case !slices.Contains(Enableds, o.Enabled):
		return nil, fmt.Errorf("machine: override enabled %q: %w", o.Enabled, ErrUnknown)
	case !slices.Contains(SourceKinds, o.Target):
		return nil, fmt.Errorf("machine: override target %q: %w", o.Target, ErrUnknown)
	case !slices.Contains(Modes, o.Mode):
		return nil, fmt.Errorf("machine: override mode %q: %w", o.Mode, ErrUnknown)
	case o.BootNext != "" && o.BootNext != m.st.Override.BootNext && !slices.ContainsFunc(m.options(), func(b BootOption) bool { return b.ID == o.BootNext }):
		return nil, fmt.Errorf("machine: override next %q is no boot option: %w", o.BootNext, ErrUnknown)
	}
	if field, with, ok := o.Conflict(); ok {
		return nil, fmt.Errorf("%w: override: %s and %s", ErrConflict, field, with)
	}
	if was := m.st.Override; was != o {
		m.main().Override = o
		m.disown(was, o)
	}
	return nil, nil
}

// Conflict names two fields of an override that is enabled that cannot be
// together as they are.
func (o Override) Conflict() (field, with string, ok bool) {
	switch {
	case o.Enabled == Disabled:
	case targets[o.Target].uefi && o.Mode == Legacy:
		return "Target", "Mode", true
	case o.Target == UefiTarget && o.Path == "":
		return "Target", "Path", true
	case o.Target == UefiBootNext && o.BootNext == "":
		return "Target", "Next", true
	case o.Target == UefiBootNext && o.Enabled == Continuous: // DSP2046, Boot.BootNext
		return "Enabled", "Target", true
	}
	return "", "", false
}

// RetryConfig says what becomes of a boot that found nothing; the values are
// Redfish's (DSP2046, ComputerSystem.Boot.AutomaticRetryConfig).
type RetryConfig string

// The values of RetryConfig.
const (
	NoRetry       RetryConfig = "Disabled"
	RetryAttempts RetryConfig = "RetryAttempts"
	RetryAlways   RetryConfig = "RetryAlways"
)

// RetryConfigs are all of them.
var RetryConfigs = []RetryConfig{NoRetry, RetryAttempts, RetryAlways}

// MaxAttempts bounds BootSettings.Attempts.
const MaxAttempts = 100

// BootSettings are what is set of how a machine boots, beside the override.
type BootSettings struct {
	// Order lists boot options, first to be tried first; nil is as the model
	// has it. Those that are not there are passed over.
	Order []string `json:"order,omitempty"`
	// Left are the options that were there when Order was set and that it
	// left out.
	Excluded []string    `json:"left,omitempty"`
	Disabled []string    `json:"off,omitempty"`      // boot options that are disabled, sorted
	HTTPURI  string      `json:"httpURI,omitempty"`  // of an HTTP boot; "": asked of DHCP
	Retry    RetryConfig `json:"retry,omitempty"`    // "": NoRetry
	Attempts int         `json:"attempts,omitempty"` // of RetryAttempts
}

var noBootSettings = new(BootSettings)

func (m *Machine) boot() *BootSettings {
	if m.st.Boot == nil {
		return noBootSettings
	}
	return m.st.Boot
}

// retries says whether a boot that found nothing is tried once more.
func (m *Machine) retries() bool {
	switch b := m.boot(); b.Retry {
	case RetryAlways:
		return m.profile.Timings.POST.Duration > 0 // or it would never come to an end
	case RetryAttempts:
		return m.st.Retries < b.Attempts
	}
	return false
}

// SetHTTPBoot sets where an HTTP boot gets its image; "" asks DHCP.
type SetHTTPBoot struct{ URI string }

func (c SetHTTPBoot) apply(m *Machine, _ time.Time) ([]Event, error) {
	if u, err := url.Parse(c.URI); c.URI != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("machine: HTTP boot URI %q: must be http://… or https://…: %w", c.URI, ErrUnknown)
	}
	m.setBoot(func(b *BootSettings) { b.HTTPURI = c.URI })
	return nil, nil
}

// SetRetry sets what becomes of a boot that found nothing.
type SetRetry struct {
	Retry    RetryConfig
	Attempts int
}

func (c SetRetry) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case !slices.Contains(RetryConfigs, c.Retry):
		return nil, fmt.Errorf("machine: retry %q: %w", c.Retry, ErrUnknown)
	case c.Attempts < 0 || c.Attempts > MaxAttempts:
		return nil, fmt.Errorf("machine: retry attempts %d: must be 0 to %d: %w", c.Attempts, MaxAttempts, ErrUnknown)
	}
	m.setBoot(func(b *BootSettings) { b.Retry, b.Attempts = c.Retry, c.Attempts })
	return nil, nil
}

// setBoot changes a copy of the settings and puts it in place.
func (m *Machine) setBoot(how func(*BootSettings)) {
	b := *m.boot()
	how(&b)
	m.st.Boot = &b
}

// sources lists what this boot tries, in order: a suspended system, then the
// override's target, then the boot order. A one-shot override is spent by
// this. If the target is a program of the firmware, that is it.
func (m *Machine) sources() (tries []Source, app SourceKind) {
	if m.st.SuspendedImage != nil {
		tries = append(tries, *m.st.SuspendedImage)
		m.main().SuspendedImage = nil
	} else if o := m.st.Override; o.Enabled != Disabled {
		if targets[o.Target].app {
			app = o.Target
		}
		tries = append(tries, m.overriding(o)...)
		if o.Enabled == Once {
			own := &m.main().Override
			own.Enabled, own.Target, own.BootNext, own.LocalDrive = Disabled, None, "", false
		}
		m.followed(o.Enabled == Once)
	}
	for _, b := range m.order() {
		if b.Enabled {
			tries = append(tries, b.Source)
		}
	}
	return unique(tries), app
}

// overriding are the sources of an override.
func (m *Machine) overriding(o Override) []Source {
	var out []Source
	for _, b := range m.options() {
		if o.LocalDrive && b.Device == "" {
			continue
		}
		if b.Kind == o.Target || o.Target == UsbCd && b.Kind == Cd && b.Device == "" || o.Target == UefiTarget && b.Path == o.Path || o.Target == UefiBootNext && b.ID == o.BootNext {
			out = append(out, b.Source)
		}
	}
	if n, ok := m.bootInfo().wanted(len(out)); ok {
		out = out[n : n+1]
	}
	if o.Target == UefiTarget && out == nil {
		out = append(out, Source{Kind: UefiTarget, Device: o.Path})
	}
	return out
}

// unique leaves the first of equal sources.
func unique(all []Source) []Source {
	var out []Source
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
