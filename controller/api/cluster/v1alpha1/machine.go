package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
)

// MachineSpec is the desired state of a machine.
type MachineSpec struct {
	ProviderSpec MachineProviderSpec `json:"providerSpec"`
	// +optional
	Versions MachineVersions `json:"versions,omitzero"`
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
	// Taints are those that the provider gives the machine's Node.
	// +optional
	Taints []Taint `json:"taints,omitempty"`
}

// Taint is a taint of a Node, as in Kubernetes.
type Taint struct {
	Key string `json:"key"`
	// +optional
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// MachineProviderSpec has the provider's part of a machine.
type MachineProviderSpec struct {
	Value baremetalv1.MachineProviderSpec `json:"value"`
}

// MachineVersions are versions of Kubernetes.
type MachineVersions struct {
	// +optional
	Kubelet string `json:"kubelet,omitempty"`
	// +optional
	ControlPlane string `json:"controlPlane,omitempty"`
}

// MachineStatus is the observed state of a machine.
type MachineStatus struct {
	// +optional
	NodeRef *NodeReference `json:"nodeRef,omitempty"`
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`
	// +optional
	Versions *MachineVersions `json:"versions,omitempty"`
	// +optional
	ErrorReason *string `json:"errorReason,omitempty"`
	// +optional
	ErrorMessage *string `json:"errorMessage,omitempty"`
	// +optional
	ProviderStatus *baremetalv1.MachineProviderStatus `json:"providerStatus,omitempty"`
	// +optional
	Addresses []NodeAddress `json:"addresses,omitempty"`
	// +optional
	Phase *string `json:"phase,omitempty"`
	// ProviderID is that of the spec.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// InstanceName is the server's host name.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`
}

// NodeReference names a Node of the cluster.
type NodeReference struct {
	// +optional
	Kind string `json:"kind,omitempty"`
	Name string `json:"name"`
	// +optional
	UID string `json:"uid,omitempty"`
}

// NodeAddress is an address of a machine, as in Kubernetes' Node.
type NodeAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Machine is a node of a cluster, and all that is needed to provision it.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group of the old Cluster API"
// +kubebuilder:resource:path=machines,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.sigs\.k8s\.io/cluster-name`
// +kubebuilder:printcolumn:name="Host",type=string,priority=1,JSONPath=`.metadata.annotations.metal3\.io/BareMetalHost`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.providerStatus.status`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.providerStatus.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineSpec `json:"spec"`
	// +optional
	Status MachineStatus `json:"status,omitzero"`
}

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
