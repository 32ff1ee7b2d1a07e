package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unverified: the JSON names are those of the product's documentation, whose Go types are
// not public. The values of type, workBy, useFor, partflags, level and metadata, the form
// of sizes, and the fields of volumeGroups[] and of the members of a RAID or a volume group
// are in no public schema. The short name is a choice of this project. The older public types
// give sizes in GiB, as numbers; a size with a suffix takes precedence.

// BareMetalHostProfileSpec describes the storage and the operating system of servers.
type BareMetalHostProfileSpec struct {
	// PreDeployScript runs before the operating system is configured.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.startsWith('#!')",message="begin with #! and an interpreter"
	PreDeployScript string `json:"preDeployScript,omitempty"`
	// PostDeployScript runs after the operating system is configured.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.startsWith('#!')",message="begin with #! and an interpreter"
	PostDeployScript string `json:"postDeployScript,omitempty"`
	// +optional
	GrubConfig *GrubConfig `json:"grubConfig,omitempty"`
	// Devices are the disks that a server must have, each another one. The first has the
	// operating system.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Devices []ProfileDevice `json:"devices,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	SoftRaidDevices []SoftRaidDevice `json:"softRaidDevices,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	VolumeGroups []VolumeGroup `json:"volumeGroups,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	LogicalVolumes []LogicalVolume `json:"logicalVolumes,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	FileSystems []FileSystem `json:"fileSystems,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	RootFSURL string `json:"rootFSURL,omitempty"`
	// +optional
	KernelParameters *KernelParameters `json:"kernelParameters,omitempty"`
}

// GrubConfig configures the boot loader.
type GrubConfig struct {
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ToDevices []string `json:"toDevices,omitempty"`
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ToDeviceFailOver FailOver `json:"toDeviceFailOver,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	DefaultGrubOptions []string `json:"defaultGrubOptions,omitempty"`
}

// FailOver is a device; older manifests have true or false.
type FailOver string

// UnmarshalJSON implements json.Unmarshaler.
func (f *FailOver) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*f = FailOver(v)
	case bool:
		*f = ""
		if v {
			*f = "true"
		}
	case nil:
	default:
		return fmt.Errorf("toDeviceFailOver %s: give a device", b)
	}
	return nil
}

// ProfileDevice is a disk and its partitions.
type ProfileDevice struct {
	Device Device `json:"device"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Partitions []Partition `json:"partitions,omitempty"`
}

// Device describes a disk.
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || !has(self.maxSize) || !isQuantity(self.minSize) || !isQuantity(self.maxSize) || quantity(self.minSize).compareTo(quantity(self.maxSize)) <= 0",message="minSize is above maxSize"
type Device struct {
	// ByName is a path of the disk below /dev.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.startsWith('/dev/')",message="give a path below /dev/"
	ByName string `json:"byName,omitempty"`
	// WorkBy lists ways to name the disk, by_id, by_path, by_wwn and by_name, separated by
	// commas; the first that the disk has is used.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^ *by_(id|path|wwn|name) *(, *by_(id|path|wwn|name) *)*$')",message="give some of by_id, by_path, by_wwn and by_name, separated by commas"
	WorkBy string `json:"workBy,omitempty"`
	// MinSize is the least size of the disk, such as 60Gi.
	// +optional
	MinSize Size `json:"minSize,omitempty"`
	// MaxSize is the greatest size of the disk.
	// +optional
	MaxSize Size `json:"maxSize,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinSizeGiB float64 `json:"minSizeGiB,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxSizeGiB float64 `json:"maxSizeGiB,omitempty"`
	// Type is the type of the disk, in any case.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.lowerAscii() in ['hdd', 'ssd', 'nvme']",message="give one of hdd, ssd and nvme"
	Type string `json:"type,omitempty"`
	// Wipe is what WipeDevice has replaced.
	// +optional
	Wipe bool `json:"wipe,omitempty"`
	// +optional
	WipeDevice *WipeDevice `json:"wipeDevice,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=16
	UseFor []string `json:"useFor,omitempty"`
}

// WipeDevice says how a disk is wiped. Its further fields are in no public type.
type WipeDevice struct {
	// +optional
	EraseMetadata *WipeMethod `json:"eraseMetadata,omitempty"`
	// +optional
	EraseDevice *WipeMethod `json:"eraseDevice,omitempty"`
}

// WipeMethod is a way to wipe a disk.
// +kubebuilder:pruning:PreserveUnknownFields
type WipeMethod struct {
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// Least returns the least size of the disk, "" when there is no bound.
func (d *Device) Least() Size { return cmp.Or(d.MinSize, gibibytes(d.MinSizeGiB)) }

// Greatest returns the greatest size of the disk, "" when there is no bound.
func (d *Device) Greatest() Size { return cmp.Or(d.MaxSize, gibibytes(d.MaxSizeGiB)) }

// gibibytes returns a number of GiB as a Size, in MiB where it is no integer; "" for 0.
func gibibytes(n float64) Size {
	switch {
	case n <= 0:
		return ""
	case n == math.Trunc(n):
		return Size(strconv.FormatFloat(n, 'f', 0, 64) + "Gi")
	}
	return Size(strconv.FormatFloat(math.Trunc(n*1024), 'f', 0, 64) + "Mi")
}

// Size is a number of bytes, with a suffix of Kubernetes' quantities. The API compares two
// of them, for which their length must be bounded.
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="isQuantity(self) && !self.startsWith('-')",message="give a size such as 60Gi"
type Size string

// Partition is a partition of a disk.
type Partition struct {
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// Size 0 is the rest of the disk.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeGiB float64 `json:"sizeGiB,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=16
	PartFlags []string `json:"partflags,omitempty"`
	// +optional
	Wipe bool `json:"wipe,omitempty"`
}

// Member is a part of a RAID or of a volume group: a partition or RAID of the profile, a disk, or
// disks of a type and size.
type Member struct {
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Partition string `json:"partition,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Device string `json:"device,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SoftRaidDevice string `json:"softRaidDevice,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=8
	Type string `json:"type,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=24
	MinSize string `json:"minSize,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=24
	MaxSize string `json:"maxSize,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinSizeGiB float64 `json:"minSizeGiB,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxSizeGiB float64 `json:"maxSizeGiB,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxDevices int `json:"maxDevices,omitempty"`
}

// SoftRaidDevice is a RAID of partitions, which the operating system runs.
type SoftRaidDevice struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Level string `json:"level,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Metadata string `json:"metadata,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Devices []Member `json:"devices"`
}

// VolumeGroup is a volume group of LVM.
type VolumeGroup struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// +optional
	// +kubebuilder:validation:MaxLength=24
	MinSize string `json:"minSize,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinSizeGiB float64 `json:"minSizeGiB,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Devices []Member `json:"devices,omitempty"`
}

// LogicalVolume is a logical volume of LVM.
type LogicalVolume struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// VG is the name of the volume group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	VG string `json:"vg"`
	// Size 0 is the rest of the group.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeGiB float64 `json:"sizeGiB,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Type string `json:"type,omitempty"`
}

// FileSystem is a file system on a partition, a RAID or a logical volume.
// +kubebuilder:validation:XValidation:rule="(has(self.partition) ? 1 : 0) + (has(self.softRaidDevice) ? 1 : 0) + (has(self.logicalVolume) ? 1 : 0) == 1",message="give one of partition, softRaidDevice and logicalVolume"
type FileSystem struct {
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MountPoint string `json:"mountPoint,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MountOpts string `json:"mountOpts,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Opts string `json:"opts,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Partition string `json:"partition,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SoftRaidDevice string `json:"softRaidDevice,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	LogicalVolume string `json:"logicalVolume,omitempty"`
	// FileSystem is the type, such as ext4.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	FileSystem string `json:"fileSystem"`
}

// KernelParameters configure the kernel of the operating system.
type KernelParameters struct {
	// Sysctl are values of /proc/sys by their names (sysctl.d(5)).
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9_*][-A-Za-z0-9_.*/]*$'))",message="a name has letters, digits and ._-/* alone"
	Sysctl map[string]SysctlValue `json:"sysctl,omitempty"`
	// Modules are files of modprobe.d(5).
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=filename
	Modules []ModuleFile `json:"modules,omitempty"`
}

// SysctlValue is a value of /proc/sys.
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.contains('\\n')",message="a value has one line"
type SysctlValue string

// ModuleFile is a file of modprobe.d(5).
type ModuleFile struct {
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9._]*[.]conf$')",message="give the name of a file that ends with .conf, without a directory"
	Filename string `json:"filename"`
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content"`
}

// BareMetalHostProfile describes the storage and the operating system of the servers whose
// Machines name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=baremetalhostprofiles,scope=Namespaced,shortName=bmhp
// +kubebuilder:printcolumn:name="Root disk",type=string,JSONPath=`.spec.devices[0].device.byName`
// +kubebuilder:printcolumn:name="Min size",type=string,JSONPath=`.spec.devices[0].device.minSize`
// +kubebuilder:printcolumn:name="Max size",type=string,JSONPath=`.spec.devices[0].device.maxSize`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.devices[0].device.type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BareMetalHostProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BareMetalHostProfileSpec `json:"spec"`
}

// BareMetalHostProfileList is a list of BareMetalHostProfiles.
//
// +kubebuilder:object:root=true
type BareMetalHostProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BareMetalHostProfile `json:"items"`
}
