package helmpods

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReasonStopped is the reason of a pod that is not ready because the lab's controllers are stopped.
const ReasonStopped = "ControllersStopped"

const (
	stoppedMessage = "the controllers of the lab are stopped, in whose process this one works: start them"
	servesMessage  = "the controllers of the lab run, in whose process this one works"
	// reasonConfig is the kubelet's for a container whose Secret is missing.
	reasonConfig = "CreateContainerConfigError"
)

func (r *rollout) now() metav1.Time { return metav1.NewTime(r.Clock.Now().Truncate(1e9)) } // as JSON has it

// serve writes the statuses of the pods, as a kubelet would.
func (r *rollout) serve(ctx context.Context) error {
	for _, s := range r.sets {
		for _, x := range s.pods {
			before := x.DeepCopy()
			r.setPod(x)
			if equality.Semantic.DeepEqual(before.Status, x.Status) {
				continue
			}
			if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, x, client.MergeFrom(before))); err != nil {
				return err
			}
		}
	}
	return nil
}

// setPod sets the status of a pod. The Secret is needed to start alone.
func (r *rollout) setPod(x *corev1.Pod) {
	s, now := &x.Status, r.now()
	started := s.Phase == corev1.PodRunning
	reason, message := "", ""
	switch {
	case !started && r.missing != "":
		reason, message = reasonConfig, r.missing
	case !r.runs:
		reason, message = ReasonStopped, stoppedMessage
	}
	serves := reason == ""
	if serves || started {
		s.Phase = corev1.PodRunning
	} else {
		s.Phase = corev1.PodPending
	}
	if s.StartTime == nil {
		s.StartTime = &now
	}
	condition := func(of corev1.PodConditionType, ok bool, reason, message string) {
		setPodCondition(s, corev1.PodCondition{Type: of, Status: truth(ok), Reason: reason, Message: message, LastTransitionTime: now})
	}
	condition(corev1.PodScheduled, true, "", "")
	condition(corev1.PodInitialized, true, "", "")
	condition(corev1.ContainersReady, serves, reason, message)
	if serves {
		message = servesMessage
	}
	condition(corev1.PodReady, serves, reason, message)
	was := s.ContainerStatuses
	s.ContainerStatuses = nil
	for _, c := range x.Spec.Containers {
		out := corev1.ContainerStatus{Name: c.Name, Image: c.Image}
		if i := slices.IndexFunc(was, func(o corev1.ContainerStatus) bool { return o.Name == c.Name }); i >= 0 {
			out = *was[i].DeepCopy()
		}
		setContainer(&out, reason, message, now)
		s.ContainerStatuses = append(s.ContainerStatuses, out)
	}
}

// setContainer sets the status of a container, which waits for a reason, or runs when there is none.
func setContainer(s *corev1.ContainerStatus, reason, message string, now metav1.Time) {
	ran := s.State.Running
	s.Ready, s.Started = reason == "", ptr.To(reason == "")
	switch {
	case reason == "" && ran == nil:
		if s.LastTerminationState.Terminated != nil {
			s.RestartCount++
		}
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	case reason != "":
		if ran != nil {
			s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", Message: message, StartedAt: ran.StartedAt, FinishedAt: now,
			}}
		}
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

func setPodCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	i := slices.IndexFunc(s.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	was := &s.Conditions[i]
	if was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	c.ObservedGeneration = was.ObservedGeneration
	*was = c
}

func truth(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// ready counts the pods that are ready.
func ready(pods []*corev1.Pod) (n int32) {
	for _, x := range pods {
		if slices.ContainsFunc(x.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return n
}

// recordSets writes the statuses of the ReplicaSets.
func (r *rollout) recordSets(ctx context.Context) error {
	for _, s := range r.sets {
		before := s.DeepCopy()
		n := int32(len(s.pods))
		s.Status.Replicas, s.Status.FullyLabeledReplicas, s.Status.ObservedGeneration = n, n, s.Generation
		s.Status.ReadyReplicas = ready(s.pods)
		s.Status.AvailableReplicas = s.Status.ReadyReplicas
		if equality.Semantic.DeepEqual(before.Status, s.Status) {
			continue
		}
		if err := r.client.Status().Patch(ctx, &s.ReplicaSet, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// surge and unavailable return how many pods a rollout may have beside the replicas, and how many
// replicas it may be without.
func (r *rollout) surge() int32 {
	return r.share(func(u *appsv1.RollingUpdateDeployment) *intstr.IntOrString { return u.MaxSurge }, true)
}
func (r *rollout) unavailable() int32 {
	return r.share(func(u *appsv1.RollingUpdateDeployment) *intstr.IntOrString { return u.MaxUnavailable }, false)
}

func (r *rollout) share(of func(*appsv1.RollingUpdateDeployment) *intstr.IntOrString, up bool) int32 {
	u := r.d.Spec.Strategy.RollingUpdate
	if u == nil || of(u) == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of(u), int(r.replicas), up)
	if err != nil { // the API has validated it
		return 0
	}
	return int32(n)
}

// recordDeployment writes the status of the Deployment, with the reasons of upstream's controller.
func (r *rollout) recordDeployment(ctx context.Context) error {
	before := r.d.DeepCopy()
	s := &r.d.Status
	s.ObservedGeneration, s.Replicas, s.ReadyReplicas, s.UpdatedReplicas = r.d.Generation, 0, 0, 0
	for _, x := range r.sets {
		s.Replicas, s.ReadyReplicas = s.Replicas+x.Status.Replicas, s.ReadyReplicas+x.Status.ReadyReplicas
	}
	name := ""
	if r.current != nil {
		s.UpdatedReplicas, name = r.current.Status.Replicas, r.current.Name
	}
	s.AvailableReplicas, s.UnavailableReplicas = s.ReadyReplicas, max(r.replicas-s.ReadyReplicas, 0)
	if s.AvailableReplicas >= r.replicas-r.unavailable() {
		r.condition(appsv1.DeploymentAvailable, true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		r.condition(appsv1.DeploymentAvailable, false, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	if r.replicas > mostPods {
		r.condition(appsv1.DeploymentReplicaFailure, true, "FailedCreate", fmt.Sprintf("a lab makes %d pods of a Helm controller at most: set fewer replicas", mostPods))
	} else {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentReplicaFailure })
	}
	const complete = "NewReplicaSetAvailable"
	done := fmt.Sprintf("ReplicaSet %q has successfully progressed.", name)
	i := slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Reason == complete && c.Message == done
	})
	switch {
	case i >= 0: // a rollout that is complete stays so
	case s.UpdatedReplicas == r.replicas && s.Replicas == r.replicas && s.AvailableReplicas == r.replicas:
		r.condition(appsv1.DeploymentProgressing, true, complete, done)
	default:
		r.condition(appsv1.DeploymentProgressing, true, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", name))
	}
	if equality.Semantic.DeepEqual(before.Status, *s) {
		return nil
	}
	return r.client.Status().Patch(ctx, r.d, client.MergeFrom(before))
}

func (r *rollout) condition(of appsv1.DeploymentConditionType, ok bool, reason, message string) {
	now := r.now()
	c := appsv1.DeploymentCondition{Type: of, Status: truth(ok), Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	all := &r.d.Status.Conditions
	i := slices.IndexFunc(*all, func(o appsv1.DeploymentCondition) bool { return o.Type == of })
	if i < 0 {
		*all = append(*all, c)
		return
	}
	was := &(*all)[i]
	if was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message {
		return
	}
	if was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	*was = c
}
