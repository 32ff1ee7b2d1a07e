package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LCMClusterSpec is the desired state of a cluster.
// +kubebuilder:validation:XValidation:rule="has(self.machinesTypes) || has(self.machineTypes)",message="give machinesTypes"
type LCMClusterSpec struct {
	// MachinesTypes are the state items of the machines of each type. Items of a
	// HostOSConfiguration have no params here: LCMMachine.spec.stateItemsOverwrites has
	// those of each machine.
	// +optional
	MachinesTypes map[MachineType][]LCMStateItem `json:"machinesTypes,omitzero"`
	// MachineTypes is how the older public types spell MachinesTypes, to which the LCM
	// controller moves them.
	// +optional
	MachineTypes map[MachineType][]LCMStateItem `json:"machineTypes,omitempty"`
	// +optional
	Components Components `json:"components,omitzero"`
	// +optional
	ExternalEndpoint          *Endpoint `json:"externalEndpoint,omitempty"`
	ManagementClusterEndpoint Endpoint  `json:"managementClusterEndpoint"`
	// +optional
	HelmControllerHAEnabled bool `json:"helmControllerHAEnabled,omitempty"`
	// +kubebuilder:validation:MinLength=1
	HelmControllerServiceAccountName string `json:"helmControllerServiceAccountName"`
	// +optional
	DeploymentSecretName string `json:"deploymentSecretName,omitempty"`
	// +optional
	KubeconfigSecretName string `json:"kubeconfigSecretName,omitempty"`
	// +optional
	ProxySecretName string `json:"proxySecretName,omitempty"`
	// +optional
	AgentDataSecretName string `json:"agentDataSecretName,omitempty"`
	// +optional
	MKETLSSecretName string `json:"mkeTLSSecretName,omitempty"`
	// +optional
	// +kubebuilder:default="24h"
	TokenTTL *metav1.Duration `json:"tokenTTL,omitempty"`
	// +optional
	// +kubebuilder:default="1h"
	MinTokenRemainingTTL *metav1.Duration `json:"minTokenRemainingTTL,omitempty"`
	// +optional
	// +kubebuilder:default=true
	DedicatedControlPlane *bool `json:"dedicatedControlPlane,omitempty"`
	// +optional
	Images LCMImages `json:"images,omitzero"`
	// MaxWorkerPrepareCount is how many workers execute items of the phase prepare at a time; 0 is
	// no bound.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxWorkerPrepareCount int `json:"maxWorkerPrepareCount,omitempty"`
	// MaxWorkerUpgradeCount is how many workers may be cordoned at a time.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxWorkerUpgradeCount int `json:"maxWorkerUpgradeCount,omitempty"`
	// NodesRebootRequired reboots each machine that comes from another release, while its node is
	// out of service for the release.
	// +optional
	NodesRebootRequired bool `json:"nodesRebootRequired,omitempty"`
	// +optional
	OIDC *OIDC `json:"oidc,omitempty"`
	// +optional
	Release string `json:"release,omitempty"`
	// +optional
	MCRVersion string `json:"mcrVersion,omitempty"`
	// +optional
	ProxyHash string `json:"proxyHash,omitempty"`
	// +optional
	HelmControllerFromExternalChart bool `json:"helmControllerFromExternalChart,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// +optional
	LCMType LCMType `json:"lcmType,omitempty"`
	// AgentVersion has the API's spelling.
	// +optional
	AgentVersion string `json:"agentVesrion,omitempty"`
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	MKEUpgradeAttempts int `json:"mkeUpgradeAttempts,omitempty"`
}

// LCMImages are references of container images.
type LCMImages struct {
	// +optional
	HelmController string `json:"helmController,omitempty"`
	// +optional
	Tiller string `json:"tiller,omitempty"`
	// +optional
	UCPSourceRepo string `json:"ucpSourceRepo,omitempty"`
	// +optional
	UCPTargetRepo string `json:"ucpTargetRepo,omitempty"`
}

// OIDC is the identity provider of a cluster.
type OIDC struct {
	URL string `json:"url"`
	// +optional
	CACert   string `json:"caCert,omitempty"`
	ClientID string `json:"clientID"`
	// +optional
	AdminRole string `json:"adminRole,omitempty"`
	// +optional
	GroupsClaim string `json:"groupsClaim,omitempty"`
}

// LCMClusterStatus is the observed state of a cluster.
type LCMClusterStatus struct {
	// +optional
	RequestedNodes int `json:"requestedNodes"`
	// +optional
	ReadyNodes int `json:"readyNodes"`
	// +optional
	HelmControllerDeployed bool `json:"helmControllerDeployed,omitempty"`
	// +optional
	Components Components `json:"components,omitzero"`
	// +optional
	OIDC *OIDC `json:"oidc,omitempty"`
	// +optional
	OIDCUpdateTime *metav1.Time `json:"oidcUpdateTime,omitempty"`
	// +optional
	OIDCSettingHash string `json:"oidcSettingHash,omitempty"`
	// +optional
	Release string `json:"release,omitempty"`
	// +optional
	MCRVersion string `json:"mcrVersion,omitempty"`
	// +optional
	ProxyHash string `json:"proxyHash,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// +optional
	MCCLicenseHash string `json:"mccLicenseHash,omitempty"`
	// +optional
	MKETLSSettingsHash string `json:"mkeTLSSettingsHash,omitempty"`
	// +optional
	MKEAuthHash string `json:"mkeAuthHash,omitempty"`
	// +optional
	LCMOperationStuck bool `json:"lcmOperationStuck,omitempty"`
}

// LCMCluster is a cluster as the LCM controller sees it. Its name and namespace are those
// of its Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=lcmclusters,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="LCMType",type=string,JSONPath=`.spec.lcmType`
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.release`
// +kubebuilder:printcolumn:name="Requested",type=integer,JSONPath=`.status.requestedNodes`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyNodes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LCMCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LCMClusterSpec `json:"spec"`
	// +optional
	Status LCMClusterStatus `json:"status,omitzero"`
}

// LCMClusterList is a list of LCMClusters.
//
// +kubebuilder:object:root=true
type LCMClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LCMCluster `json:"items"`
}
