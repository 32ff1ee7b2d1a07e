package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// mine selects the pods that are bound to the node.
func (a *agent) mine() string { return fields.OneTermEqualSelector("spec.nodeName", a.name).String() }

// startWatch begins to watch the pods over the present connection. stop returns when the
// watch has ended.
func (a *agent) startWatch(ctx context.Context, changed chan<- struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	api, ended := a.api, make(chan struct{})
	go func() {
		defer close(ended)
		a.watch(ctx, api, changed)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// watch sends to changed when a pod of the node may have changed.
func (a *agent) watch(ctx context.Context, api kubernetes.Interface, changed chan<- struct{}) {
	for ctx.Err() == nil {
		if w, err := api.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: a.mine()}); err == nil {
			for range w.ResultChan() { // it ends with ctx, or when the server ends it
				select {
				case changed <- struct{}{}:
				default: // a look at the pods is due already
				}
			}
			w.Stop()
		}
		timer := a.Clock.NewTimer(retry)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// servePods reports the pods of the node as Running, and lets go those that are deleted.
func (a *agent) servePods(ctx context.Context) error {
	pods, err := a.api.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: a.mine()})
	if err != nil {
		return fmt.Errorf("node: pods: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		p := &pods.Items[i]
		switch {
		case p.DeletionTimestamp != nil: // no container has to end
			err = a.api.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
				GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &p.UID},
			})
		case p.Status.Phase == corev1.PodPending || p.Status.Phase == "":
			err = a.markRunning(ctx, p)
		default:
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // it is gone, or another one
			errs = append(errs, fmt.Errorf("node: pod %s/%s: %w", p.Namespace, p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// podConditions are the conditions of a pod that runs.
var podConditions = []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady}

// markRunning writes the status of a pod as a kubelet does once its containers run. Pods
// have no network here: only one in the network of its host has an address.
func (a *agent) markRunning(ctx context.Context, p *corev1.Pod) error {
	now := metav1.NewTime(a.Clock.Now().Truncate(time.Second))
	s := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now}
	if len(a.facts.Addresses) > 0 {
		s.HostIP = a.facts.Addresses[0].String()
		s.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
		if p.Spec.HostNetwork {
			s.PodIP, s.PodIPs = s.HostIP, []corev1.PodIP{{IP: s.HostIP}}
		}
	}
	for _, t := range podConditions {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": s})
	if err != nil {
		return err
	}
	_, err = a.api.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, "status")
	return err
}
