// Package storage models a server's drives and storage controllers, and what
// they do to bytes: RAID layouts, parity, rebuilds. It accesses a drive's
// content through a Medium and does not know where the bytes are stored.
package storage

import "io"

// Medium holds the bytes of one drive. Holes read as zeros and use no space.
// Implementations are safe for concurrent use.
type Medium interface {
	io.ReaderAt
	io.WriterAt
	// NextData returns the offset of the first byte at or after off that is not
	// in a hole; io.EOF when there is none.
	NextData(off int64) (int64, error)
	// Discard makes n bytes from off a hole.
	Discard(off, n int64) error
}

// Protocol is how a drive is attached (DSP2046, Drive.Protocol).
type Protocol string

// The drive protocols, as Redfish spells them.
const (
	SATA Protocol = "SATA" // serial ATA
	SAS  Protocol = "SAS"  // serial-attached SCSI
	NVMe Protocol = "NVMe" // NVM Express
)

// Known reports whether a protocol is one of these.
func (p Protocol) Known() bool { return p == SATA || p == SAS || p == NVMe }

// MediaType is a drive's media type (DSP2046, Drive.MediaType).
type MediaType string

// The media types.
const (
	HDD MediaType = "HDD" // rotating disk
	SSD MediaType = "SSD" // solid-state drive
)

// Known reports whether a media type is one of these.
func (m MediaType) Known() bool { return m == HDD || m == SSD }

// Model is a drive model; a hardware profile has one per bay.
type Model struct {
	Vendor      string     `json:"vendor"`   // manufacturer
	Product     string     `json:"product"`  // model name
	Revision    string     `json:"revision"` // firmware revision
	Protocol    Protocol   `json:"protocol"`
	Media       MediaType  `json:"media"`
	Capacity    int64      `json:"capacity"`              // bytes
	RotationRPM int        `json:"rotationRPM,omitempty"` // speed of a rotating disk, in revolutions per minute
	SpeedGbps   float64    `json:"speedGbps,omitempty"`   // speed of the interface, in Gbit/s
	BlockSize   int        `json:"blockSize"`             // bytes
	FormFactor  string     `json:"formFactor,omitempty"`  // DSP2046, Drive.DriveFormFactor
	Sanitize    []Sanitize `json:"sanitize,omitempty"`    // sanitization types, default first; none: those of its media type
}

// Sanitize is a sanitization type (DSP2046, Drive.SecureErase,
// SanitizationType).
type Sanitize string

// The sanitization types.
const (
	BlockErase         Sanitize = "BlockErase"         // erases the blocks of the medium
	CryptographicErase Sanitize = "CryptographicErase" // destroys the encryption key
	Overwrite          Sanitize = "Overwrite"          // overwrites the medium
)

// sanitizes holds the default sanitization types by media type.
var sanitizes = map[MediaType][]Sanitize{HDD: {Overwrite}, SSD: {BlockErase, Overwrite}}

// Sanitizes returns the sanitization types of a drive, default first.
func (m *Model) Sanitizes() []Sanitize {
	if len(m.Sanitize) > 0 {
		return m.Sanitize
	}
	return sanitizes[m.Media]
}

// Drive is a drive in a bay: a shared Model and its identity.
type Drive struct {
	*Model
	ID     string // ID of the bay, unique within the server: "Disk.0"
	Bay    int    // counted from 0 in its controller
	Serial string
	WWN    string // NAA, 16 hex digits in lower case, no prefix
}

// ControllerModel is a storage controller model with its bays.
type ControllerModel struct {
	ID       string  `json:"id"`             // unique within the server: "1"
	Name     string  `json:"name"`           // for display
	Vendor   string  `json:"vendor"`         // manufacturer
	Product  string  `json:"product"`        // model name
	Firmware string  `json:"firmware"`       // firmware version
	Bays     []Model `json:"bays"`           // factory content of the bays, in their order
	RAID     *RAID   `json:"raid,omitempty"` // nil: an HBA without RAID
	Rates    Rates   `json:"rates,omitzero"`
}

// Controller is a storage controller with the factory content of its bays.
type Controller struct {
	*ControllerModel
	Serial string
	Drives []Drive
}
