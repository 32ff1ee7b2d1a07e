// Package bmc is the vocabulary of BMC work: what a controller can ask of a
// baseboard management controller, the values that come back, and the errors
// that it can act on. It also parses BMC addresses and keeps clients open. It
// knows no protocol (the drivers below do) and no Kubernetes.
package bmc

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"k8s.io/utils/clock"
)

// Errors that callers branch on; drivers wrap them with what the BMC said.
var (
	ErrUnauthorized = errors.New("the BMC refused the credentials")
	ErrUnreachable  = errors.New("the BMC does not answer")
	ErrUntrusted    = errors.New("the BMC's certificate is not trusted")
	ErrNoSystem     = errors.New("the BMC has no such system")
	ErrUnsupported  = errors.New("the BMC cannot do that")
	// ErrBusy is something that the BMC does later: when a POST has ended, or
	// power has settled. It is an ErrUnreachable, too: who waits for a BMC that
	// does not answer waits for this one as well.
	ErrBusy error = busyError{}
	// ErrPending refuses settings until those are applied that wait for a reset.
	ErrPending = errors.New("the BMC takes no settings before a reset has applied those that wait")
)

type busyError struct{}

func (busyError) Error() string        { return "the BMC cannot do that now" }
func (busyError) Is(target error) bool { return target == ErrUnreachable }

// UnsupportedError says which verb of Client a BMC cannot do, whatever it is
// asked for: its protocol has no such thing, or its service does not offer it.
// It is an ErrUnsupported.
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

// The power states. A zero Power is unknown.
const (
	On          Power = "On"
	Off         Power = "Off"
	PoweringOn  Power = "PoweringOn"
	PoweringOff Power = "PoweringOff"
)

// PowerAction changes the power state.
type PowerAction string

// The power actions. Asking for the state that a system is in is no error, and
// a reset or cycle of a system that is off turns it on.
const (
	PowerOn      PowerAction = "on"
	PowerOff     PowerAction = "off"      // at once
	PowerSoftOff PowerAction = "soft off" // asks the operating system
	PowerReset   PowerAction = "reset"    // off and on again, at once
	PowerCycle   PowerAction = "cycle"    // off, and on again after a while: parts lose power
)

// Device is what a system boots from.
type Device string

// The boot devices. BootNone means that the system's own order decides. A
// driver that reads an override for another device gives the BMC's name of it.
const (
	BootNone Device = ""
	BootCD   Device = "cd"
	BootDisk Device = "disk"
	BootPXE  Device = "pxe"
	BootHTTP Device = "http" // UEFI HTTP boot of Boot.URL
)

// BootMode is the firmware interface that a system boots through.
type BootMode string

// The boot modes; BootModeAny leaves it as it is. Setting UEFISecure also
// switches secure boot on, from the next boot; setting UEFI or LegacyBIOS
// switches it off where it is on. Reading an override tells UEFI for both, as
// secure boot would cost a second request.
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
	Persistent bool   // else for the next boot alone
	URL        string // what BootHTTP boots; "" leaves it to DHCP
	DHCP       bool   // a DHCP server names URL, too: a BMC that takes none may do without
}

// System is what a BMC tells of its system without an agent.
type System struct {
	ID           string // the protocol's own name of it, e.g. /redfish/v1/Systems/1
	UUID         string
	Manufacturer string
	Model        string
	Serial       string
	BIOSVersion  string
	BMCVersion   string // of the BMC's firmware; "" where it costs another request
	Power        Power
	Identify     bool   // the light that shows people where it is
	Health       string // OK, Warning, Critical or ""
	Boot         Boot   // the override as it stands now
	POST         bool   // the firmware is testing and setting up the hardware; false too where the BMC does not tell
}

// Entry is an entry of the BMC's event log.
type Entry struct {
	ID       string    // the BMC's
	Time     time.Time // as the BMC has it; zero when it did not know
	Severity string    // OK, Warning, Critical or ""
	Sensor   string    // what it is about, "" when it does not tell
	Text     string
}

// Sensor is a sensor with a number. Discrete ones tell what they have to tell
// in the log.
type Sensor struct {
	Name    string
	Reading float64
	Unit    string // UCUM, as Redfish has it: Cel, RPM, V, A, W, %
	Health  string // OK, Warning, Critical or ""
	Enabled bool   // Reading is one
}

// Media is what a virtual CD drive holds.
type Media struct {
	Image    string // URL, "" when empty
	Inserted bool
}

// Client talks to one system through one BMC. It is safe for concurrent use.
// Every method takes as long as the BMC needs, at most the context's time or
// the driver's own limit per request.
type Client interface {
	// System reads identity, power and boot override.
	System(ctx context.Context) (System, error)
	// SetPower returns when the BMC has accepted the action, not when it is
	// complete: System tells.
	SetPower(ctx context.Context, a PowerAction) error
	// SetBoot sets the boot override.
	SetBoot(ctx context.Context, b Boot) error
	// Identify switches the light that shows people where the system is.
	Identify(ctx context.Context, on bool) error
	// Log reads the event log, the oldest entry first.
	Log(ctx context.Context) ([]Entry, error)
	// ClearLog empties the event log. The BMC may log that.
	ClearLog(ctx context.Context) error
	// Sensors reads the sensors.
	Sensors(ctx context.Context) ([]Sensor, error)
	// Media reads the virtual CD drive that InsertMedia uses.
	Media(ctx context.Context) (Media, error)
	// InsertMedia puts an image into the virtual CD drive, in place of what it
	// holds. It returns when the BMC says that it is inserted. Of several URLs of
	// the same image it takes the first that the BMC fetches from: some do so by
	// HTTPS alone. If the drive holds one of them already, it does nothing: give
	// a changed image a new URL.
	InsertMedia(ctx context.Context, urls ...string) error
	// EjectMedia empties the drive; an empty one is no error.
	EjectMedia(ctx context.Context) error
	// Close ends the session with the BMC, if there is one. The client is of
	// no use afterwards; closing it again does nothing.
	Close()
}

// Credentials are a BMC account.
type Credentials struct {
	Username, Password string
}

// Config is what a driver needs to open a Client.
type Config struct {
	Address     Address
	Credentials Credentials
	Insecure    bool           // do not verify the BMC's certificate
	RootCAs     *x509.CertPool // trusted beside the system's own; may be nil
	Timeout     time.Duration  // of one request; 0 is 30 s
	Clock       clock.Clock    // for the waits between requests; nil is the real one
	Registries  *Registries    // shared with other clients; may be nil
	Lessons     *Lessons       // about this BMC; may be nil
}

// Open connects to a BMC. It fails with ErrUnauthorized, ErrUnreachable,
// ErrUntrusted or ErrNoSystem where a request would, so that a Client it
// returns has worked once.
type Open func(context.Context, Config) (Client, error)
