// Package storage owns a server's drives and controllers and what they do to
// bytes. It sees a drive's content through a Medium and refuses to know where
// those bytes are kept.
package storage

import "io"

// Medium holds the bytes of one drive. Holes read as zeros and cost nothing.
// Implementations are safe for concurrent use.
type Medium interface {
	io.ReaderAt
	io.WriterAt
	// NextData is the offset of the first byte at or after off that is not
	// in a hole; io.EOF when there is none.
	NextData(off int64) (int64, error)
	// Discard makes n bytes from off a hole.
	Discard(off, n int64) error
}

// Protocol is how a drive is attached (DSP2046, Drive.Protocol).
type Protocol string

// The drive protocols, as Redfish spells them.
const (
	SATA Protocol = "SATA"
	SAS  Protocol = "SAS"
	NVMe Protocol = "NVMe"
)

// Known tells whether a protocol is one of these.
func (p Protocol) Known() bool { return p == SATA || p == SAS || p == NVMe }

// MediaType is what a drive is made of (DSP2046, Drive.MediaType).
type MediaType string

// The media types.
const (
	HDD MediaType = "HDD"
	SSD MediaType = "SSD"
)

// Known tells whether a media type is one of these.
func (m MediaType) Known() bool { return m == HDD || m == SSD }

// Model is a kind of drive; a hardware profile names one per bay.
type Model struct {
	Vendor      string     `json:"vendor"`
	Product     string     `json:"product"` // model name
	Revision    string     `json:"revision"`
	Protocol    Protocol   `json:"protocol"`
	Media       MediaType  `json:"media"`
	Capacity    int64      `json:"capacity"` // bytes
	RotationRPM int        `json:"rotationRPM,omitempty"`
	SpeedGbps   float64    `json:"speedGbps,omitempty"`
	BlockSize   int        `json:"blockSize"`            // bytes
	FormFactor  string     `json:"formFactor,omitempty"` // DSP2046, Drive.DriveFormFactor
	Sanitize    []Sanitize `json:"sanitize,omitempty"`   // ways in which it erases itself, the default first; none: by its media
}

// Sanitize is a way in which a drive erases itself (DSP2046,
// Drive.SecureErase, SanitizationType).
type Sanitize string

// The ways of erasing.
const (
	BlockErase         Sanitize = "BlockErase"
	CryptographicErase Sanitize = "CryptographicErase"
	Overwrite          Sanitize = "Overwrite"
)

// sanitizes is how drives erase themselves whose model does not say.
var sanitizes = map[MediaType][]Sanitize{HDD: {Overwrite}, SSD: {BlockErase, Overwrite}}

// Sanitizes lists the ways in which a drive erases itself, the default first.
func (m *Model) Sanitizes() []Sanitize {
	if len(m.Sanitize) > 0 {
		return m.Sanitize
	}
	return sanitizes[m.Media]
}

// Drive is one drive in one bay: a shared Model and its own identity.
type Drive struct {
	*Model
	ID     string // of the bay, unique in the server: "Disk.0"
	Bay    int    // counted from 0 in its controller
	Serial string
	WWN    string // NAA, 16 hex digits in lower case, no prefix
}

// ControllerModel is a kind of storage controller with its bays.
type ControllerModel struct {
	ID       string  `json:"id"` // unique in the server: "1"
	Name     string  `json:"name"`
	Vendor   string  `json:"vendor"`
	Product  string  `json:"product"`
	Firmware string  `json:"firmware"`
	Bays     []Model `json:"bays"`
	RAID     *RAID   `json:"raid,omitempty"` // nil: drives are seen as they are
	Rates    Rates   `json:"rates,omitzero"`
}

// Controller is one storage controller and what its bays hold when the server
// is new.
type Controller struct {
	*ControllerModel
	Serial string
	Drives []Drive
}
