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
	// ByID is the first of ByIDs, which have replaced it.
	// +optional
	ByID string `json:"byID,omitempty"`
	// ByIDs are paths below /dev/disk/by-id.
	// +optional
	ByIDs []string `json:"byIDs,omitempty"`
	// ByPath is the first of ByPaths, which have replaced it.
	// +optional
	ByPath string `json:"byPath,omitempty"`
	// ByPaths are paths below /dev/disk/by-path.
	// +optional
	ByPaths []string `json:"byPaths,omitempty"`
	// BusPath is the path of the disk's bus.
	// +optional
	BusPath string `json:"busPath,omitempty"`
	// +optional
	Partitions []DiskPartition `json:"partitions,omitempty"`
}

// DiskPartition is a partition of a disk.
type DiskPartition struct {
	Name string `json:"name"`
	// +optional
	Size int64 `json:"size,omitempty"` // bytes
	// +optional
	Label string `json:"label,omitempty"`
	// +optional
	ByIDs []string `json:"byIDs,omitempty"`
	// +optional
	ByPaths []string `json:"byPaths,omitempty"`
}
