package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Gate says whether a step of day 1 waits for the operator.
// +kubebuilder:validation:Enum=manual;auto
type Gate string

// The gates.
const (
	GateManual Gate = "manual"
	GateAuto   Gate = "auto"
)

// DeletionPolicy says how a machine leaves its cluster.
// +kubebuilder:validation:Enum=graceful;unsafe;forced
type DeletionPolicy string

// The policies.
const (
	DeletionGraceful DeletionPolicy = "graceful"
	DeletionUnsafe   DeletionPolicy = "unsafe"
	DeletionForced   DeletionPolicy = "forced"
)

// MachineProviderSpec is spec.providerSpec.value of a Machine, of kind
// BareMetalMachineProviderSpec.
// +kubebuilder:pruning:PreserveUnknownFields
type MachineProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// Image replaces the image of the release.
	// +optional
	Image *Image `json:"image,omitempty"`
	// +optional
	UserData *ObjectReference `json:"userData,omitempty"`
	// HostSelector selects the BareMetalHosts that the machine may claim.
	// +optional
	HostSelector HostSelector `json:"hostSelector,omitzero"`
	// +optional
	BareMetalHostProfile *ObjectReference `json:"bareMetalHostProfile,omitempty"`
	// AnsibleExtraPassthrough is an object, or a string of its JSON.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	AnsibleExtraPassthrough *runtime.RawExtension `json:"ansibleExtraPassthrough,omitempty"`
	// +optional
	L2TemplateIfMappingOverride []string `json:"l2TemplateIfMappingOverride,omitempty"`
	// +optional
	L2TemplateSelector *L2TemplateSelector `json:"l2TemplateSelector,omitempty"`
	// NodeLabels are labels of the machine's Node that the release allows.
	// +optional
	NodeLabels []KeyValue `json:"nodeLabels,omitempty"`
	// +optional
	Distribution string `json:"distribution,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpgradeIndex *int32 `json:"upgradeIndex,omitempty"`
	// +optional
	Delete bool `json:"delete,omitempty"`
	// +optional
	// +kubebuilder:default=unsafe
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Day1Provisioning manual stops the machine before its image is written.
	// +optional
	// +kubebuilder:default=manual
	Day1Provisioning Gate `json:"day1Provisioning,omitempty"`
	// Day1Deployment manual stops the machine before LCM deploys to it.
	// +optional
	// +kubebuilder:default=manual
	Day1Deployment Gate `json:"day1Deployment,omitempty"`
}

// Image is an image of an operating system.
type Image struct {
	URL string `json:"url"`
	// +optional
	Checksum string `json:"checksum,omitempty"`
}

// ObjectReference names an object.
type ObjectReference struct {
	Name string `json:"name"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// HostSelector selects hosts by their labels.
type HostSelector struct {
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// L2TemplateSelector selects an L2Template by its name or by a label.
type L2TemplateSelector struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Label string `json:"label,omitempty"`
}

// KeyValue is a label.
type KeyValue struct {
	Key string `json:"key"`
	// +optional
	Value string `json:"value,omitempty"`
}

// MachineProviderStatus is status.providerStatus of a Machine, of kind
// BareMetalMachineProviderStatus.
// +kubebuilder:pruning:PreserveUnknownFields
type MachineProviderStatus struct {
	metav1.TypeMeta `json:",inline"`

	// Status is the step of the ladder that the machine is on: Provision,
	// AwaitsProvisioning, AwaitsDeployment, then the states of its LCMMachine; Deleting once it
	// is deleted.
	// +optional
	Status string `json:"status,omitempty"`
	// +optional
	PrivateIP string `json:"privateIp,omitempty"`
	// +optional
	PublicIP string `json:"publicIp,omitempty"`
	// +optional
	Hardware *MachineHardware `json:"hardware,omitempty"`
	// +optional
	ProviderInstanceState *InstanceState `json:"providerInstanceState,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// +optional
	UpgradeIndex *int32 `json:"upgradeIndex,omitempty"`
	// +optional
	Reboot *RebootRequest `json:"reboot,omitempty"`
	// +optional
	Delete bool `json:"delete,omitempty"`
	// +optional
	PrepareDeletionPhase string `json:"prepareDeletionPhase,omitempty"`
	// +optional
	Ready bool `json:"ready,omitempty"`
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// MachineHardware is a summary of a server's hardware.
type MachineHardware struct {
	// +optional
	CPU int `json:"cpu,omitempty"`
	// RAM is the memory in GiB. Statuses of before have a quantity, such as 16384Mi.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	RAM GiB `json:"ram,omitempty"`
	// +optional
	Storage []MachineDisk `json:"storage,omitempty"`
}

// MachineDisk is a disk of a server.
type MachineDisk struct {
	Name string `json:"name"`
	// Size is in GiB. Statuses of before have a quantity, such as 100Gi.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Size GiB `json:"size,omitempty"`
	// Type is hdd, ssd or nvme.
	// +optional
	Type string `json:"type,omitempty"`
	// ByID is a path below /dev/disk/by-id.
	// +optional
	ByID string `json:"byID,omitempty"`
	// ByPath is a path below /dev/disk/by-path.
	// +optional
	ByPath string `json:"byPath,omitempty"`
}

// InstanceState is the state of the BareMetalHost that a machine has claimed.
type InstanceState struct {
	// +optional
	ID string `json:"id,omitempty"`
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	Ready bool `json:"ready,omitempty"`
}

// RebootRequest says whether the operating system asks for a reboot, and why.
type RebootRequest struct {
	// +optional
	Required bool `json:"required,omitempty"`
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ConditionNotApplied is the type of the condition of a machine or cluster that names the fields
// of its spec that nothing acts on. It is there while the spec sets some, and is always ready.
const ConditionNotApplied = "NotApplied"

// The types of a machine's conditions.
const (
	ConditionKubelet          = "Kubelet"
	ConditionLCM              = "LCM"
	ConditionProviderInstance = "ProviderInstance"
	ConditionSwarm            = "Swarm"
	ConditionMaintenance      = "Maintenance"
	ConditionGracefulReboot   = "GracefulReboot"
	ConditionReboot           = "Reboot"
	ConditionPrepareDeletion  = "PrepareDeletion"
)

// Condition is a condition of a machine or cluster. It is neither Kubernetes' condition
// nor that of the newer Cluster API.
type Condition struct {
	Type  string `json:"type"`
	Ready bool   `json:"ready"`
	// +optional
	Message string `json:"message,omitempty"`
}
