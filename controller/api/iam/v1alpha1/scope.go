package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The fields of a Scope are in no public text, and may change with this file.

// ScopeFinalizer suspends the deletion of a Scope until no role binding needs it.
const ScopeFinalizer = "scope.iam.mirantis.com"

// ScopeSpec names the namespace or Cluster of a scope, and its Keycloak scopes.
// +kubebuilder:validation:XValidation:rule="!has(self.cluster) || has(self.__namespace__)",message="cluster: give the cluster's namespace, too"
type ScopeSpec struct {
	// Namespace is empty in the scope of all namespaces.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Cluster is the name of a Cluster; empty in the scope of a namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`
	// Roles are the roles that users can have in the scope.
	// +listType=map
	// +listMapKey=role
	// +kubebuilder:validation:MaxItems=32
	Roles []ScopeRole `json:"roles"`
}

// ScopeRole is a role in a scope.
type ScopeRole struct {
	// Role is the name of an IAMRole.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role"`
	// Client is the client of Keycloak: kaas, k8s or sl.
	// +kubebuilder:validation:Enum=kaas;k8s;sl
	Client string `json:"client"`
	// Scope is the scope of Keycloak: m:CLIENT:NAMESPACE:CLUSTER@ROLE, m:CLIENT:NAMESPACE@ROLE
	// or m:CLIENT@ROLE.
	// +kubebuilder:validation:Pattern=`^m:(kaas|k8s|sl)(:[^:@]+){0,2}@[^:@]+$`
	// +kubebuilder:validation:MaxLength=512
	Scope string `json:"scope"`
}

// Scope bounds role bindings: to all namespaces, one namespace, or a Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=scopes,scope=Cluster
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Roles",type=string,JSONPath=`.spec.roles[*].role`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Scope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ScopeSpec `json:"spec"`
}

// ScopeList is a list of Scopes.
//
// +kubebuilder:object:root=true
type ScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Scope `json:"items"`
}
