package v1alpha1

// The names of this file are in no public text: they may change with it.

// Disk is a disk.
type Disk struct {
	Name string `json:"name"`
	// +optional
	Size int64 `json:"size,omitempty"` // bytes
	// +optional
	Vendor string `json:"vendor,omitempty"`
	// +optional
	Model string `json:"model,omitempty"`
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// +optional
	WWN string `json:"wwn,omitempty"`
	// +optional
	Type string `json:"type,omitempty"`
}
