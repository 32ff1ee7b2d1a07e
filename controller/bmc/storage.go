package bmc

import (
	"context"
	"time"
)

// Level is a RAID level, spelled as in BareMetalHost.
type Level string

// The RAID levels of volumes.
const (
	Level0  Level = "0"
	Level1  Level = "1"
	Level2  Level = "2" // a level of BareMetalHost; Redfish has no such RAID type (DSP2046, RAIDType)
	Level5  Level = "5"
	Level6  Level = "6"
	Level10 Level = "1+0"
	Level50 Level = "5+0"
	Level60 Level = "6+0"
)

// Storage describes the storage controllers of a system.
type Storage struct {
	Controllers []Controller
	// Operations lists the unfinished operations on volumes, including those of
	// other clients.
	Operations []Operation
}

// Controller is a storage controller with its drives and volumes.
type Controller struct {
	ID      string   // the protocol's ID, for NewVolume.Controller
	Names   []string // names that users may give: its ID in the service, name and model
	Levels  []Level  // supported levels; none if it creates no volumes
	Drives  []Drive
	Volumes []Volume
}

// Drive is a physical drive.
type Drive struct {
	ID         string
	Names      []string // names that users may give: its ID in the service, name and serial number
	Name       string
	Vendor     string
	Model      string
	Serial     string
	WWN        string // as the operating system shows it; "" if unknown
	Rotational bool
	Protocol   string // SATA, SAS, NVMe
	Bytes      int64
	Healthy    bool // enabled, and not failed
	Spare      bool // a hot spare
	Used       bool // belongs to a volume
	Absent     bool // the bay is empty
}

// Volume is a logical drive of a controller.
type Volume struct {
	ID      string
	Name    string
	Level   Level // "" if this package has no name for it
	Bytes   int64
	Drives  []string // IDs
	WWN     string   // as the operating system shows it: 0x and hex digits; "" if unknown
	Healthy bool     // all drives are present and healthy
	Ready   bool     // it can be written to
	Percent int      // progress towards Ready
}

// NewVolume describes a volume to create.
type NewVolume struct {
	Controller string // ID
	Name       string // "" leaves the name to the controller
	Level      Level
	Bytes      int64    // the least size; 0 uses all space
	Drives     []string // IDs
}

// OperationState is the state of an operation.
type OperationState string

// The states of an operation. A pending operation waits for the next start of the
// server.
const (
	OperationRunning OperationState = "running"
	OperationPending OperationState = "waits"
	OperationDone    OperationState = "done"
	OperationFailed  OperationState = "failed"
)

// Operation is an asynchronous operation of a BMC.
type Operation struct {
	ID      string // for PollOperation; "" if the operation was done at once
	Name    string // for people
	State   OperationState
	Percent int
	Error   string    // reason of a failure
	Started time.Time // by the BMC's clock; zero if unknown
}

// Storer is a Client that reads and changes volumes. Its methods return an
// UnsupportedError if the BMC cannot.
type Storer interface {
	// Storage reads controllers, drives, volumes and unfinished operations.
	Storage(ctx context.Context) (Storage, error)
	// CreateVolume requests a volume. It returns when the BMC has accepted the
	// request; the operation reports the result. DeleteVolume does likewise.
	CreateVolume(ctx context.Context, v NewVolume) (Operation, error)
	// DeleteVolume deletes the volume with this ID. The data remains on the
	// drives.
	DeleteVolume(ctx context.Context, id string) (Operation, error)
	// PollOperation reads the state of an operation. An operation that the BMC no
	// longer knows counts as done: Storage shows the result.
	PollOperation(ctx context.Context, id string) (Operation, error)
}

// StorerOf returns the client's Storer; nil if it has none.
func StorerOf(c Client) Storer {
	s, _ := c.(Storer)
	return s
}

// storer returns the Storer of the pooled client's driver, or an UnsupportedError.
func (c *pooled) storer(verb string) (Storer, error) {
	if s := StorerOf(c.client); s != nil {
		return s, nil
	}
	return nil, &UnsupportedError{Verb: verb, Why: "its protocol knows no volumes"}
}

func (c *pooled) Storage(ctx context.Context) (out Storage, err error) {
	s, err := c.storer("Storage")
	if err != nil {
		return out, err
	}
	err = c.call(func() error { out, err = s.Storage(ctx); return err })
	return out, err
}

func (c *pooled) CreateVolume(ctx context.Context, v NewVolume) (o Operation, err error) {
	s, err := c.storer("CreateVolume")
	if err != nil {
		return o, err
	}
	err = c.call(func() error { o, err = s.CreateVolume(ctx, v); return err })
	return o, err
}

func (c *pooled) DeleteVolume(ctx context.Context, id string) (o Operation, err error) {
	s, err := c.storer("DeleteVolume")
	if err != nil {
		return o, err
	}
	err = c.call(func() error { o, err = s.DeleteVolume(ctx, id); return err })
	return o, err
}

func (c *pooled) PollOperation(ctx context.Context, id string) (o Operation, err error) {
	s, err := c.storer("PollOperation")
	if err != nil {
		return o, err
	}
	err = c.call(func() error { o, err = s.PollOperation(ctx, id); return err })
	return o, err
}
