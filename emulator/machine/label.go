package machine

import (
	"fmt"
	"reflect"
	"time"
)

// FRUInfo is what a server says that it is.
type FRUInfo struct {
	Manufacturer  string `json:"manufacturer,omitempty"`
	Model         string `json:"model,omitempty"`
	PartNumber    string `json:"partNumber,omitempty"`
	Serial        string `json:"serial,omitempty"`
	ChassisPart   string `json:"chassisPart,omitempty"`
	ChassisSerial string `json:"chassisSerial,omitempty"`
}

// FRUOverrides are what somebody has written over what a server says that it is.
type FRUOverrides struct {
	FRUInfo `json:"label,omitzero"` // "": as it was made
	// Memory is that of the board where all this stands, in the form of who
	// wrote it; nil: as it was made.
	Image []byte `json:"memory,omitempty"`
}

// maxMemory bounds Labels.Memory.
const maxMemory = 1 << 16

// SetFRUOverrides sets what is written over a label, whole.
type SetFRUOverrides struct{ FRUOverrides }

func (c SetFRUOverrides) apply(m *Machine, _ time.Time) ([]Event, error) {
	if len(c.Image) > maxMemory {
		return nil, fmt.Errorf("machine: memory of labels: %d bytes: must be at most %d: %w", len(c.Image), maxMemory, ErrUnknown)
	}
	own := &c.FRUOverrides
	if reflect.DeepEqual(*own, FRUOverrides{}) {
		own = nil
	}
	if !reflect.DeepEqual(own, m.st.FRUOverrides) {
		m.st.FRUOverrides = own
		m.relabel()
	}
	return nil, nil
}

// relabel puts what is written over the label of the machine in its place.
func (m *Machine) relabel() {
	if m.labelled == m.st.FRUOverrides {
		return
	}
	m.labelled, m.identity = m.st.FRUOverrides, m.made
	if m.st.FRUOverrides == nil {
		return
	}
	own, over := *m.made, m.st.FRUOverrides.FRUInfo
	for _, f := range []struct {
		to   *string
		text string
	}{
		{&own.Manufacturer, over.Manufacturer}, {&own.Model, over.Model}, {&own.PartNumber, over.PartNumber}, {&own.Serial, over.Serial},
		{&own.ChassisPart, over.ChassisPart}, {&own.ChassisSerial, over.ChassisSerial},
	} {
		if f.text != "" {
			*f.to = f.text
		}
	}
	m.identity = &own
}
