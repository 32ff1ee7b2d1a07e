package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
)

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// +optional
	ClusterNetwork ClusterNetwork      `json:"clusterNetwork,omitzero"`
	ProviderSpec   ClusterProviderSpec `json:"providerSpec"`
}

// ClusterNetwork are the networks of a cluster.
type ClusterNetwork struct {
	// +optional
	Services NetworkRanges `json:"services,omitzero"`
	// +optional
	Pods NetworkRanges `json:"pods,omitzero"`
	// +optional
	ServiceDomain string `json:"serviceDomain,omitempty"`
}

// NetworkRanges are networks.
type NetworkRanges struct {
	// +optional
	CIDRBlocks []string `json:"cidrBlocks,omitempty"`
}

// ClusterProviderSpec has the provider's part of a cluster.
type ClusterProviderSpec struct {
	Value baremetalv1.ClusterProviderSpec `json:"value"`
}

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// +optional
	APIEndpoints []APIEndpoint `json:"apiEndpoints,omitempty"`
	// +optional
	ErrorReason string `json:"errorReason,omitempty"`
	// +optional
	ErrorMessage string `json:"errorMessage,omitempty"`
	// +optional
	ProviderStatus *baremetalv1.ClusterProviderStatus `json:"providerStatus,omitempty"`
}

// APIEndpoint is an address of a cluster's API.
type APIEndpoint struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// Cluster is a cluster, and all that belongs to it rather than to one of its machines.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group of the old Cluster API"
// +kubebuilder:resource:path=clusters,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.providerSpec.value.release`
// +kubebuilder:printcolumn:name="Requested",type=integer,JSONPath=`.status.providerStatus.nodes.requested`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.providerStatus.nodes.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec"`
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
