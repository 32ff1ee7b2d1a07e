package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The kinds of this file are cluster-scoped and live in the workload cluster: by them LCM
// agrees with the applications of the cluster when a node may be drained.

// MaintenanceScope classifies maintenance: os changes the operating system and
// may reboot the node, drain moves its pods only.
// +kubebuilder:validation:Enum=drain;os
type MaintenanceScope string

// The scopes.
const (
	ScopeDrain MaintenanceScope = "drain"
	ScopeOS    MaintenanceScope = "os"
)

// WorkloadLockState is an application's answer to a maintenance request.
// +kubebuilder:validation:Enum=active;inactive;failed
type WorkloadLockState string

// The states: active blocks maintenance, inactive permits it, and failed blocks it with an
// error.
const (
	LockActive   WorkloadLockState = "active"
	LockInactive WorkloadLockState = "inactive"
	LockFailed   WorkloadLockState = "failed"
)

// WorkloadLockStatus is the status of a ClusterWorkloadLock and of a NodeWorkloadLock. A
// lock without a state is active.
type WorkloadLockStatus struct {
	// +optional
	// +kubebuilder:default=active
	State WorkloadLockState `json:"state,omitempty"`
	// ErrorMessage says why the state is failed.
	// +optional
	ErrorMessage string `json:"errorMessage,omitempty"`
	// Release is the release of the application's cluster that the state is for.
	// +optional
	Release string `json:"release,omitempty"`
}

// ClusterMaintenanceRequestSpec is a request to the applications of a cluster.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the request and create another"
type ClusterMaintenanceRequestSpec struct {
	Scope MaintenanceScope `json:"scope"`
}

// ClusterMaintenanceRequest asks all applications of the cluster to get ready for the
// maintenance of nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustermaintenancerequests,scope=Cluster
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterMaintenanceRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterMaintenanceRequestSpec `json:"spec"`
}

// ClusterMaintenanceRequestList is a list of ClusterMaintenanceRequests.
//
// +kubebuilder:object:root=true
type ClusterMaintenanceRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterMaintenanceRequest `json:"items"`
}

// NodeMaintenanceRequestSpec is a request to the applications on a node.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the request and create another"
type NodeMaintenanceRequestSpec struct {
	// +kubebuilder:validation:MinLength=1
	NodeName string           `json:"nodeName"`
	Scope    MaintenanceScope `json:"scope"`
}

// NodeMaintenanceRequest asks the applications on a node to get ready for its drain.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodemaintenancerequests,scope=Cluster
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeMaintenanceRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodeMaintenanceRequestSpec `json:"spec"`
}

// NodeMaintenanceRequestList is a list of NodeMaintenanceRequests.
//
// +kubebuilder:object:root=true
type NodeMaintenanceRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeMaintenanceRequest `json:"items"`
}

// ClusterWorkloadLockSpec names the application that has the lock.
type ClusterWorkloadLockSpec struct {
	// +kubebuilder:validation:MinLength=1
	ControllerName string `json:"controllerName"`
}

// ClusterWorkloadLock is the lock of an application of the cluster. Until it is inactive,
// no node is maintained.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterworkloadlocks,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Controller",type=string,JSONPath=`.spec.controllerName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.errorMessage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterWorkloadLock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterWorkloadLockSpec `json:"spec"`
	// +optional
	Status WorkloadLockStatus `json:"status,omitzero"`
}

// ClusterWorkloadLockList is a list of ClusterWorkloadLocks.
//
// +kubebuilder:object:root=true
type ClusterWorkloadLockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterWorkloadLock `json:"items"`
}

// NodeWorkloadLockSpec names the node and the application that has the lock.
type NodeWorkloadLockSpec struct {
	// +kubebuilder:validation:MinLength=1
	NodeName string `json:"nodeName"`
	// +kubebuilder:validation:MinLength=1
	ControllerName string `json:"controllerName"`
}

// NodeWorkloadLock is the lock of an application on a node. Until it is inactive, the node
// is not drained.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodeworkloadlocks,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Controller",type=string,JSONPath=`.spec.controllerName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.errorMessage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeWorkloadLock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodeWorkloadLockSpec `json:"spec"`
	// +optional
	Status WorkloadLockStatus `json:"status,omitzero"`
}

// NodeWorkloadLockList is a list of NodeWorkloadLocks.
//
// +kubebuilder:object:root=true
type NodeWorkloadLockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeWorkloadLock `json:"items"`
}

// NodeDeletionRequestSpec names a node that leaves the cluster.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: delete the request and create another"
type NodeDeletionRequestSpec struct {
	// +kubebuilder:validation:MinLength=1
	NodeName string `json:"nodeName"`
}

// NodeDeletionRequest tells the applications on a node that it leaves the cluster for good.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodedeletionrequests,scope=Cluster
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeDeletionRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodeDeletionRequestSpec `json:"spec"`
}

// NodeDeletionRequestList is a list of NodeDeletionRequests.
//
// +kubebuilder:object:root=true
type NodeDeletionRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeDeletionRequest `json:"items"`
}
