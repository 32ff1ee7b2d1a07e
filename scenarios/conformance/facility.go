package conformance

import (
	"context"
	"io/fs"
	"net"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance/interop"
)

// Facility is something that a check needs beyond the address of the Redfish
// service. Its value is the flag that provides it.
type Facility string

// The facilities.
const (
	NeedsIPMI        Facility = "--ipmi"        // the address of IPMI over LAN
	NeedsMedia       Facility = "--media"       // an address at which the BMC reaches this computer's images and event listener
	NeedsBootMedia   Facility = "--boot-media"  // an image that boots and phones home
	NeedsDHCP        Facility = "--dhcp"        // an interface on which the server's network boot can be heard
	NeedsProvisioner Facility = "--provisioner" // what provisions a server from beginning to end
	NeedsSoak        Facility = "--soak"        // the duration of the soak test
	NeedsFirmware    Facility = "--firmware"    // the URL of an image of firmware that the server has already
	NeedsSchemas     Facility = "--schemas"     // DMTF's archive of schemas and profiles
	NeedsProfile     Facility = "--interop-profile or --schemas"
)

// Facilities are what the caller of a run provides; a nil field is not there, and
// the checks that need it are skipped with its flag.
type Facilities struct {
	Media       MediaServer
	Boot        BootMedia
	DHCP        DHCPListener
	Provisioner Provisioner
	Soak        time.Duration
	Firmware    string           // URL
	Schemas     fs.FS            // files of DMTF's archive
	Interop     *interop.Profile // for SCH-003 in place of OCP's
}

// MediaServer serves images to the BMC and takes its events.
type MediaServer interface {
	// URL returns the address of the image of a name. Scheme is http or https.
	URL(scheme, name string) (string, error)
	// Requests returns the requests for the image so far.
	Requests(name string) []MediaRequest
	// Events returns the URL of a listener for the events of a subscription, and
	// the bodies that arrive. The channel closes when ctx ends.
	Events(ctx context.Context) (url string, bodies <-chan []byte, err error)
}

// MediaRequest is a request of the BMC for an image.
type MediaRequest struct {
	Time      time.Time
	Method    string
	Range     string // value of the header Range
	UserAgent string
	Bytes     int64 // sent
}

// BootMedia makes an image that boots a server and phones home.
type BootMedia interface {
	// Image returns the URL of the ISO, and a wait for its phone-home. Scheme is http or
	// https.
	Image(ctx context.Context, scheme string) (url string, phonedHome func(context.Context) (BootReport, error), err error)
}

// BootReport describes the server that an image booted on, as the image reports it.
type BootReport struct {
	MACs   []net.HardwareAddr
	Serial string
	Disks  []Disk
}

// Disk is a disk as the operating system sees it.
type Disk struct {
	Serial, WWN string
	Size        int64 // bytes
}

// DHCPListener hears the DHCP DISCOVER of network boots.
type DHCPListener interface {
	// Discover waits for a DISCOVER of one of the MACs and returns which.
	Discover(ctx context.Context, macs []net.HardwareAddr) (net.HardwareAddr, error)
}

// Provisioner provisions the server under test from beginning to end.
type Provisioner interface {
	// Provision does so by "virtual media" or "PXE", and returns where it failed. It
	// leaves the server switched on and booting its disk, which the check watches. An
	// errors.ErrUnsupported says that it cannot provision in that way.
	Provision(ctx context.Context, by string) (Step, error)
}

// has reports whether the run has a facility.
func (c *Config) has(f Facility) bool {
	switch f {
	case NeedsIPMI:
		return c.IPMI != ""
	case NeedsMedia:
		return c.Media != nil
	case NeedsBootMedia:
		return c.Boot != nil
	case NeedsDHCP:
		return c.DHCP != nil
	case NeedsProvisioner:
		return c.Provisioner != nil
	case NeedsSoak:
		return c.Soak > 0
	case NeedsFirmware:
		return c.Firmware != ""
	case NeedsSchemas:
		return c.Schemas != nil
	case NeedsProfile:
		return c.Interop != nil || c.Schemas != nil
	}
	return false
}
