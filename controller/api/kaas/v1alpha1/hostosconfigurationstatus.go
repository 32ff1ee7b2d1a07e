package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The names of this file are in no public text, but for moduleDeprecatedBy and error: they
// may change with it.

// HostOSConfigurationStatus is the result of the validation and of the execution. The
// controller of hostos writes isValid, containsDeprecatedModules, specUpdatedAt, updatedAt and configs,
// the bare metal provider all others.
type HostOSConfigurationStatus struct {
	// IsValid is true when every config may be applied; absent before the first
	// validation.
	// +optional
	IsValid *bool `json:"isValid,omitempty"`
	// SpecUpdatedAt is when a change of the spec was first validated.
	// +optional
	SpecUpdatedAt *metav1.Time `json:"specUpdatedAt,omitempty"`
	// UpdatedAt is when the result of the validation last changed.
	// +optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// ObservedGeneration is the generation of the spec that was validated.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	ContainsDeprecatedModules bool `json:"containsDeprecatedModules,omitempty"`
	// ControllerUpdate is reserved.
	// +optional
	ControllerUpdate bool `json:"controllerUpdate,omitempty"`
	// Configs are the results of spec.configs, in their order.
	// +optional
	Configs []ConfigStatus `json:"configs,omitempty"`
	// MachinesStates are the states of the selected machines, and of those that still have
	// state items, by NAMESPACE/NAME. When they exceed what an object can contain, hashes are
	// left out, then the items that are neither running nor failed, and then lastFailure.
	// +optional
	// +mapType=atomic
	MachinesStates map[string]ConfigMachineState `json:"machinesStates,omitempty"`
	// MachinesTotal is the number of machines that the object selects.
	// +optional
	MachinesTotal int32 `json:"machinesTotal,omitempty"`
	// MachinesDone is the number of those on which all items of the present spec have succeeded.
	// +optional
	MachinesDone int32 `json:"machinesDone,omitempty"`
	// Progress is MachinesDone and MachinesTotal as text, such as 2/3.
	// +optional
	Progress string `json:"progress,omitempty"`
	// ModulesText lists the modules with their versions in one text of at most 1024 bytes.
	// +optional
	ModulesText string `json:"modulesText,omitempty"`
	// LastFailure is the latest failure: its machine, item, attempt and the first line of its
	// message. It stays while the item is tried again, until the item succeeds or the machine no
	// longer has it; then it is that of another item that has failed, if there is one.
	// +optional
	LastFailure string `json:"lastFailure,omitempty"`
	// Conditions are Valid and Applied.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// StateItems are the names of the object's state items in LCMClusters and LCMMachines. The
	// provider records a name here before it writes the item.
	// +optional
	// +listType=set
	StateItems []string `json:"stateItems,omitempty"`
}

// ConfigStatus is the result of the validation of a config.
type ConfigStatus struct {
	ModuleName    ModuleName `json:"moduleName"`
	ModuleVersion SemVer     `json:"moduleVersion"`
	// ModulesReference is the HostOSConfigurationModules that has the module.
	// +optional
	ModulesReference string `json:"modulesReference,omitempty"`
	// +optional
	ModulePlaybook string `json:"modulePlaybook,omitempty"`
	// +optional
	ModuleURL string `json:"moduleURL,omitempty"`
	// +optional
	ModuleHashsum string `json:"moduleHashsum,omitempty"`
	// SecretObjectVersion is the resourceVersion of the Secret that was validated.
	// +optional
	SecretObjectVersion string `json:"secretObjectVersion,omitempty"`
	// SecretDataVersion is the resourceVersion that the Secret had when its data changed last, as far
	// as the controller has seen: another label gives the Secret another version, and executes nothing.
	// The specification does not have it.
	// +optional
	SecretDataVersion string `json:"secretDataVersion,omitempty"`
	// +optional
	ModuleDeprecatedBy []ModuleReference `json:"moduleDeprecatedBy,omitempty"`
	// +optional
	SupportedDistributions []string `json:"supportedDistributions,omitempty"`
	// +optional
	Error string `json:"error,omitempty"`
}

// ConfigMachineState is the state of a machine's state items.
type ConfigMachineState struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Selected bool `json:"selected,omitempty"`
	// +optional
	SecretValuesChanged bool `json:"secretValuesChanged,omitempty"`
	// Message says why items of the machine are withheld.
	// +optional
	Message string `json:"message,omitempty"`
	// ConfigStateItemsStatuses are the states by MODULE-VERSION and by the item's name.
	// +optional
	ConfigStateItemsStatuses map[string]map[string]ConfigItemStatus `json:"configStateItemsStatuses,omitempty"`
}

// ItemState is the state of a state item.
// +kubebuilder:validation:Enum="Not Started";Running;Success;Failed
type ItemState string

// The states.
const (
	ItemNotStarted ItemState = "Not Started"
	ItemRunning    ItemState = "Running"
	ItemSuccess    ItemState = "Success"
	ItemFailed     ItemState = "Failed"
)

// ConfigItemStatus is the state of a state item on a machine.
type ConfigItemStatus struct {
	State ItemState `json:"state"`
	// Hash is that of LCMMachine.status, once the state is Success.
	// +optional
	Hash string `json:"hash,omitempty"`
	// LastFailure is the last attempt that has failed, until the item succeeds.
	// +optional
	LastFailure *ItemFailure `json:"lastFailure,omitempty"`
}

// ItemFailure is an execution of a state item that has failed.
type ItemFailure struct {
	// Attempt counts the executions of the item with its hash, from 1.
	Attempt int `json:"attempt"`
	// Message is the first line of the item's message, or its exit code.
	Message string `json:"message"`
	// FinishedAt is when the agent has reported it.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// The conditions of a HostOSConfiguration.
const (
	// ConditionValid is False when a config has an error.
	ConditionValid = "Valid"
	// ConditionApplied is True when all items have succeeded on all selected machines.
	ConditionApplied = "Applied"
)
