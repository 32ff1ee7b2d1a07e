package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

// ElementalMachineSpec selects the host of a machine.
type ElementalMachineSpec struct {
	// ProviderID is elemental://NAMESPACE/HOST, as the Node of the workload cluster has it.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
	// Selector selects hosts by their labels. Without it any host is taken.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// HostRef is the ElementalHost that the machine has.
	// +optional
	HostRef *corev1.ObjectReference `json:"hostRef,omitempty"`
	// OSVersionManagement is copied to the host.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XPreserveUnknownFields
	OSVersionManagement map[string]runtime.RawExtension `json:"osVersionManagement,omitempty"`
}

// ElementalMachineStatus is the state of a machine.
type ElementalMachineStatus struct {
	// +optional
	// +kubebuilder:default=false
	Ready bool `json:"ready,omitempty"`
	// +optional
	Conditions capi.Conditions `json:"conditions,omitempty"`
	// FailureDomains is part of Cluster API's contract. No controller writes it.
	// +optional
	FailureDomains capi.FailureDomains `json:"failureDomains,omitempty"`
}

// ElementalMachine is the infrastructure of a Machine of Cluster API: one ElementalHost.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=elementalmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind==\"Machine\")].name",description="Machine that owns this object"
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="Provider ID"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Summary of the conditions"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ElementalMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ElementalMachineSpec   `json:"spec,omitempty"`
	Status ElementalMachineStatus `json:"status,omitempty"`
}

// ElementalMachineList is a list of ElementalMachines.
//
// +kubebuilder:object:root=true
type ElementalMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElementalMachine `json:"items"`
}

// GetConditions returns the conditions.
func (m *ElementalMachine) GetConditions() capi.Conditions { return m.Status.Conditions }

// SetConditions replaces the conditions.
func (m *ElementalMachine) SetConditions(c capi.Conditions) { m.Status.Conditions = c }

// ElementalMachineTemplateSpec has the machine that is made from a template.
type ElementalMachineTemplateSpec struct {
	Template ElementalMachineTemplateResource `json:"template"`
}

// ElementalMachineTemplateResource is a machine without a name.
type ElementalMachineTemplateResource struct {
	// +optional
	ObjectMeta capi.ObjectMeta      `json:"metadata,omitempty"`
	Spec       ElementalMachineSpec `json:"spec"`
}

// ElementalMachineTemplate is what Cluster API makes ElementalMachines from.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=elementalmachinetemplates,scope=Namespaced,categories=cluster-api,shortName=emt
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
type ElementalMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ElementalMachineTemplateSpec `json:"spec,omitempty"`
}

// ElementalMachineTemplateList is a list of ElementalMachineTemplates.
//
// +kubebuilder:object:root=true
type ElementalMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElementalMachineTemplate `json:"items"`
}
