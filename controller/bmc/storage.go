package bmc

import (
	"context"
	"time"
)

// Level is a RAID level, as people and BareMetalHost write it.
type Level string

// The levels that volumes have.
const (
	Level0  Level = "0"
	Level1  Level = "1"
	Level5  Level = "5"
	Level6  Level = "6"
	Level10 Level = "1+0"
	Level50 Level = "5+0"
	Level60 Level = "6+0"
)

// Storage is what a BMC tells of storage controllers.
type Storage struct {
	Controllers []Controller
	// Operations are those on volumes that have not ended, whoever began them.
	Operations []Operation
}

// Controller is a storage controller with its drives and volumes.
type Controller struct {
	ID      string   // the protocol's own name of it, which CreateVolume takes
	Names   []string // what people may call it: its ID in the service, name and model
	Levels  []Level  // that it makes; none of one that makes no volumes
	Drives  []Drive
	Volumes []Volume
}

// Drive is a physical drive.
type Drive struct {
	ID         string
	Names      []string // what people may call it: its ID in the service, name and serial number
	Rotational bool
	Protocol   string // SATA, SAS, NVMe
	Bytes      int64
	Healthy    bool // enabled, and has not failed
	Spare      bool // stands by for volumes
	Used       bool // by a volume
}

// Volume is a logical drive that a controller makes of drives.
type Volume struct {
	ID      string
	Name    string
	Level   Level // "" is one that has no name here
	Bytes   int64
	Drives  []string // IDs
	WWN     string   // as the operating system shows it: 0x and hex digits; "" is unknown
	Healthy bool     // all its drives are there and well
	Ready   bool     // it can be written to
	Percent int      // of what keeps it from being Ready
}

// NewVolume is a volume to be made.
type NewVolume struct {
	Controller string // ID
	Name       string // "" leaves it to the controller
	Level      Level
	Bytes      int64    // at least; 0 is all that there is
	Drives     []string // IDs
}

// OperationState is how an operation stands.
type OperationState string

// The states of an operation. One that waits does so for the next start of the
// server.
const (
	OperationRunning OperationState = "running"
	OperationWaits   OperationState = "waits"
	OperationDone    OperationState = "done"
	OperationFailed  OperationState = "failed"
)

// Operation is work that a BMC has taken on.
type Operation struct {
	ID      string // for Follow; "" of one that was done at once
	Name    string // for people
	State   OperationState
	Percent int
	Error   string    // of one that failed
	Begun   time.Time // as the BMC has it; zero when it does not tell
}

// Storer is a Client whose BMC may let volumes be made. A BMC that does not
// answers with an UnsupportedError.
type Storer interface {
	// Storage reads controllers, drives, volumes and what goes on with them.
	Storage(ctx context.Context) (Storage, error)
	// CreateVolume returns when the BMC has accepted it, as does DeleteVolume;
	// the operation tells what has become of it.
	CreateVolume(ctx context.Context, v NewVolume) (Operation, error)
	// DeleteVolume takes a volume apart, by its ID. What it held stays on the
	// drives.
	DeleteVolume(ctx context.Context, id string) (Operation, error)
	// Follow reads how an operation stands. One that the BMC has forgotten
	// counts as done: what came of it shows in Storage.
	Follow(ctx context.Context, id string) (Operation, error)
}

// StorerOf is the part of a client that makes volumes; nil when there is none.
func StorerOf(c Client) Storer {
	s, _ := c.(Storer)
	return s
}

// storer is the client's own Storer, for a pooled one.
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

func (c *pooled) Follow(ctx context.Context, id string) (o Operation, err error) {
	s, err := c.storer("Follow")
	if err != nil {
		return o, err
	}
	err = c.call(func() error { o, err = s.Follow(ctx, id); return err })
	return o, err
}
