package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterStateReasonAnnotation of an LCMClusterState says why the state is demanded: one of
// the ClusterStateReasons.
const ClusterStateReasonAnnotation = "lcm.mirantis.com/cluster-state-reason"

// ClusterStateReason is why a state of the cluster is demanded.
type ClusterStateReason string

// The reasons.
const (
	ReasonMaintenance ClusterStateReason = "maintenance"
	ReasonUpgrade     ClusterStateReason = "upgrade"
	ReasonDelete      ClusterStateReason = "delete"
)

// ClusterStateType is the operation that an LCMClusterState demands.
// +kubebuilder:validation:Enum=helm-deployed;cordon-drain;swarm-drain;swarm-remove
type ClusterStateType string

// The types.
const (
	StateHelmDeployed ClusterStateType = "helm-deployed"
	StateCordonDrain  ClusterStateType = "cordon-drain"
	StateSwarmDrain   ClusterStateType = "swarm-drain"
	StateSwarmRemove  ClusterStateType = "swarm-remove"
)

// LCMClusterStateSpec is a state that the cluster has to be in.
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName && self.type == oldSelf.type && self.arg == oldSelf.arg",message="only value can change: delete the object and create another"
type LCMClusterStateSpec struct {
	// +kubebuilder:validation:MinLength=1
	ClusterName string           `json:"clusterName"`
	Type        ClusterStateType `json:"type"`
	// Arg is the operation's argument: for cordon-drain the name of the machine's node.
	// +optional
	// +kubebuilder:default=""
	Arg string `json:"arg"`
	// Value is "true" to demand the state, "false" to end it.
	// +kubebuilder:validation:Enum="true";"false"
	Value string `json:"value"`
}

// LCMClusterStateStatus is the state that the cluster is in.
type LCMClusterStateStatus struct {
	// Value is that of the spec once the cluster is in the demanded state.
	// +optional
	Value string `json:"value,omitempty"`
	// Message says why the cluster is not in the demanded state yet.
	// +optional
	Message string `json:"message,omitempty"`
	// Attempt counts the attempts to reach the demanded state that differ in their message.
	// +optional
	Attempt int `json:"attempt,omitempty"`
}

// LCMClusterState demands a state of a cluster or of one of its nodes, such as that a node
// is drained.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=lcmclusterstates,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterName",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Arg",type=string,JSONPath=`.spec.arg`
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.spec.value`
// +kubebuilder:printcolumn:name="Actual",type=string,JSONPath=`.status.value`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
type LCMClusterState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LCMClusterStateSpec `json:"spec"`
	// +optional
	Status LCMClusterStateStatus `json:"status,omitzero"`
}

// LCMClusterStateList is a list of LCMClusterStates.
//
// +kubebuilder:object:root=true
type LCMClusterStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LCMClusterState `json:"items"`
}
