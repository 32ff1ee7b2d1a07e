// Package machineconfig names what the controllers of machine configuration and the daemon on
// each node share: the annotations of Nodes, the states of a node, the labels of builds and the
// switch LayeredFileWrites. The names are those of machineconfiguration.openshift.io; what the
// specification (MCO-564) calls otherwise is said at the name.
//
// Its packages do the work: render makes one configuration of all MachineConfigs of a pool, build
// has an image of the operating system built of it, node hands both to the nodes of the pool, and
// drain empties nodes before they change.
package machineconfig

import (
	corev1 "k8s.io/api/core/v1"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
)

const (
	// Namespace has the Jobs, ConfigMaps and Secrets of builds.
	Namespace = "openshift-machine-config-operator"
	// ControllerConfigName is the name of the one ControllerConfig of a cluster.
	ControllerConfigName = "machine-config-controller"
	// ConfigurationName is the name of the one MachineConfiguration of a cluster.
	ConfigurationName = "cluster"
	// ControllerVersion is the version of the form of generated and rendered MachineConfigs.
	// It changes when the same input renders to something else.
	ControllerVersion = "metalab-1"

	// WorkerPool is the pool of all nodes with the role worker that are in no other.
	WorkerPool = "worker"
	// ControlPlanePool is the pool of the control plane.
	ControlPlanePool = "master"

	prefix = "machineconfiguration.openshift.io/"
)

// Annotations of Nodes.
const (
	CurrentConfig = prefix + "currentConfig"
	DesiredConfig = prefix + "desiredConfig"
	CurrentImage  = prefix + "currentImage"
	// DesiredOSImage is the image that a node boots, as REPOSITORY@sha256:DIGEST. This name is
	// the specification's.
	DesiredOSImage = prefix + "desiredOSimage"
	// DesiredImage mirrors DesiredOSImage under the name that upstream has shipped. Both are
	// in one patch.
	DesiredImage     = prefix + "desiredImage"
	State            = prefix + "state"
	Reason           = prefix + "reason"
	DesiredDrain     = prefix + "desiredDrain"
	LastAppliedDrain = prefix + "lastAppliedDrain"
)

// States of a node, the values of the annotation State.
const (
	Working        = "Working"
	Done           = "Done"
	Degraded       = "Degraded"
	Unreconcilable = "Unreconcilable"
)

// Verbs of DesiredDrain and LastAppliedDrain: VERB-RENDERED.
const (
	DrainVerb    = "drain"
	UncordonVerb = "uncordon"
)

// UpdateTaint marks nodes that do not have the configuration of their pool yet.
var UpdateTaint = corev1.Taint{Key: "UpdateInProgress", Effect: corev1.TaintEffectPreferNoSchedule}

// Annotations of MachineConfigs.
const (
	GeneratedByVersion   = prefix + "generated-by-controller-version"
	ReleaseImageVersion  = prefix + "release-image-version"
	OSImageURLOverridden = prefix + "os-image-url-overridden"
)

// Labels and annotations of builds.
const (
	TargetPoolLabel        = prefix + "target-machine-config-pool"
	RenderedConfigLabel    = prefix + "rendered-machine-config"
	OSConfigLabel          = prefix + "machine-os-config"
	OSBuildLabel           = prefix + "machine-os-build"
	LayeringLabel          = prefix + "on-cluster-layering"
	EphemeralLabel         = prefix + "ephemeral-build-object"
	CurrentBuildAnnotation = prefix + "current-machine-os-build" // annotation of a MachineOSConfig
	RebuildAnnotation      = prefix + "rebuild"                  // annotation of a MachineOSConfig
	PushSecretAnnotation   = prefix + "rendered-image-push-secret"
	JobUIDAnnotation       = prefix + "job-uid" // annotation of a MachineOSBuild
)

// Names of the objects that a build uses or leaves, with the name of its MachineOSBuild appended.
const (
	DigestPrefix = "digest-"
	// LogPrefix is that of the ConfigMap in which the lab's builder stores its log: no pod
	// has one. It is deleted with the MachineOSBuild.
	LogPrefix = "log-"
	LogKey    = "log"
	DigestKey = "digest"
)

// LayeredFileWrites says who writes the files and units of a configuration on a node whose image
// has them already.
type LayeredFileWrites string

const (
	// LayeredFileWritesAnnotation of the ControllerConfig selects one. Controllers and
	// daemons read it there.
	LayeredFileWritesAnnotation = "metalab.dev/layered-file-writes"
	// Skip is the specification's: the image alone carries files and units to a layered node,
	// and so each change of a configuration builds one.
	Skip LayeredFileWrites = "Skip"
	// Write is what upstream ships: the daemon writes files and units also on layered nodes,
	// and a change of files alone goes out with the image that there is.
	Write LayeredFileWrites = "Write"
)

// LayeredFileWritesOf returns the value of a cluster. Every value but Write is Skip.
func LayeredFileWritesOf(c *mcv1.ControllerConfig) LayeredFileWrites {
	if c.Annotations[LayeredFileWritesAnnotation] == string(Write) {
		return Write
	}
	return Skip
}
