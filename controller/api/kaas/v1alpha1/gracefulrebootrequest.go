package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GracefulRebootRequestSpec selects machines.
type GracefulRebootRequestSpec struct {
	// Machines are names of Machines of the cluster. None means all.
	// +optional
	// +kubebuilder:validation:MaxItems=10000
	// +listType=set
	Machines []string `json:"machines,omitempty"`
}

// RebootState is the state of the reboot of a machine, and of all. The names of the status
// are in no public text.
// +kubebuilder:validation:Enum=NotStarted;InProgress;Completed
type RebootState string

// The states.
const (
	RebootNotStarted RebootState = "NotStarted"
	RebootInProgress RebootState = "InProgress"
	RebootCompleted  RebootState = "Completed"
)

// MachineReboot is the reboot of one machine.
type MachineReboot struct {
	Name  string      `json:"name"`
	State RebootState `json:"state"`
	// BootTime is when the server had booted before the reboot.
	// +optional
	BootTime *metav1.Time `json:"bootTime,omitempty"`
}

// GracefulRebootRequestStatus is how far the reboots are.
type GracefulRebootRequestStatus struct {
	// +optional
	State RebootState `json:"state,omitempty"`
	// Message names the condition that blocks the next reboot.
	// +optional
	Message string `json:"message,omitempty"`
	// Machines are those whose reboot has begun, in this order.
	// +optional
	// +listType=map
	// +listMapKey=name
	Machines []MachineReboot `json:"machines,omitempty"`
}

// GracefulRebootRequest reboots machines of the cluster whose name it has, one after
// another: each is cordoned, drained, rebooted and uncordoned.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gracefulrebootrequests,scope=Namespaced
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GracefulRebootRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GracefulRebootRequestSpec `json:"spec,omitempty"`
	// +optional
	Status GracefulRebootRequestStatus `json:"status,omitempty"`
}

// GracefulRebootRequestList is a list of GracefulRebootRequests.
//
// +kubebuilder:object:root=true
type GracefulRebootRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GracefulRebootRequest `json:"items"`
}
