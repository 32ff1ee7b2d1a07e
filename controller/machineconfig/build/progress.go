package build

import (
	"slices"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackoffLimit is how many pods of a build's Job may fail before the next failure is the Job's.
const BackoffLimit = 3

// words are the reason and message of a build's condition. All five are in each status.
var words = []struct {
	progress        mcv1.BuildProgress
	reason, message string
}{
	{mcv1.MachineOSBuildPrepared, "Prepared", "Build Prepared and Pending"},
	{mcv1.MachineOSBuilding, "Building", "Image Build In Progress"},
	{mcv1.MachineOSBuildFailed, "Failed", "Build Failed"},
	{mcv1.MachineOSBuildInterrupted, "Interrupted", "Build Interrupted"},
	{mcv1.MachineOSBuildSucceeded, "Ready", "Build Ready"},
}

// terminal are the conditions after which a build does not change.
var terminal = []mcv1.BuildProgress{mcv1.MachineOSBuildFailed, mcv1.MachineOSBuildInterrupted, mcv1.MachineOSBuildSucceeded}

// is reports whether a build has a condition.
func is(b *mcv1.MachineOSBuild, progress mcv1.BuildProgress) bool {
	return apimeta.IsStatusConditionTrue(b.Status.Conditions, string(progress))
}

// ended reports whether a build has a terminal condition.
func ended(b *mcv1.MachineOSBuild) bool {
	return slices.ContainsFunc(terminal, func(progress mcv1.BuildProgress) bool { return is(b, progress) })
}

// setProgress makes one condition of a build true and the others false. cause completes the
// message; it may be "".
func setProgress(b *mcv1.MachineOSBuild, to mcv1.BuildProgress, cause string, now time.Time) {
	for _, w := range words {
		c := metav1.Condition{Type: string(w.progress), Status: metav1.ConditionFalse, Reason: w.reason, Message: w.message, LastTransitionTime: metav1.NewTime(now)}
		if w.progress == to {
			c.Status = metav1.ConditionTrue
			if cause != "" {
				c.Message += ": " + cause
			}
		}
		apimeta.SetStatusCondition(&b.Status.Conditions, c)
	}
	if b.Status.BuildStart == nil {
		b.Status.BuildStart = &metav1.Time{Time: now}
	}
	if slices.Contains(terminal, to) && b.Status.BuildEnd == nil {
		// The definition wants an end that is later than the start, in full seconds.
		end := now
		if least := b.Status.BuildStart.Truncate(time.Second).Add(time.Second); end.Before(least) {
			end = least
		}
		b.Status.BuildEnd = &metav1.Time{Time: end}
	}
}

// progressOf returns the progress of a Job, and the cause when it has failed.
func progressOf(j *batchv1.Job) (progress mcv1.BuildProgress, cause string) {
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return mcv1.MachineOSBuildSucceeded, ""
		case c.Type == batchv1.JobFailed:
			return mcv1.MachineOSBuildFailed, c.Message
		}
	}
	switch {
	case j.DeletionTimestamp != nil:
		return mcv1.MachineOSBuildInterrupted, "its Job was deleted"
	case j.Status.Failed > BackoffLimit:
		return mcv1.MachineOSBuildFailed, "each attempt of its Job has failed"
	case j.Status.Active > 0 || j.Status.Failed > 0 || j.Status.Succeeded > 0:
		return mcv1.MachineOSBuilding, ""
	}
	return mcv1.MachineOSBuildPrepared, ""
}
