package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The names of the stages are those of the product; where the object has them is in no
// public text.

// StageStatus is how far a stage is.
// +kubebuilder:validation:Enum=NotStarted;InProgress;Success;Fail
type StageStatus string

// The statuses. A stage that was a success stays one.
const (
	StageNotStarted StageStatus = "NotStarted"
	StageInProgress StageStatus = "InProgress"
	StageSuccess    StageStatus = "Success"
	StageFail       StageStatus = "Fail"
)

// The stages of a cluster's deployment that the provider reports.
const (
	StageNetwork        = "Network prepared"
	StageLoadBalancers  = "Load balancers created"
	StageIAM            = "IAM objects created"
	StageKubernetes     = "Kubernetes API started"
	StageHelmController = "Helm-controller deployed"
	StageHelmBundle     = "HelmBundle created"
	StageMachines       = "All machines of the cluster are ready"
	StageCluster        = "Cluster is ready"
)

// Stage is a stage of a deployment.
type Stage struct {
	Name   string      `json:"name"`
	Status StageStatus `json:"status"`
	// +optional
	Success bool `json:"success,omitempty"`
	// Message names the condition that blocks the stage.
	// +optional
	Message string `json:"message,omitempty"`
	// Timestamp is when the status has changed.
	// +optional
	Timestamp *metav1.Time `json:"timestamp,omitempty"`
}

// ClusterDeploymentStatus is the history of a Cluster's deployment. It has the Cluster's name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterdeploymentstatuses,scope=Namespaced
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.release`
// +kubebuilder:printcolumn:name="Stages",type=string,JSONPath=`.stages[*].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterDeploymentStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Release string `json:"release,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=name
	Stages []Stage `json:"stages,omitempty"`
}

// ClusterDeploymentStatusList is a list of ClusterDeploymentStatuses.
//
// +kubebuilder:object:root=true
type ClusterDeploymentStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterDeploymentStatus `json:"items"`
}
