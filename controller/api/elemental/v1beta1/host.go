package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

// HostPhase is the phase of a host's agent, as the agent reports it.
type HostPhase string

// The phases.
const (
	PhaseRegistering            HostPhase = "Registering"
	PhaseFinalizingRegistration HostPhase = "Finalizing Registration"
	PhaseInstalling             HostPhase = "Installing"
	PhaseBootstrapping          HostPhase = "Bootstrapping"
	PhaseRunning                HostPhase = "Running"
	PhaseTriggeringReset        HostPhase = "Triggering Reset"
	PhaseResetting              HostPhase = "Resetting"
	PhaseOSVersionReconcile     HostPhase = "Reconciling OS Version"
)

// ElementalHostSpec describes the use of a host.
type ElementalHostSpec struct {
	// BootstrapSecret is the Secret with the data that the server bootstraps from.
	// +optional
	BootstrapSecret *corev1.ObjectReference `json:"bootstrapSecret,omitempty"`
	// MachineRef is the ElementalMachine that has the host.
	// +optional
	MachineRef *corev1.ObjectReference `json:"machineRef,omitempty"`
	// PubKey is the public key of the server (PEM, PKIX), which its tokens are checked with.
	// +optional
	PubKey string `json:"pubKey,omitempty"`
	// OSVersionManagement is handed to the agent's plugin, which brings the server to that
	// version of its operating system.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	OSVersionManagement map[string]runtime.RawExtension `json:"osVersionManagement,omitempty"`
}

// ElementalHostStatus is the state of a host.
type ElementalHostStatus struct {
	// +optional
	Phase HostPhase `json:"phase,omitempty"`
	// +optional
	Conditions capi.Conditions `json:"conditions,omitempty"`
}

// ElementalHost is a server that has registered.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=elementalhosts,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster that the host serves"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.labels['elementalhost\\.infrastructure\\.cluster\\.x-k8s\\.io/machine-name']",description="Machine that the host serves"
// +kubebuilder:printcolumn:name="ElementalMachine",type="string",JSONPath=".spec.machineRef.name",description="ElementalMachine that has the host"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="What the agent does"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Summary of the conditions"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ElementalHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ElementalHostSpec   `json:"spec,omitempty"`
	Status ElementalHostStatus `json:"status,omitempty"`
}

// ElementalHostList is a list of ElementalHosts.
//
// +kubebuilder:object:root=true
type ElementalHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElementalHost `json:"items"`
}

// GetConditions returns the conditions.
func (h *ElementalHost) GetConditions() capi.Conditions { return h.Status.Conditions }

// SetConditions replaces the conditions.
func (h *ElementalHost) SetConditions(c capi.Conditions) { h.Status.Conditions = c }
