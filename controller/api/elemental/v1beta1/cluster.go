package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

// ElementalClusterSpec describes the infrastructure that a cluster needs.
type ElementalClusterSpec struct {
	// ControlPlaneEndpoint is the address of the cluster's API. Users give it: nothing is made
	// for it.
	// +optional
	ControlPlaneEndpoint capi.APIEndpoint `json:"controlPlaneEndpoint"`
}

// ElementalClusterStatus is the state of a cluster's infrastructure.
type ElementalClusterStatus struct {
	// +optional
	// +kubebuilder:default=false
	Ready bool `json:"ready,omitempty"`
	// +optional
	Conditions capi.Conditions `json:"conditions,omitempty"`
	// FailureDomains is part of Cluster API's contract. No controller writes it.
	// +optional
	FailureDomains capi.FailureDomains `json:"failureDomains,omitempty"`
}

// ElementalCluster is the infrastructure of a Cluster of Cluster API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=elementalclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
type ElementalCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ElementalClusterSpec   `json:"spec,omitempty"`
	Status ElementalClusterStatus `json:"status,omitempty"`
}

// ElementalClusterList is a list of ElementalClusters.
//
// +kubebuilder:object:root=true
type ElementalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElementalCluster `json:"items"`
}

// GetConditions returns the conditions.
func (c *ElementalCluster) GetConditions() capi.Conditions { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *ElementalCluster) SetConditions(l capi.Conditions) { c.Status.Conditions = l }

// ElementalClusterTemplateSpec has the cluster that is made from a template.
type ElementalClusterTemplateSpec struct {
	Template ElementalClusterTemplateResource `json:"template"`
}

// ElementalClusterTemplateResource is a cluster without a name.
type ElementalClusterTemplateResource struct {
	// +optional
	ObjectMeta capi.ObjectMeta      `json:"metadata,omitempty"`
	Spec       ElementalClusterSpec `json:"spec"`
}

// ElementalClusterTemplate is what Cluster API makes ElementalClusters from.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=elementalclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
type ElementalClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ElementalClusterTemplateSpec `json:"spec,omitempty"`
}

// ElementalClusterTemplateList is a list of ElementalClusterTemplates.
//
// +kubebuilder:object:root=true
type ElementalClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ElementalClusterTemplate `json:"items"`
}
