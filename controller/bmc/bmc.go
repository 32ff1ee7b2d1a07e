// Package bmc defines what a controller can ask of a baseboard management
// controller (BMC), the values that come back, and the errors that it can act on.
// It also parses BMC addresses and pools clients. It knows no protocol (the
// drivers below do) and no Kubernetes.
package bmc

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"k8s.io/utils/clock"
)

// Errors that callers branch on. Drivers wrap them with the BMC's message.
var (
	ErrUnauthorized = errors.New("the BMC refused the credentials")
	ErrUnreachable  = errors.New("the BMC does not answer")
	ErrUntrusted    = errors.New("the BMC's certificate is not trusted")
	ErrNoSystem     = errors.New("the BMC has no such system")
	ErrUnsupported  = errors.New("the BMC cannot do that")
	// ErrPrivilege reports that the address asks for a privilege level that is too low.
	ErrPrivilege = errors.New("the privilege level is too low")
	// ErrBusy reports that the BMC cannot do it now: during a POST, or until power
	// has settled. It is also an ErrUnreachable: callers that wait for a BMC to
	// answer wait for this one, too.
	ErrBusy error = busyError{}
	// ErrPending refuses settings until a reset has applied the pending ones.
	ErrPending = errors.New("the BMC takes no settings before a reset has applied those that wait")
)

type busyError struct{}

func (busyError) Error() string        { return "the BMC cannot do that now" }
func (busyError) Is(target error) bool { return target == ErrUnreachable }

// UnsupportedError reports a method of Client that the BMC does not offer,
// whatever the arguments: the protocol has no such command, or the service lacks
// it. It is an ErrUnsupported.
type UnsupportedError struct {
	Verb string // name of the method
	Why  string
}

func (e *UnsupportedError) Error() string {
	return ErrUnsupported.Error() + ": " + e.Verb + ": " + e.Why
}

func (e *UnsupportedError) Unwrap() error { return ErrUnsupported }

// Power is a system's power state.
type Power string

// The power states. The zero value is an unknown state.
const (
	On          Power = "On"
	Off         Power = "Off"
	PoweringOn  Power = "PoweringOn"
	PoweringOff Power = "PoweringOff"
)

// PowerAction changes the power state.
type PowerAction string

// The power actions. An action for the present state is no error, and a reset or
// cycle of a system that is off turns it on.
const (
	PowerOn      PowerAction = "on"
	PowerOff     PowerAction = "off"      // without asking the operating system
	PowerSoftOff PowerAction = "soft off" // by the operating system
	PowerReset   PowerAction = "reset"    // off and on again, at once
	PowerCycle   PowerAction = "cycle"    // off, and on after a pause, so that components lose power
)

// Device is a boot device.
type Device string

// The boot devices. BootNone leaves the choice to the system's boot order. When a
// driver reads an override for another device it returns the BMC's name of it.
const (
	BootNone Device = ""
	BootCD   Device = "cd"
	BootDisk Device = "disk"
	BootPXE  Device = "pxe"
	BootHTTP Device = "http" // UEFI HTTP boot of Boot.URL
)

// BootMode is the firmware interface that a system boots through.
type BootMode string

// The boot modes; BootModeAny leaves the mode unchanged. Setting UEFISecure also
// enables secure boot from the next boot; setting UEFI or LegacyBIOS disables it.
// A boot override that is read has UEFI for both, because reading secure boot
// would cost a second request.
const (
	BootModeAny BootMode = ""
	UEFI        BootMode = "UEFI"
	UEFISecure  BootMode = "UEFISecureBoot"
	LegacyBIOS  BootMode = "legacy"
)

// Boot is a boot override.
type Boot struct {
	Device     Device
	Mode       BootMode
	Persistent bool   // otherwise the override is for the next boot only; see System.BootOnce
	URL        string // for BootHTTP; "" leaves the choice to DHCP
	DHCP       bool   // a DHCP server offers URL, too, so that a BMC that takes no URL can boot it
}

// System describes a system without the help of an agent.
type System struct {
	ID           string // the protocol's name, e.g. /redfish/v1/Systems/1
	UUID         string
	Manufacturer string
	Model        string
	Serial       string
	BIOSVersion  string
	BMCVersion   string // version of the BMC's firmware; "" where reading it costs another request
	Power        Power
	Identify     bool   // the identification light is on
	Health       string // OK, Warning, Critical or ""
	Boot         Boot   // the current boot override
	// BootOnce: SetBoot cannot make an override persistent. It sets one for the next
	// boot instead.
	BootOnce bool
	POST     bool // the firmware tests and configures the hardware; false if the BMC does not report it
}

// Entry is an entry of the BMC's event log.
type Entry struct {
	ID       string    // the BMC's ID
	Time     time.Time // by the BMC's clock; zero if that was not set
	Severity string    // OK, Warning, Critical or ""
	Sensor   string    // subject of the entry; "" if unknown
	Text     string
}

// Sensor is a sensor with a numeric reading. Discrete sensors report through the
// event log.
type Sensor struct {
	Name    string
	Reading float64
	Unit    string // in UCUM, as in Redfish: Cel, RPM, V, A, W, %
	Health  string // OK, Warning, Critical or ""
	Enabled bool   // Reading is valid
}

// Media is the content of a virtual CD drive.
type Media struct {
	Image    string // URL; "" if the drive is empty
	Inserted bool
}

// Client controls one system through one BMC. It is safe for concurrent use. A
// method takes as long as the BMC needs, limited by the context and by the
// driver's timeout per request.
type Client interface {
	// System reads identity, power and boot override.
	System(ctx context.Context) (System, error)
	// SetPower returns when the BMC has accepted the action, not when the system
	// has reached the state.
	SetPower(ctx context.Context, a PowerAction) error
	// SetBoot sets the boot override.
	SetBoot(ctx context.Context, b Boot) error
	// Identify switches the identification light.
	Identify(ctx context.Context, on bool) error
	// Log reads the event log, the oldest entry first.
	Log(ctx context.Context) ([]Entry, error)
	// ClearLog empties the event log. The BMC may log that.
	ClearLog(ctx context.Context) error
	// Sensors reads the sensors.
	Sensors(ctx context.Context) ([]Sensor, error)
	// Media reads the virtual CD drive that InsertMedia uses.
	Media(ctx context.Context) (Media, error)
	// InsertMedia inserts an image into the virtual CD drive, in place of the
	// present one, and returns when the BMC reports it as inserted. Of several
	// URLs of the same image it uses the first that the BMC can fetch from: some
	// BMCs fetch by HTTPS only. It does nothing if the drive holds one of these
	// URLs already, so a changed image needs a new URL.
	InsertMedia(ctx context.Context, urls ...string) error
	// EjectMedia empties the drive. An empty drive is no error.
	EjectMedia(ctx context.Context) error
	// Close ends the session with the BMC, if there is one. The client cannot be
	// used afterwards; a second Close does nothing.
	Close()
}

// Credentials are a BMC account.
type Credentials struct {
	Username, Password string
}

// Config holds the parameters of Open.
type Config struct {
	Address     Address
	Credentials Credentials
	Insecure    bool           // accept any certificate
	RootCAs     *x509.CertPool // trusted beside the system's roots; may be nil
	Timeout     time.Duration  // limit of one request; 0 means 30 s
	Clock       clock.Clock    // for the waits between requests; nil means the real clock
	Registries  *Registries    // shared with other clients; may be nil
	Workarounds *Workarounds   // workarounds for this BMC; may be nil
}

// Open connects to a BMC. It sends a request, so that a Client that it returns has
// worked once; it fails with ErrUnauthorized, ErrUnreachable, ErrUntrusted or
// ErrNoSystem.
type Open func(context.Context, Config) (Client, error)
