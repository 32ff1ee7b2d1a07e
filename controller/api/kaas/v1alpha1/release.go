package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// KaaSReleaseSpec has the releases of a management cluster and of the clusters that it
// manages.
type KaaSReleaseSpec struct {
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
	// ClusterRelease is the name of the management cluster's ClusterRelease.
	// +kubebuilder:validation:MinLength=1
	ClusterRelease string `json:"clusterRelease"`
	// HelmRepositories are those of the charts of a management cluster, beside those of the
	// ClusterRelease.
	// +optional
	HelmRepositories []ReleaseRepository `json:"helmRepositories,omitempty"`
	// +optional
	Management ReleaseManagement `json:"management,omitzero"`
	// +optional
	Regional []ReleaseRegional `json:"regional,omitempty"`
	// RegionalHelmReleases are the charts of all providers.
	// +optional
	RegionalHelmReleases []ReleaseChart `json:"regionalHelmReleases,omitempty"`
	// SupportedClusterReleases are the releases of the other clusters.
	// +optional
	// +listType=map
	// +listMapKey=name
	SupportedClusterReleases []SupportedClusterRelease `json:"supportedClusterReleases,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Bootstrap *runtime.RawExtension `json:"bootstrap,omitempty"`
}

// ReleaseManagement are the charts of a management cluster.
type ReleaseManagement struct {
	// +optional
	HelmReleases []ReleaseChart `json:"helmReleases,omitempty"`
}

// ReleaseRegional are the charts of a provider.
type ReleaseRegional struct {
	Provider string `json:"provider"`
	// +optional
	HelmReleases []ReleaseChart `json:"helmReleases,omitempty"`
}

// SupportedClusterRelease is a release that a cluster can have, and those that it can be
// upgraded to.
type SupportedClusterRelease struct {
	// Name is that of the ClusterRelease.
	// +kubebuilder:validation:MinLength=1
	Name    string `json:"name"`
	Version string `json:"version"`
	// +optional
	Tag string `json:"tag,omitempty"`
	// +optional
	AvailableUpgrades []AvailableUpgrade `json:"availableUpgrades,omitempty"`
	// +optional
	Providers SupportedProviders `json:"providers,omitzero"`
}

// AvailableUpgrade is a step of the supported upgrade path.
type AvailableUpgrade struct {
	// Version is that of a supported release.
	Version string `json:"version"`
	// RebootRequired reboots each machine that takes this step, while its node is out of service.
	// +optional
	RebootRequired bool `json:"rebootRequired,omitempty"`
}

// SupportedProviders lists providers; none means all.
type SupportedProviders struct {
	// +optional
	Supported []string `json:"supported,omitempty"`
}

// ReleaseChart is a Helm chart of a release.
type ReleaseChart struct {
	// Name is that of the Helm release.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// +optional
	Chart string `json:"chart,omitempty"`
	// +optional
	ChartURL string `json:"chartURL,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Labels are those of the Helm release.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// HelmV3 is deprecated: all releases are those of Helm 3.
	// +optional
	HelmV3 bool `json:"helmV3,omitempty"`
	// +optional
	Requires []string `json:"requires,omitempty"`
	// Required is whether a cluster is not ready without the chart.
	// +optional
	Required bool `json:"required,omitempty"`
	// RequiresPersistentVolumes is whether the chart needs a default StorageClass.
	// +optional
	RequiresPersistentVolumes bool `json:"requiresPersistentVolumes,omitempty"`
	// LocalVolumes are directories of nodes that the chart needs.
	// +optional
	LocalVolumes []LocalVolume `json:"localVolumes,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
}

// LocalVolume is a directory of nodes.
type LocalVolume struct {
	Name string `json:"name"`
	// +optional
	BindMounts []BindMount `json:"bindMounts,omitempty"`
}

// BindMount is where a LocalVolume is mounted.
type BindMount struct {
	// VolumesPerNode is how many volumes each node has.
	// +optional
	VolumesPerNode int64 `json:"volPerNode,omitempty"`
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// KaaSRelease lists the releases of clusters, and the paths by which they are upgraded. It
// never changes: another version is another object.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kaasreleases,scope=Cluster
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="ClusterRelease",type=string,JSONPath=`.spec.clusterRelease`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type KaaSRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KaaSReleaseSpec `json:"spec"`
}

// KaaSReleaseList is a list of KaaSReleases.
//
// +kubebuilder:object:root=true
type KaaSReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KaaSRelease `json:"items"`
}

// ClusterReleaseSpec has what is deployed to the machines of a cluster.
type ClusterReleaseSpec struct {
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
	// +optional
	Description string `json:"description,omitempty"`
	// +optional
	ReleaseNotes []ReleaseNote `json:"releaseNotes,omitempty"`
	// Agent is the version of the LCM agent.
	// +optional
	Agent *lcmv1.AgentConfig `json:"agent,omitempty"`
	// MachineTypes are the state items of the machines of each type, as
	// LCMCluster.spec.machinesTypes has them.
	// +optional
	MachineTypes map[lcmv1.MachineType][]lcmv1.LCMStateItem `json:"machineTypes,omitempty"`
	// +optional
	Helm ReleaseHelm `json:"helm,omitzero"`
	// +optional
	Images lcmv1.LCMImages `json:"images,omitzero"`
	// +optional
	// +kubebuilder:default=k0s
	LCMType lcmv1.LCMType `json:"lcmType,omitempty"`
	// AllowedNodeLabels are the labels that Machines can give their Nodes; without any they can
	// give all.
	// +optional
	AllowedNodeLabels []AllowedNodeLabel `json:"allowedNodeLabels,omitempty"`
	// AllowedDistributions are the operating systems that machines can have.
	// +optional
	// +listType=map
	// +listMapKey=id
	AllowedDistributions []Distribution `json:"allowedDistributions,omitempty"`
}

// ReleaseNote is a note on a release.
type ReleaseNote struct {
	Text string `json:"text"`
	// +optional
	Link string `json:"link,omitempty"`
}

// ReleaseHelm are the charts of a cluster.
type ReleaseHelm struct {
	// +optional
	Repositories []ReleaseRepository `json:"repositories,omitempty"`
	// +optional
	Releases []ReleaseChart `json:"releases,omitempty"`
	// Controller is the chart of the Helm controller.
	// +optional
	Controller *ReleaseChart `json:"controller,omitempty"`
}

// ReleaseRepository is a repository of charts.
type ReleaseRepository struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// AuthSecret is a Secret of the Cluster's namespace with username and password.
	// +optional
	AuthSecret string `json:"authSecret,omitempty"`
}

// AllowedNodeLabel is a label that nodes can have.
type AllowedNodeLabel struct {
	Key string `json:"key"`
	// Value is the only value that the label can have; without it each is allowed.
	// +optional
	Value string `json:"value,omitempty"`
	// +optional
	DisplayName string `json:"displayName,omitempty"`
}

// Distribution is an operating system.
type Distribution struct {
	// +kubebuilder:validation:MinLength=1
	ID string `json:"id"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Description string `json:"description,omitempty"`
	// Default is set in the distribution of machines that name none.
	// +optional
	Default bool `json:"default,omitempty"`
	// +optional
	Image DistributionImage `json:"image,omitzero"`
}

// DistributionImage is the image that is written to a server.
type DistributionImage struct {
	// +optional
	URL string `json:"url,omitempty"`
	// +optional
	Checksum string `json:"checksum,omitempty"`
}

// ClusterRelease is a version of a cluster. It never changes: any change is another object.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterreleases,scope=Cluster
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="LCMType",type=string,JSONPath=`.spec.lcmType`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterReleaseSpec `json:"spec"`
}

// ClusterReleaseList is a list of ClusterReleases.
//
// +kubebuilder:object:root=true
type ClusterReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRelease `json:"items"`
}
