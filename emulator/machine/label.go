package machine

import (
	"fmt"
	"reflect"
	"time"
)

// Label is what a server says that it is.
type Label struct {
	Manufacturer  string `json:"manufacturer,omitempty"`
	Model         string `json:"model,omitempty"`
	PartNumber    string `json:"partNumber,omitempty"`
	Serial        string `json:"serial,omitempty"`
	ChassisPart   string `json:"chassisPart,omitempty"`
	ChassisSerial string `json:"chassisSerial,omitempty"`
}

// Labels are what somebody has written over what a server says that it is.
type Labels struct {
	Label `json:"label,omitzero"` // "": as it was made
	// Memory is that of the board where all this stands, in the form of who
	// wrote it; nil: as it was made.
	Memory []byte `json:"memory,omitempty"`
}

// maxMemory bounds Labels.Memory.
const maxMemory = 1 << 16

// SetLabels sets what is written over a label, whole.
type SetLabels struct{ Labels }

func (c SetLabels) apply(m *Machine, _ time.Time) ([]Event, error) {
	if len(c.Memory) > maxMemory {
		return nil, fmt.Errorf("machine: memory of labels: %d bytes: must be at most %d: %w", len(c.Memory), maxMemory, ErrUnknown)
	}
	own := &c.Labels
	if reflect.DeepEqual(*own, Labels{}) {
		own = nil
	}
	if !reflect.DeepEqual(own, m.st.Labels) {
		m.st.Labels = own
		m.relabel()
	}
	return nil, nil
}

// relabel puts what is written over the label of the machine in its place.
func (m *Machine) relabel() {
	if m.labelled == m.st.Labels {
		return
	}
	m.labelled, m.identity = m.st.Labels, m.made
	if m.st.Labels == nil {
		return
	}
	own, over := *m.made, m.st.Labels.Label
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
