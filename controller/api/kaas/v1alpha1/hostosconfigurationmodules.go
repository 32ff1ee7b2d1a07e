package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostOSConfigurationModulesSpec lists modules.
type HostOSConfigurationModulesSpec struct {
	// +optional
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=name
	// +listMapKey=version
	Modules []Module `json:"modules,omitempty"`
}

// Module is a version of a module, and where its archive is. Machines may have a version
// already: other content needs another version.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="url and sha256sum of a version of a module never change: add a new version, or remove this one first"
type Module struct {
	Name    ModuleName `json:"name"`
	Version SemVer     `json:"version"`
	// SHA256Sum is the SHA-256 of the archive, in hexadecimal.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	SHA256Sum string `json:"sha256sum"`
	// URL is the address of the archive. Without one, the module is the vendor's.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^/]`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
}

// ModuleState is the state of a module.
// +kubebuilder:validation:Enum=available;deprecated;error
type ModuleState string

// The states.
const (
	ModuleAvailable  ModuleState = "available"
	ModuleDeprecated ModuleState = "deprecated"
	ModuleError      ModuleState = "error"
)

// HostOSConfigurationModulesStatus is the result of loading the modules.
type HostOSConfigurationModulesStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Summary has each module with its state, those with errors first: a column of kubectl shows
	// the first element of a list alone.
	// +optional
	Summary string `json:"summary,omitempty"`
	// Modules are the results of spec.modules, in their order.
	// +optional
	Modules []ModuleStatus `json:"modules,omitempty"`
}

// ModuleStatus is the result of loading a module.
type ModuleStatus struct {
	Name    ModuleName `json:"name"`
	Version SemVer     `json:"version"`
	// +optional
	URL string `json:"url,omitempty"`
	// +optional
	DocURL string `json:"docURL,omitempty"`
	// +optional
	Description string `json:"description,omitempty"`
	// SHA256Sum is the SHA-256 of the archive that was fetched.
	// +optional
	SHA256Sum string `json:"sha256sum,omitempty"`
	// +optional
	PlaybookName string `json:"playbookName,omitempty"`
	// ValuesValidationSchema is the JSON Schema of the values.
	// +optional
	ValuesValidationSchema []byte      `json:"valuesValidationSchema,omitempty"`
	State                  ModuleState `json:"state"`
	// +optional
	Error string `json:"error,omitempty"`
	// +optional
	Deprecates []ModuleReference `json:"deprecates,omitempty"`
	// +optional
	DeprecatedBy []ModuleReference `json:"deprecatedBy,omitempty"`
	// SupportedDistributions are those that the module is for; none means all.
	// +optional
	SupportedDistributions []string `json:"supportedDistributions,omitempty"`
}

// HostOSConfigurationModules lists modules that HostOSConfigurations can use.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostosconfigurationmodules,scope=Cluster,shortName=hocm
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Modules",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HostOSConfigurationModules struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec HostOSConfigurationModulesSpec `json:"spec,omitzero"`
	// +optional
	Status HostOSConfigurationModulesStatus `json:"status,omitzero"`
}

// HostOSConfigurationModulesList is a list of HostOSConfigurationModules.
//
// +kubebuilder:object:root=true
type HostOSConfigurationModulesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostOSConfigurationModules `json:"items"`
}
