package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// HostOSConfigurationSpec applies modules to machines.
type HostOSConfigurationSpec struct {
	// MachineSelector selects Machines of the object's namespace. An empty selector
	// selects none, unlike Kubernetes' selectors.
	// +optional
	MachineSelector metav1.LabelSelector `json:"machineSelector,omitempty"`
	// Configs are applied in the ascending order of their order, and those without one
	// after them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(c, !has(c.order) || self.exists_one(d, has(d.order) && d.order == c.order))",message="two configs have the same order: give each its own, or leave it out"
	// +listType=atomic
	Configs []Config `json:"configs"`
}

// ConfigPhase is the phase of a config's state items.
// +kubebuilder:validation:Enum=reconfigure
type ConfigPhase string

// ConfigReconfigure is the only phase.
const ConfigReconfigure ConfigPhase = "reconfigure"

// Config is a module with the values that it gets.
type Config struct {
	Module        ModuleName `json:"module"`
	ModuleVersion SemVer     `json:"moduleVersion"`
	// +optional
	Description string `json:"description,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Order *int32 `json:"order,omitempty"`
	// Values are the variable values of the module's playbook. The module's schema
	// validates them.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// SecretValues names a Secret whose data are merged over values.
	// +optional
	SecretValues *SecretReference `json:"secretValues,omitempty"`
	// +optional
	// +kubebuilder:default=reconfigure
	Phase ConfigPhase `json:"phase,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace is that of the object, also when it is empty: any other is refused.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// HostOSConfiguration configures the operating system of machines by modules.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostosconfigurations,scope=Namespaced,shortName=hoc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Valid",type=boolean,JSONPath=`.status.isValid`
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Modules",type=string,JSONPath=`.status.modulesText`
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.lastFailure`
// +kubebuilder:printcolumn:name="Error",type=string,priority=1,JSONPath=`.status.configs[*].error`
// +kubebuilder:printcolumn:name="Deprecated",type=boolean,priority=1,JSONPath=`.status.containsDeprecatedModules`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HostOSConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HostOSConfigurationSpec `json:"spec"`
	// +optional
	Status HostOSConfigurationStatus `json:"status,omitzero"`
}

// HostOSConfigurationList is a list of HostOSConfigurations.
//
// +kubebuilder:object:root=true
type HostOSConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostOSConfiguration `json:"items"`
}
