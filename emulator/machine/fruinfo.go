package machine

import (
	"fmt"
	"reflect"
	"time"
)

// FRUInfo is the identification that a server's FRU data holds.
type FRUInfo struct {
	Manufacturer  string `json:"manufacturer,omitempty"`
	Model         string `json:"model,omitempty"`
	PartNumber    string `json:"partNumber,omitempty"`
	Serial        string `json:"serial,omitempty"`
	ChassisPart   string `json:"chassisPart,omitempty"`
	ChassisSerial string `json:"chassisSerial,omitempty"`
}

// FRUOverrides are FRU values that a client has written over the factory ones.
type FRUOverrides struct {
	FRUInfo `json:"label,omitzero"` // "": the factory value
	// Image is the baseboard's FRU data as the client wrote it, in the
	// protocol's format; nil: the factory data.
	Image []byte `json:"memory,omitempty"`
}

// maxFRUImage is the largest FRUOverrides.Image in bytes.
const maxFRUImage = 1 << 16

// SetFRUOverrides replaces the FRU overrides.
type SetFRUOverrides struct{ FRUOverrides }

func (c SetFRUOverrides) apply(m *Machine, _ time.Time) ([]Event, error) {
	if len(c.Image) > maxFRUImage {
		return nil, fmt.Errorf("memory of labels: %d bytes: must be at most %d: %w", len(c.Image), maxFRUImage, ErrUnknown)
	}
	overrides := &c.FRUOverrides
	if reflect.DeepEqual(*overrides, FRUOverrides{}) {
		overrides = nil
	}
	if !reflect.DeepEqual(overrides, m.st.FRUOverrides) {
		m.st.FRUOverrides = overrides
		m.applyFRUOverrides()
	}
	return nil, nil
}

// applyFRUOverrides puts the overrides into the machine's identity.
func (m *Machine) applyFRUOverrides() {
	if m.appliedOverrides == m.st.FRUOverrides {
		return
	}
	m.appliedOverrides, m.identity = m.st.FRUOverrides, m.factoryIdentity
	if m.st.FRUOverrides == nil {
		return
	}
	identity, over := *m.factoryIdentity, m.st.FRUOverrides.FRUInfo
	for _, f := range []struct {
		to   *string
		text string
	}{
		{&identity.Manufacturer, over.Manufacturer}, {&identity.Model, over.Model}, {&identity.PartNumber, over.PartNumber}, {&identity.Serial, over.Serial},
		{&identity.ChassisPart, over.ChassisPart}, {&identity.ChassisSerial, over.ChassisSerial},
	} {
		if f.text != "" {
			*f.to = f.text
		}
	}
	m.identity = &identity
}
