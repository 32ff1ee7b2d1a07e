package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostInfo is what the agent reports of a machine's operating system and hardware.
type HostInfo struct {
	// +optional
	BootTime *metav1.Time `json:"bootTime,omitempty"`
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// +optional
	KernelVersion string `json:"kernelVersion,omitempty"`
	// +optional
	OS *OSInfo `json:"os,omitempty"`
	// +optional
	Timezone string `json:"timezone,omitempty"`
	// +optional
	Repositories []Repository `json:"repositories,omitempty"`
	// UpdatesAvailable is whether packages have updates; an agent may report their number.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	UpdatesAvailable *UpdatesAvailable `json:"updatesAvailable,omitempty"`
	// +optional
	Hardware *Hardware `json:"hardware,omitempty"`
	// RebootRequired is true while /run/day2/reboot-required exists.
	// +optional
	RebootRequired bool `json:"rebootRequired,omitempty"`
	// RebootReason is the content of that file.
	// +optional
	RebootReason string `json:"rebootReason,omitempty"`
}

// UpdatesAvailable is read from a boolean or a number, and written as a boolean.
type UpdatesAvailable bool

// UnmarshalJSON implements json.Unmarshaler.
func (u *UpdatesAvailable) UnmarshalJSON(b []byte) error {
	var n float64
	if json.Unmarshal(b, &n) == nil {
		*u = n > 0
		return nil
	}
	return json.Unmarshal(b, (*bool)(u))
}

// OSInfo identifies the operating system, with the names of go-sysinfo.
type OSInfo struct {
	// +optional
	Type string `json:"type,omitempty"`
	// +optional
	Family string `json:"family,omitempty"`
	// +optional
	Platform string `json:"platform,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Major int `json:"major,omitempty"`
	// +optional
	Minor int `json:"minor,omitempty"`
	// +optional
	Patch int `json:"patch,omitempty"`
	// +optional
	Build string `json:"build,omitempty"`
	// +optional
	Codename string `json:"codename,omitempty"`
}

// Repository is a package repository.
type Repository struct {
	URI string `json:"uri"`
	// +optional
	Release string `json:"release,omitempty"`
	// +optional
	Section []string `json:"section,omitempty"`
}

// Hardware is the hardware of a machine.
type Hardware struct {
	// +optional
	CPU HardwareCPU `json:"cpu,omitzero"`
	// +optional
	Memory HardwareMemory `json:"memory,omitzero"`
	// +optional
	Storage HardwareStorage `json:"storage,omitzero"`
	// +optional
	Network HardwareNetwork `json:"network,omitzero"`
}

// HardwareCPU counts the processors.
type HardwareCPU struct {
	// +optional
	Count int `json:"count,omitempty"`
	// +optional
	Threads int `json:"threads,omitempty"`
}

// HardwareMemory is the size of the memory.
type HardwareMemory struct {
	// +optional
	Total int64 `json:"total,omitempty"` // bytes
}

// HardwareStorage lists the disks.
type HardwareStorage struct {
	// +optional
	Disks []Disk `json:"disks,omitempty"`
}

// HardwareNetwork lists the NICs.
type HardwareNetwork struct {
	// +optional
	NICs []NIC `json:"nics,omitempty"`
}

// NIC is a network interface.
type NIC struct {
	Name string `json:"name"`
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
	// +optional
	IsVirtual bool `json:"isVirtual,omitempty"`
	// +optional
	PCIAddress string `json:"pciAddress,omitempty"`
}
