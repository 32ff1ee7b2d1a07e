package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// HelmFinalizer suspends the deletion of a HelmBundle until its releases are uninstalled.
// Its name is in no public text.
const HelmFinalizer = "helmbundle.lcm.mirantis.com/releases"

// HelmBundleSpec lists Helm releases of a cluster, and the repositories of their charts.
type HelmBundleSpec struct {
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Repositories []HelmRepository `json:"repositories,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Releases []HelmRelease `json:"releases,omitempty"`
	// Release is the name of the ClusterRelease that the bundle is made from.
	// +optional
	Release string `json:"release,omitempty"`
	// ServiceAccountName is the service account of the namespace with whose rights the charts are
	// installed, in the API that has the bundle; none means helm-charts, which is created. Who changes
	// the spec must be allowed to impersonate the account.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// HelmRepository is a repository of charts.
type HelmRepository struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// +kubebuilder:validation:Pattern=`^https?://[^/]`
	URL string `json:"url"`
	// AuthSecret is a Secret of the namespace with username and password.
	// +optional
	AuthSecret string `json:"authSecret,omitempty"`
}

// HelmRelease is a chart that is installed.
// +kubebuilder:validation:XValidation:rule="has(self.chart) != has(self.chartURL)",message="give either chart or chartURL"
type HelmRelease struct {
	// Chart is REPOSITORY/CHART, or CHART of any of the repositories.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Chart string `json:"chart,omitempty"`
	// Version is that of the chart; none means the newest.
	// +optional
	Version string `json:"version,omitempty"`
	// ChartURL is the URL of the chart's archive.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^/]`
	ChartURL string `json:"chartURL,omitempty"`
	// Name is that of the Helm release.
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Namespace is created if it does not exist; none means that of the bundle.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Labels are those of the Helm release.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// HelmV3 is deprecated: all releases are those of Helm 3.
	// +optional
	HelmV3 bool `json:"helmV3,omitempty"`
	// Requires are names of releases that are installed before this one.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Requires []string `json:"requires,omitempty"`
}

// HelmReleaseStatus is how far a release is.
type HelmReleaseStatus struct {
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	Revision int `json:"revision,omitempty"`
	// +optional
	Chart string `json:"chart,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// Hash is that of the release as it was tried last.
	// +optional
	Hash string `json:"hash,omitempty"`
	// Success is set when Helm has installed the release as Hash says.
	// +optional
	Success bool `json:"success"`
	// Status is the status that Helm reports.
	// +optional
	Status string `json:"status,omitempty"`
	// +optional
	Notes string `json:"notes,omitempty"`
	// Message is why there is no success.
	// +optional
	Message string `json:"message,omitempty"`
	// Attempt counts the attempts since Hash or success has changed.
	// +optional
	Attempt int `json:"attempt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Ready is set when all objects of the release are there, and its workloads run.
	// +optional
	Ready bool `json:"ready"`
}

// HelmBundleStatus is the observed state of a bundle.
type HelmBundleStatus struct {
	// ReleaseStatuses are by the names of the releases.
	// +optional
	ReleaseStatuses map[string]HelmReleaseStatus `json:"releaseStatuses,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Release is that of the spec, once all its releases have succeeded.
	// +optional
	Release string `json:"release,omitempty"`
}

// HelmBundle lists the Helm releases of a cluster. Its name and namespace are those of the
// Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=helmbundles,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.release`
// +kubebuilder:printcolumn:name="Releases",type=string,priority=1,JSONPath=`.spec.releases[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HelmBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec HelmBundleSpec `json:"spec,omitzero"`
	// +optional
	Status HelmBundleStatus `json:"status,omitzero"`
}

// HelmBundleList is a list of HelmBundles.
//
// +kubebuilder:object:root=true
type HelmBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmBundle `json:"items"`
}
