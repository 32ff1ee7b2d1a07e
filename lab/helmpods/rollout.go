package helmpods

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// The annotations of a Deployment and its ReplicaSets, as upstream's controller writes them.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
)

// reconcile brings the ReplicaSets and pods of a Deployment to its spec. The API's garbage collector
// deletes those of a Deployment that is gone.
func (p *Pods) reconcile(ctx context.Context, key client.ObjectKey) error {
	runs, known := p.Process.state()
	if !known { // the lab is starting: its pods keep the state that they had
		return nil
	}
	d := new(appsv1.Deployment)
	if err := p.live.Get(ctx, key, d); err != nil {
		return queue.Deleted(err)
	}
	if !d.DeletionTimestamp.IsZero() || !ours(d) {
		return nil
	}
	r := &rollout{Pods: p, d: d, runs: runs, replicas: ptr.Deref(d.Spec.Replicas, 1)}
	if err := r.read(ctx); err != nil {
		return fmt.Errorf("Deployment %s: %w", key, err)
	}
	for _, step := range []func(context.Context) error{r.choose, r.grow, r.serve, r.shrink, r.recordSets, r.recordDeployment, r.forget} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("Deployment %s: %w", key, err)
		}
	}
	return nil
}

// rollout is one look at a Deployment.
type rollout struct {
	*Pods
	d        *appsv1.Deployment
	runs     bool
	replicas int32
	missing  string // why a pod cannot start; "" when it can
	sets     []*set // in the order of their revisions
	current  *set   // that of the Deployment's template; nil while a paused one has none
}

// set is a ReplicaSet with its pods that are neither deleted nor at their end.
type set struct {
	appsv1.ReplicaSet
	pods []*corev1.Pod // in the order of their creation
}

func (s *set) revision() int {
	n, _ := strconv.Atoi(s.Annotations[revisionAnnotation]) // 0 when nobody has written one
	return n
}

// read reads the ReplicaSets, the pods and the account.
func (r *rollout) read(ctx context.Context) error {
	in := []client.ListOption{client.InNamespace(r.d.Namespace), client.MatchingLabels(r.labels())}
	var sets appsv1.ReplicaSetList
	if err := r.live.List(ctx, &sets, in...); err != nil {
		return err
	}
	for _, x := range sets.Items {
		if metav1.IsControlledBy(&x, r.d) && x.DeletionTimestamp.IsZero() {
			r.sets = append(r.sets, &set{ReplicaSet: x})
		}
	}
	slices.SortFunc(r.sets, func(a, b *set) int { return cmp.Compare(a.revision(), b.revision()) })
	var pods corev1.PodList
	if err := r.live.List(ctx, &pods, in...); err != nil {
		return err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range pods.Items {
		x := &pods.Items[i]
		if !x.DeletionTimestamp.IsZero() || x.Status.Phase == corev1.PodFailed || x.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, s := range r.sets {
			if metav1.IsControlledBy(x, s) {
				s.pods = append(s.pods, x)
			}
		}
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.d.Namespace, Name: helmcontroller.SecretName(r.d.Name)}
	switch err := r.live.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		r.missing = fmt.Sprintf("secret %q not found", key.Name)
	case err != nil:
		return err
	case len(secret.Data[helmcontroller.BundleKey]) == 0:
		r.missing = fmt.Sprintf("couldn't find key %s in Secret %s: the provider writes it for the release of a Cluster", helmcontroller.BundleKey, key)
	}
	return nil
}

func (r *rollout) labels() map[string]string {
	out := maps.Clone(helmcontroller.Labels)
	out[helmcontroller.InstanceLabel] = r.d.Name
	return out
}

// choose finds the ReplicaSet of the Deployment's template, or makes it, and numbers its revision.
func (r *rollout) choose(ctx context.Context) error {
	last := 0
	for _, s := range r.sets {
		template := s.Spec.Template.DeepCopy()
		delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		if r.current == nil && equality.Semantic.DeepEqual(*template, r.d.Spec.Template) {
			r.current = s
		} else {
			last = max(last, s.revision())
		}
	}
	if r.d.Spec.Paused && r.current == nil {
		return nil
	}
	if r.current == nil {
		s, err := r.newSet()
		if err != nil {
			return err
		}
		if err := r.client.Create(ctx, &s.ReplicaSet); err != nil {
			return err
		}
		r.sets, r.current = append(r.sets, s), s
	}
	revision := strconv.Itoa(max(r.current.revision(), last+1))
	wanted := map[string]string{
		revisionAnnotation: revision, desiredAnnotation: strconv.Itoa(int(r.replicas)), maxAnnotation: strconv.Itoa(int(r.replicas + r.surge())),
	}
	if err := r.annotate(ctx, &r.current.ReplicaSet, wanted); err != nil {
		return err
	}
	return r.annotate(ctx, r.d, map[string]string{revisionAnnotation: revision})
}

func (r *rollout) annotate(ctx context.Context, o client.Object, wanted map[string]string) error {
	before := o.DeepCopyObject().(client.Object)
	all := maps.Clone(o.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	if maps.Equal(all, o.GetAnnotations()) {
		return nil
	}
	o.SetAnnotations(all)
	return r.client.Patch(ctx, o, client.MergeFrom(before))
}

// newSet returns a ReplicaSet of the Deployment's template, whose name ends with a hash of it.
func (r *rollout) newSet() (*set, error) {
	text, err := json.Marshal(r.d.Spec.Template)
	if err != nil {
		return nil, err
	}
	sum := fnv.New32a()
	sum.Write(text)
	hash := rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))
	template := *r.d.Spec.Template.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	return &set{ReplicaSet: appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.d.Namespace, Name: r.d.Name + "-" + hash, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(r.replicas), MinReadySeconds: r.d.Spec.MinReadySeconds, Template: template,
			Selector: metav1.AddLabelToSelector(r.d.Spec.Selector.DeepCopy(), appsv1.DefaultDeploymentUniqueLabelKey, hash),
		},
	}}, nil
}

// mostPods is the number of pods that a ReplicaSet has at most: a mistyped number of replicas must
// not fill the lab.
const mostPods = 10

// replicasOf returns the replicas that a ReplicaSet has in the end.
func (r *rollout) replicasOf(s *set) int32 {
	switch {
	case s == r.current:
		return r.replicas
	case r.current == nil: // paused
		return ptr.Deref(s.Spec.Replicas, 0)
	}
	return 0
}

// podsOf returns how many pods a ReplicaSet has in the end.
func (r *rollout) podsOf(s *set) int { return int(min(r.replicasOf(s), mostPods)) }

// grow makes the pods that are missing.
func (r *rollout) grow(ctx context.Context) error {
	for _, s := range r.sets {
		if want := r.replicasOf(s); ptr.Deref(s.Spec.Replicas, 1) != want {
			before := s.DeepCopy()
			s.Spec.Replicas = ptr.To(want)
			if err := r.client.Patch(ctx, &s.ReplicaSet, client.MergeFrom(before)); err != nil {
				return err
			}
		}
		for len(s.pods) < r.podsOf(s) {
			x := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: s.Namespace, GenerateName: s.Name + "-", Labels: maps.Clone(s.Spec.Template.Labels), Annotations: maps.Clone(s.Spec.Template.Annotations),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&s.ReplicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
				},
				Spec: *s.Spec.Template.Spec.DeepCopy(),
			}
			if err := r.client.Create(ctx, x); err != nil {
				return err
			}
			s.pods = append(s.pods, x)
		}
	}
	return nil
}

// shrink deletes the pods that are too many, the youngest first. Those of older templates go once
// the new ones are ready.
func (r *rollout) shrink(ctx context.Context) error {
	for _, s := range r.sets {
		if s != r.current && r.current != nil && int(ready(r.current.pods)) < r.podsOf(r.current) {
			continue
		}
		for len(s.pods) > r.podsOf(s) {
			last := len(s.pods) - 1
			if err := client.IgnoreNotFound(r.client.Delete(ctx, s.pods[last])); err != nil {
				return err
			}
			s.pods = s.pods[:last]
		}
	}
	return nil
}

// forget deletes the oldest ReplicaSets without pods that the Deployment's history does not keep.
func (r *rollout) forget(ctx context.Context) error {
	var old []*set
	for _, s := range r.sets {
		if s != r.current && ptr.Deref(s.Spec.Replicas, 1) == 0 && len(s.pods) == 0 {
			old = append(old, s)
		}
	}
	const usual = 10
	for _, s := range old[:max(len(old)-int(ptr.Deref(r.d.Spec.RevisionHistoryLimit, usual)), 0)] {
		if err := client.IgnoreNotFound(r.client.Delete(ctx, &s.ReplicaSet)); err != nil {
			return err
		}
	}
	return nil
}
