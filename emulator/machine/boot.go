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
	Device string     `json:"device,omitempty"` // ID of a drive or a NIC, or a UEFI device path without boot option; "" of a CD or USB device: the BMC's virtual media
	URI    string     `json:"uri,omitempty"`    // URI of an HTTP boot; "" is obtained by DHCP
}

// SourceKind is a boot target; the values are Redfish's BootSource (DSP2046,
// ComputerSystem.Boot.BootSourceOverrideTarget).
type SourceKind string

// The boot targets.
const (
	None         SourceKind = "None"         // no override: the boot order decides
	Pxe          SourceKind = "Pxe"          // network, by PXE
	Floppy       SourceKind = "Floppy"       // floppy drive
	Cd           SourceKind = "Cd"           // CD or DVD drive, virtual media included
	Usb          SourceKind = "Usb"          // USB device
	Hdd          SourceKind = "Hdd"          // hard drive
	BiosSetup    SourceKind = "BiosSetup"    // BIOS setup program
	Utilities    SourceKind = "Utilities"    // utilities of the firmware
	Diags        SourceKind = "Diags"        // diagnostics of the firmware
	UefiShell    SourceKind = "UefiShell"    // UEFI shell
	UefiTarget   SourceKind = "UefiTarget"   // Override.Path says which
	SDCard       SourceKind = "SDCard"       // SD card
	UefiHTTP     SourceKind = "UefiHttp"     // network, by UEFI HTTP boot
	RemoteDrive  SourceKind = "RemoteDrive"  // drive on the network, such as iSCSI
	UsbCd        SourceKind = "UsbCd"        // the BMC's virtual CD, which some vendors name besides Cd; not in DSP2046
	UefiBootNext SourceKind = "UefiBootNext" // Override.BootNext says which
)

// SourceKinds lists all boot targets in the order in which services list them.
var SourceKinds = []SourceKind{
	None, Pxe, Floppy, Cd, Usb, Hdd, BiosSetup, Utilities, Diags, UefiShell, UefiTarget, SDCard, UefiHTTP, RemoteDrive,
	UefiBootNext, UsbCd,
}

// targets describes the boot targets; a zero row is a kind of device for both
// boot modes.
var targets = map[SourceKind]struct {
	device bool // a device that the machine may have
	app    bool // a program of the firmware
	uefi   bool // only in UEFI mode
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

// Enabled says how long an override applies.
type Enabled string

// The values of Override.Enabled, as Redfish spells them.
const (
	Disabled   Enabled = "Disabled"
	Once       Enabled = "Once"
	Continuous Enabled = "Continuous"
)

// Enableds lists all values of Enabled.
var Enableds = []Enabled{Disabled, Once, Continuous}

// Mode is a boot mode.
type Mode string

// The boot modes, as Redfish spells them.
const (
	UEFI   Mode = "UEFI"
	Legacy Mode = "Legacy"
)

// Modes lists all boot modes.
var Modes = []Mode{UEFI, Legacy}

// Override is a boot source override, which has priority over the boot order.
type Override struct {
	Enabled    Enabled    `json:"enabled"`
	Target     SourceKind `json:"target"`
	Mode       Mode       `json:"mode"`
	Path       string     `json:"path,omitempty"` // UEFI device path, for UefiTarget
	BootNext   string     `json:"next,omitempty"` // ID of a boot option, for UefiBootNext
	LocalDrive bool       `json:"own,omitempty"`  // the target is a local drive, not the BMC's virtual media
}

// SetOverride replaces the boot source override.
type SetOverride struct{ Override }

func (c SetOverride) apply(m *Machine, _ time.Time) ([]Event, error) {
	o := c.Override
	switch {
	case !slices.Contains(Enableds, o.Enabled):
		return nil, fmt.Errorf("override enabled %q: %w", o.Enabled, ErrUnknown)
	case !slices.Contains(SourceKinds, o.Target):
		return nil, fmt.Errorf("override target %q: %w", o.Target, ErrUnknown)
	case !slices.Contains(Modes, o.Mode):
		return nil, fmt.Errorf("override mode %q: %w", o.Mode, ErrUnknown)
	case o.BootNext != "" && o.BootNext != m.st.Override.BootNext && !slices.ContainsFunc(m.options(), func(b BootOption) bool { return b.ID == o.BootNext }):
		return nil, fmt.Errorf("override next %q is no boot option: %w", o.BootNext, ErrUnknown)
	}
	if field, with, ok := o.Conflict(); ok {
		return nil, fmt.Errorf("%w: override: %s and %s", ErrConflict, field, with)
	}
	if was := m.st.Override; was != o {
		m.main().Override = o
		m.endBootOptionsRequest(was, o)
	}
	return nil, nil
}

// Conflict returns two fields of an enabled override that contradict each
// other.
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

// RetryConfig says what follows a boot without bootable source; the values are
// Redfish's (DSP2046, ComputerSystem.Boot.AutomaticRetryConfig).
type RetryConfig string

// The values of RetryConfig.
const (
	NoRetry       RetryConfig = "Disabled"
	RetryAttempts RetryConfig = "RetryAttempts"
	RetryAlways   RetryConfig = "RetryAlways"
)

// RetryConfigs lists all values.
var RetryConfigs = []RetryConfig{NoRetry, RetryAttempts, RetryAlways}

// MaxAttempts is the highest value of BootSettings.Attempts.
const MaxAttempts = 100

// BootSettings are the boot settings of a machine besides the override.
type BootSettings struct {
	// Order is the boot order, as boot option IDs; nil is the model's. Options
	// that do not exist are skipped.
	Order []string `json:"order,omitempty"`
	// Excluded holds the options that existed when Order was set and that it
	// does not contain.
	Excluded []string    `json:"left,omitempty"`
	Disabled []string    `json:"off,omitempty"`      // disabled boot options, sorted
	HTTPURI  string      `json:"httpURI,omitempty"`  // URI of an HTTP boot; "": obtained by DHCP
	Retry    RetryConfig `json:"retry,omitempty"`    // "": NoRetry
	Attempts int         `json:"attempts,omitempty"` // for RetryAttempts
}

var noBootSettings = new(BootSettings)

func (m *Machine) bootSettings() *BootSettings {
	if m.st.Boot == nil {
		return noBootSettings
	}
	return m.st.Boot
}

// retriesBoot reports whether a boot without bootable source is repeated.
func (m *Machine) retriesBoot() bool {
	switch b := m.bootSettings(); b.Retry {
	case RetryAlways:
		return m.profile.Timings.POST.Duration > 0 // without POST time it would repeat for ever in no time
	case RetryAttempts:
		return m.st.Retries < b.Attempts
	}
	return false
}

// SetHTTPBoot sets the URI of HTTP boots; "" means DHCP.
type SetHTTPBoot struct{ URI string }

func (c SetHTTPBoot) apply(m *Machine, _ time.Time) ([]Event, error) {
	if u, err := url.Parse(c.URI); c.URI != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("HTTP boot URI %q: must be http://… or https://…: %w", c.URI, ErrUnknown)
	}
	m.updateBootSettings(func(b *BootSettings) { b.HTTPURI = c.URI })
	return nil, nil
}

// SetRetry sets what follows a boot without bootable source.
type SetRetry struct {
	Retry    RetryConfig
	Attempts int
}

func (c SetRetry) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case !slices.Contains(RetryConfigs, c.Retry):
		return nil, fmt.Errorf("retry %q: %w", c.Retry, ErrUnknown)
	case c.Attempts < 0 || c.Attempts > MaxAttempts:
		return nil, fmt.Errorf("retry attempts %d: must be 0 to %d: %w", c.Attempts, MaxAttempts, ErrUnknown)
	}
	m.updateBootSettings(func(b *BootSettings) { b.Retry, b.Attempts = c.Retry, c.Attempts })
	return nil, nil
}

// updateBootSettings changes a copy of the boot settings and stores it.
func (m *Machine) updateBootSettings(how func(*BootSettings)) {
	b := *m.bootSettings()
	how(&b)
	m.st.Boot = &b
}

// sources returns the sources that this boot tries, in order: a suspended
// system, the override's target, then the boot order. It uses up a one-time
// override. app is set when the target is a program of the firmware.
func (m *Machine) sources() (tries []Source, app SourceKind) {
	if m.st.SuspendedImage != nil {
		tries = append(tries, *m.st.SuspendedImage)
		m.main().SuspendedImage = nil
	} else if o := m.st.Override; o.Enabled != Disabled {
		if targets[o.Target].app {
			app = o.Target
		}
		tries = append(tries, m.overrideSources(o)...)
		if o.Enabled == Once {
			override := &m.main().Override
			override.Enabled, override.Target, override.BootNext, override.LocalDrive = Disabled, None, "", false
		}
		m.consumeBootOptions(o.Enabled == Once)
	}
	for _, b := range m.order() {
		if b.Enabled {
			tries = append(tries, b.Source)
		}
	}
	return unique(tries), app
}

// overrideSources returns the sources of an override.
func (m *Machine) overrideSources(o Override) []Source {
	var out []Source
	for _, b := range m.options() {
		if o.LocalDrive && b.Device == "" {
			continue
		}
		if b.Kind == o.Target || o.Target == UsbCd && b.Kind == Cd && b.Device == "" || o.Target == UefiTarget && b.Path == o.Path || o.Target == UefiBootNext && b.ID == o.BootNext {
			out = append(out, b.Source)
		}
	}
	if n, ok := m.systemBootOptions().deviceIndex(len(out)); ok {
		out = out[n : n+1]
	}
	if o.Target == UefiTarget && out == nil {
		out = append(out, Source{Kind: UefiTarget, Device: o.Path})
	}
	return out
}

// unique removes duplicates, keeping the first of each.
func unique(all []Source) []Source {
	var out []Source
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
