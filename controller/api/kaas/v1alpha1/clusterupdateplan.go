package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The ids of the steps that the provider plans. That of a group of workers is
// StepWorkers and the name of its UpdateGroup.
const (
	StepControllers = "k8s-controllers"
	StepWorkers     = "k8s-workers-"
	StepComponents  = "mcc-components"
)

// Granularity is the unit that a step updates: the cluster, or one machine after another.
// +kubebuilder:validation:Enum=cluster;machine
type Granularity string

// The granularities.
const (
	GranularityCluster Granularity = "cluster"
	GranularityMachine Granularity = "machine"
)

// Impact is how much a step disturbs.
// +kubebuilder:validation:Enum=none;minor;major
type Impact string

// The impacts.
const (
	ImpactNone  Impact = "none"
	ImpactMinor Impact = "minor"
	ImpactMajor Impact = "major"
)

// PlanStatus is how far a plan or a step of it is.
// +kubebuilder:validation:Enum=NotStarted;InProgress;Completed
type PlanStatus string

// The statuses, in their order.
const (
	PlanNotStarted PlanStatus = "NotStarted"
	PlanInProgress PlanStatus = "InProgress"
	PlanCompleted  PlanStatus = "Completed"
)

// ClusterUpdatePlanSpec has the steps from one release of a cluster to the next.
type ClusterUpdatePlanSpec struct {
	// Cluster is the name of the Cluster, in the plan's namespace.
	// +kubebuilder:validation:MinLength=1
	Cluster string `json:"cluster"`
	// Source is the ClusterRelease that the cluster has.
	// +kubebuilder:validation:MinLength=1
	Source string `json:"source"`
	// Target is the ClusterRelease that it gets.
	// +kubebuilder:validation:MinLength=1
	Target string `json:"target"`
	// +optional
	ReleaseNotes string `json:"releaseNotes,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=32
	Steps []PlanStep `json:"steps,omitempty"`
}

// PlanStep is a step of an update. It begins when it is commenced and those before it are
// completed.
type PlanStep struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ID   string `json:"id"`
	Name string `json:"name"`
	// +optional
	Description []string `json:"description,omitempty"`
	// +optional
	Constraints []string `json:"constraints,omitempty"`
	// +optional
	Impact StepImpact `json:"impact,omitzero"`
	// +optional
	Duration StepDuration `json:"duration,omitzero"`
	// +optional
	Granularity Granularity `json:"granularity,omitempty"`
	// Commence lets the step begin. A step that has begun is not undone.
	// +optional
	// +kubebuilder:default=false
	Commence bool `json:"commence"`
}

// StepImpact describes the disturbance by a step.
type StepImpact struct {
	// +optional
	Users Impact `json:"users,omitempty"`
	// +optional
	Workloads Impact `json:"workloads,omitempty"`
	// +optional
	Info []string `json:"info,omitempty"`
}

// StepDuration is how long a step may take.
type StepDuration struct {
	// Estimated is a duration such as 1h30m.
	// +optional
	Estimated string `json:"estimated,omitempty"`
	// +optional
	Info []string `json:"info,omitempty"`
}

// ClusterUpdatePlanStatus is how far an update is.
type ClusterUpdatePlanStatus struct {
	// +optional
	Status PlanStatus `json:"status,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=32
	Steps []PlanStepStatus `json:"steps,omitempty"`
}

// PlanStepStatus is how far a step is.
type PlanStepStatus struct {
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// +optional
	Name   string     `json:"name,omitempty"`
	Status PlanStatus `json:"status"`
	// Message names the condition that blocks the step.
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// Duration is that of a completed step.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// ClusterUpdatePlan is the update of a cluster to a release, in steps that an operator
// commences one by one. The provider creates it, as CLUSTER-VERSION, when the release can
// follow that of the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterupdateplans,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.spec.cluster == oldSelf.spec.cluster && self.spec.source == oldSelf.spec.source && self.spec.target == oldSelf.spec.target",message="spec: cluster, source and target never change: the provider makes another plan"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.steps) || oldSelf.status.steps.all(b, b.status == 'NotStarted' || (has(self.spec.steps) && self.spec.steps.exists(s, s.id == b.id && s.commence)))",message="spec.steps: commence of a step that has begun stays true"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterUpdatePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterUpdatePlanSpec `json:"spec"`
	// +optional
	Status ClusterUpdatePlanStatus `json:"status,omitzero"`
}

// ClusterUpdatePlanList is a list of ClusterUpdatePlans.
//
// +kubebuilder:object:root=true
type ClusterUpdatePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterUpdatePlan `json:"items"`
}
