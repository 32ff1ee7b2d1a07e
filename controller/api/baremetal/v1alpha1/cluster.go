package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterProviderSpec is spec.providerSpec.value of a Cluster, of kind
// BaremetalClusterProviderSpec.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterProviderSpec struct {
	metav1.TypeMeta `json:",inline"`

	// Release is the name of the ClusterRelease.
	// +optional
	Release string `json:"release,omitempty"`
	// KaaS is set in a management cluster.
	// +optional
	KaaS *KaaS `json:"kaas,omitempty"`
	// +optional
	HelmReleases []HelmRelease `json:"helmReleases,omitempty"`
	// Credentials is the name of the BareMetalHostCredential.
	// +optional
	Credentials string `json:"credentials,omitempty"`
	// PublicKeys name the PublicKeys of all machines.
	// +optional
	PublicKeys []KeyName `json:"publicKeys,omitempty"`
	// +optional
	Proxy string `json:"proxy,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	TLS *runtime.RawExtension `json:"tls,omitempty"`
	// MaxWorkerPrepareCount is how many workers execute items of the phase prepare at a time; 0 is
	// no bound.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxWorkerPrepareCount int `json:"maxWorkerPrepareCount,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxWorkerUpgradeCount int `json:"maxWorkerUpgradeCount,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// DedicatedControlPlane is whether nodes of the control plane are tainted.
	// +optional
	DedicatedControlPlane *bool `json:"dedicatedControlPlane,omitempty"`
	// +optional
	DedicatedMetallbPools bool `json:"dedicatedMetallbPools,omitempty"`
	// +optional
	LoadBalancerHost string `json:"loadBalancerHost,omitempty"`
	// +optional
	ContainerRegistries []string `json:"containerRegistries,omitempty"`
}

// KaaS is the release of a management cluster.
type KaaS struct {
	// Release is the name of the KaaSRelease.
	// +optional
	Release string `json:"release,omitempty"`
	// +optional
	Management KaaSManagement `json:"management,omitzero"`
	// +optional
	Regional []KaaSRegional `json:"regional,omitempty"`
	// RegionalHelmReleases are the charts of all providers.
	// +optional
	RegionalHelmReleases []HelmRelease `json:"regionalHelmReleases,omitempty"`
}

// KaaSManagement are the charts of a management cluster.
type KaaSManagement struct {
	// +optional
	HelmReleases []HelmRelease `json:"helmReleases,omitempty"`
}

// KaaSRegional are the charts of a provider.
type KaaSRegional struct {
	Provider string `json:"provider"`
	// +optional
	HelmReleases []HelmRelease `json:"helmReleases,omitempty"`
}

// HelmRelease replaces values of a chart of the release.
type HelmRelease struct {
	Name string `json:"name"`
	// Enabled is whether the chart is installed, as it is without the field.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
}

// KeyName names a PublicKey.
type KeyName struct {
	Name string `json:"name"`
}

// ClusterProviderStatus is status.providerStatus of a Cluster, of kind
// BaremetalClusterProviderStatus.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterProviderStatus struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	Nodes Nodes `json:"nodes,omitzero"`
	// +optional
	ReleaseRefs ReleaseRefs `json:"releaseRefs,omitzero"`
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	NotReadyObjects NotReadyObjects `json:"notReadyObjects,omitzero"`
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	OIDC *runtime.RawExtension `json:"oidc,omitempty"`
	// +optional
	MKE MKE `json:"mke,omitzero"`
	// +optional
	Ready bool `json:"ready,omitempty"`
}

// ConditionCredentials is the type of a cluster's condition that is there when its spec names a
// credential.
const ConditionCredentials = "Credentials"

// Nodes counts the machines of a cluster.
type Nodes struct {
	// +optional
	Requested int `json:"requested"`
	// +optional
	Ready int `json:"ready"`
}

// ReleaseRefs are the releases of a cluster.
type ReleaseRefs struct {
	// +optional
	Current *ReleaseRef `json:"current,omitempty"`
	// +optional
	Previous *ReleaseRef `json:"previous,omitempty"`
	// Available are those that the cluster can be upgraded to.
	// +optional
	Available []ReleaseRef `json:"available,omitempty"`
}

// ReleaseRef names a release.
type ReleaseRef struct {
	Name string `json:"name"`
	// +optional
	Version string `json:"version,omitempty"`
	// RebootRequired is set in an available release whose items need a reboot.
	// +optional
	RebootRequired bool `json:"rebootRequired,omitempty"`
}

// MKE identifies a cluster of MKE.
type MKE struct {
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
}

// ConditionKubernetes is the type of a cluster's condition that is there when it has a Kubernetes
// API of its own, or asks for one.
const ConditionKubernetes = "Kubernetes"
