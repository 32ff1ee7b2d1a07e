package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Runner is the part of the agent that executes a state item.
// +kubebuilder:validation:Enum=downloader;bash;ansible
type Runner string

// The runners.
const (
	RunnerDownloader Runner = "downloader"
	RunnerBash       Runner = "bash"
	RunnerAnsible    Runner = "ansible"
)

// Phase is the stage of a machine's life in which a state item is executed.
// +kubebuilder:validation:Enum=prepare;deploy;reconfigure
type Phase string

// The phases, in their order.
const (
	PhasePrepare     Phase = "prepare"
	PhaseDeploy      Phase = "deploy"
	PhaseReconfigure Phase = "reconfigure"
)

// LCMStateItem is one step that the agent executes on a machine. The order of the fields
// is that of the item's hash.
type LCMStateItem struct {
	Runner Runner `json:"runner"`
	// Name identifies the item in a list, and its status in LCMMachine.status.
	// +kubebuilder:validation:MinLength=1
	Name    string `json:"name"`
	Version string `json:"version"`
	// +optional
	Params map[string]string `json:"params,omitempty"`
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// StateItemStatus is the result of the last execution of a state item.
type StateItemStatus struct {
	// Hash is the hash of the item as it was executed.
	Hash     string `json:"hash"`
	ExitCode int    `json:"exitCode"`
	// +optional
	Message string `json:"message,omitempty"`
	// Result is what the runner returned.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Result *runtime.RawExtension `json:"result,omitempty"`
	// Attempt counts the executions of an item with this hash, from 1.
	Attempt int `json:"attempt"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// MachineType is the role of a machine in its cluster.
// +kubebuilder:validation:Enum=control;worker;bastion;unassigned
type MachineType string

// The types.
const (
	MachineControl    MachineType = "control"
	MachineWorker     MachineType = "worker"
	MachineBastion    MachineType = "bastion"
	MachineUnassigned MachineType = "unassigned"
)

// LCMType is the Kubernetes distribution of a cluster: ucp is MKE, byo a cluster that LCM
// does not install.
// +kubebuilder:validation:Enum=ucp;byo;k0s
type LCMType string

// The types.
const (
	LCMTypeUCP LCMType = "ucp"
	LCMTypeBYO LCMType = "byo"
	LCMTypeK0s LCMType = "k0s"
)

// Components are versions of a cluster's components.
type Components struct {
	// +optional
	UCPVersion string `json:"ucpVersion,omitempty"`
}

// Endpoint is a host and port.
type Endpoint struct {
	Host string `json:"host"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
