package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LCMMachineSpec is the desired state of a machine.
type LCMMachineSpec struct {
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// +optional
	// +kubebuilder:default=unassigned
	Type MachineType `json:"type,omitempty"`
	// +optional
	Components Components `json:"components,omitzero"`
	// StateItems are the items that the agent executes, in this order within a phase.
	// +optional
	// +listType=map
	// +listMapKey=name
	StateItems []LCMStateItem `json:"stateItems,omitempty"`
	// StateItemsOverwrites are params of this machine's state items, by the item's name.
	// +optional
	StateItemsOverwrites map[string]map[string]string `json:"stateItemsOverwrites,omitempty"`
	// +optional
	DeploymentSecretName string `json:"deploymentSecretName,omitempty"`
	// +optional
	KubeconfigSecretName string `json:"kubeconfigSecretName,omitempty"`
	// +optional
	ProxySecretName string `json:"proxySecretName,omitempty"`
	// +optional
	TLSSecretName string `json:"tlsSecretName,omitempty"`
	// +optional
	AgentConfig *AgentConfig `json:"agentConfig,omitempty"`
	// +optional
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`
	// +optional
	RHELLicenseSubscription string `json:"rhelLicenseSubscription,omitempty"`
	// +optional
	Release string `json:"release,omitempty"`
	// Interface is the NIC whose address is the machine's InternalIP.
	// +optional
	Interface string `json:"interface,omitempty"`
	// CIDR contains the address that is the machine's InternalIP.
	// +optional
	CIDR string `json:"cidr,omitempty"`
	// +optional
	RebootRequired bool `json:"rebootRequired,omitempty"`
	// +optional
	MCRVersion string `json:"mcrVersion,omitempty"`
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// HaltAgent stops all of the agent's work but the synchronization of SSH keys.
	// +optional
	HaltAgent bool `json:"haltAgent,omitempty"`
	// +optional
	LCMType LCMType `json:"lcmType,omitempty"`
	// +optional
	PrepareDeletion bool `json:"prepareDeletion,omitempty"`
	// +optional
	Distribution string `json:"distribution,omitempty"`
}

// AgentConfig is the version of the agent that a machine has to run.
type AgentConfig struct {
	Version     string `json:"version"`
	DownloadURL string `json:"downloadURL"`
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`
	// +optional
	Args []string `json:"args,omitempty"`
}

// MachineState is the state of a machine, which controller/mosk/lcm/item computes.
// +kubebuilder:validation:Enum=Uninitialized;Pending;Prepare;Deploy;Upgrade;Reconfigure;Reboot;Ready
type MachineState string

// The states.
const (
	StateUninitialized MachineState = "Uninitialized"
	StatePending       MachineState = "Pending"
	StatePrepare       MachineState = "Prepare"
	StateDeploy        MachineState = "Deploy"
	StateUpgrade       MachineState = "Upgrade"
	StateReconfigure   MachineState = "Reconfigure"
	StateReboot        MachineState = "Reboot"
	StateReady         MachineState = "Ready"
)

// AddressType is the type of a NodeAddress, as in Kubernetes' Node.
type AddressType string

// The types that agents report.
const (
	AddressInternalIP AddressType = "InternalIP"
	AddressHostname   AddressType = "Hostname"
)

// NodeAddress is an address of a machine, as in Kubernetes' Node.
type NodeAddress struct {
	Type    AddressType `json:"type"`
	Address string      `json:"address"`
}

// DrainState is the state of a cordon and drain.
// +kubebuilder:validation:Enum="";cordondraining;cordondrained;uncordoning
type DrainState string

// The states.
const (
	CordonDraining DrainState = "cordondraining"
	CordonDrained  DrainState = "cordondrained"
	Uncordoning    DrainState = "uncordoning"
)

// The phases of the preparation of a deletion, status.prepareDeletionPhase. Without a phase
// nothing was prepared.
const (
	DeletionStarted   = "started"
	DeletionCompleted = "completed" // the node is out of service
	DeletionAborting  = "aborting"  // the node is given back
	DeletionFailed    = "failed"    // a workload lock has failed; its application is asked again
)

// LCMMachineStatus is the observed state of a machine.
type LCMMachineStatus struct {
	// StateItemStatuses are the results of the state items, by the item's name.
	// +optional
	StateItemStatuses map[string]StateItemStatus `json:"stateItemStatuses,omitempty"`
	// +optional
	Addresses []NodeAddress `json:"addresses,omitempty"`
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// +optional
	LCMAgentUpgradeStatus *AgentUpgradeStatus `json:"lcmAgentUpgradeStatus,omitempty"`
	// +optional
	State MachineState `json:"state,omitempty"`
	// +optional
	Components Components `json:"components,omitzero"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	RHELLicenseApplied bool `json:"rhelLicenseApplied,omitempty"`
	// +optional
	RHELLicenseError string `json:"rhelLicenseError,omitempty"`
	// +optional
	Release string `json:"release,omitempty"`
	// +optional
	Interface string `json:"interface,omitempty"`
	// +optional
	Reboot *RebootStatus `json:"reboot,omitempty"`
	// +optional
	MCRVersion string `json:"mcrVersion,omitempty"`
	// +optional
	HostInfo *HostInfo `json:"hostInfo,omitempty"`
	// +optional
	TokenSecret string `json:"tokenSecret,omitempty"`
	// +optional
	MKEAuthHash string `json:"mkeAuthHash,omitempty"`
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
	// +optional
	KubernetesCordonDrain DrainState `json:"kubernetesCordonDrain,omitempty"`
	// +optional
	KubernetesCordonDrainError string `json:"kubernetesCordonDrainError,omitempty"`
	// +optional
	SwarmCordonDrain DrainState `json:"swarmCordonDrain,omitempty"`
	// +optional
	SwarmCordonDrainError string `json:"swarmCordonDrainError,omitempty"`
	// +optional
	LCMOperationStuck bool `json:"lcmOperationStuck,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum="";started;completed;aborting;failed
	PrepareDeletionPhase string `json:"prepareDeletionPhase,omitempty"`
	// +optional
	MKEManagerReady bool `json:"mkeManagerReady,omitempty"`
	// Distribution has the API's capital letter in JSON.
	// +optional
	Distribution []string `json:"Distribution,omitempty"`
}

// AgentUpgradeStatus is the result of the agent's last upgrade of itself.
type AgentUpgradeStatus struct {
	// +optional
	Error string `json:"error,omitempty"`
	// +optional
	Attempt int `json:"attempt,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// RebootStatus is the state of the reboot that spec.rebootRequired demands.
type RebootStatus struct {
	// +optional
	RequestedAt *metav1.Time `json:"requestedAt,omitempty"`
	// +optional
	Completed bool `json:"completed,omitempty"`
	// +optional
	ErrorMessage string `json:"errorMessage,omitempty"`
}

// LCMMachine is a machine as the LCM controller and its agent see it. Its name and
// namespace are those of its Machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=lcmmachines,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterName",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="InternalIP",type=string,priority=1,JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`
// +kubebuilder:printcolumn:name="Hostname",type=string,priority=1,JSONPath=`.status.addresses[?(@.type=="Hostname")].address`
// +kubebuilder:printcolumn:name="AgentVersion",type=string,priority=1,JSONPath=`.status.agentVersion`
type LCMMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The provider creates an LCMMachine without a spec; the LCM controller fills it in.
	// +optional
	Spec LCMMachineSpec `json:"spec,omitzero"`
	// +optional
	Status LCMMachineStatus `json:"status,omitzero"`
}

// LCMMachineList is a list of LCMMachines.
//
// +kubebuilder:object:root=true
type LCMMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LCMMachine `json:"items"`
}
