package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The fields of IAMRole, IAMUser and the bindings are inferred: no public text lists all of
// them. The kinds have no spec.

// RoleScope is where a role can be bound.
// +kubebuilder:validation:Enum=global;namespace;cluster
type RoleScope string

// The scopes of roles.
const (
	RoleGlobal    RoleScope = "global"    // by an IAMGlobalRoleBinding
	RoleNamespace RoleScope = "namespace" // by an IAMRoleBinding
	RoleCluster   RoleScope = "cluster"   // by an IAMClusterRoleBinding
)

// IAMRole is a role that users can have.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamroles,scope=Cluster
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.scope`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.description`
// +kubebuilder:validation:XValidation:rule="self.scope == oldSelf.scope",message="scope: the scope of a role never changes: make another role"
type IAMRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Description string    `json:"description,omitempty"`
	Scope       RoleScope `json:"scope"`
}

// IAMRoleList is a list of IAMRoles.
//
// +kubebuilder:object:root=true
type IAMRoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IAMRole `json:"items"`
}

// IAMUser is a user of Keycloak.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamusers,scope=Cluster
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.displayName`
// +kubebuilder:printcolumn:name="ID",type=string,priority=1,JSONPath=`.externalID`
type IAMUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// ExternalID is the user's ID in Keycloak.
	// +optional
	ExternalID string `json:"externalID,omitempty"`
}

// IAMUserList is a list of IAMUsers.
//
// +kubebuilder:object:root=true
type IAMUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IAMUser `json:"items"`
}

// Name names an object.
type Name struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Binding gives a role to a user. It never changes: another user or role is another object.
type Binding struct {
	// Role is an IAMRole.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="role of a binding never changes: make another binding"
	Role Name `json:"role"`
	// User is an IAMUser.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="user of a binding never changes: make another binding"
	User Name `json:"user"`
	// External is set in a binding that comes from Keycloak.
	// +optional
	External bool `json:"external,omitempty"`
	// Legacy is set in a binding of a role from before version 2.14.
	// +optional
	Legacy bool `json:"legacy,omitempty"`
	// +optional
	LegacyRole string `json:"legacyRole,omitempty"`
}

// IAMGlobalRoleBinding gives a user a role everywhere.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamglobalrolebindings,scope=Cluster
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.user.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.role.name`
type IAMGlobalRoleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Binding           `json:",inline"`
}

// IAMGlobalRoleBindingList is a list of IAMGlobalRoleBindings.
//
// +kubebuilder:object:root=true
type IAMGlobalRoleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IAMGlobalRoleBinding `json:"items"`
}

// IAMRoleBinding gives a user a role in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamrolebindings,scope=Namespaced
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.user.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.role.name`
type IAMRoleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Binding           `json:",inline"`
}

// IAMRoleBindingList is a list of IAMRoleBindings.
//
// +kubebuilder:object:root=true
type IAMRoleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IAMRoleBinding `json:"items"`
}

// IAMClusterRoleBinding gives a user a role in a Cluster of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamclusterrolebindings,scope=Namespaced
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.cluster.name`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.user.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.role.name`
type IAMClusterRoleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Binding           `json:",inline"`

	// Cluster is a Cluster.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cluster of a binding never changes: make another binding"
	Cluster Name `json:"cluster"`
}

// IAMClusterRoleBindingList is a list of IAMClusterRoleBindings.
//
// +kubebuilder:object:root=true
type IAMClusterRoleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IAMClusterRoleBinding `json:"items"`
}
