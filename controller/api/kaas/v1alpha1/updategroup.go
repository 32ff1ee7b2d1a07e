package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateGroupLabel of a Machine names its UpdateGroup. A worker without it is in the group
// CLUSTER-default, and machines of the control plane are in CLUSTER-control.
const UpdateGroupLabel = "kaas.mirantis.com/update-group"

// The suffixes of the names of the groups that every cluster has.
const (
	DefaultUpdateGroup = "-default"
	ControlUpdateGroup = "-control"
)

// UpdateGroupSpec orders and bounds the updates of machines.
type UpdateGroupSpec struct {
	// Index orders the groups of workers of a cluster: the lowest is updated first, and groups
	// with the same index at the same time. The group of the control plane always comes before
	// them.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Index int `json:"index"`
	// ConcurrentUpdates is how many machines of the group may be out of service at a time.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	ConcurrentUpdates int `json:"concurrentUpdates,omitempty"`
	// RebootIfUpdateRequires reboots a machine that its update has asked to reboot, while it
	// is out of service.
	// +optional
	RebootIfUpdateRequires bool `json:"rebootIfUpdateRequires,omitempty"`
}

// UpdateGroup is a set of machines of the cluster that its label
// cluster.sigs.k8s.io/cluster-name names: see UpdateGroupLabel. In a group the machine with
// the lowest upgradeIndex is updated first.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=updategroups,scope=Namespaced
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.sigs\.k8s\.io/cluster-name`
// +kubebuilder:printcolumn:name="Index",type=integer,JSONPath=`.spec.index`
// +kubebuilder:printcolumn:name="Concurrent",type=integer,JSONPath=`.spec.concurrentUpdates`
// +kubebuilder:printcolumn:name="Reboot",type=boolean,JSONPath=`.spec.rebootIfUpdateRequires`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UpdateGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec UpdateGroupSpec `json:"spec"`
}

// UpdateGroupList is a list of UpdateGroups.
//
// +kubebuilder:object:root=true
type UpdateGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UpdateGroup `json:"items"`
}
