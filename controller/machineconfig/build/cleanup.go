package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// imageFinalizer keeps a MachineOSBuild until its image is deleted.
const imageFinalizer = "metalab.dev/os-image"

const (
	// imagePoll is how often the controller looks whether the nodes have left an image, by
	// both clocks.
	imagePoll = queue.SecretWait
	// imagePatience is how long a registry may refuse to delete an image: then it stays there.
	imagePatience = 10 * time.Minute
)

// removeEphemeral deletes the objects of a build that has succeeded. The log stays.
func (v *pass) removeEphemeral(ctx context.Context, b *mcv1.MachineOSBuild) error {
	j := new(batchv1.Job)
	key := client.ObjectKey{Namespace: machineconfig.Namespace, Name: JobPrefix + b.Name}
	if err := v.Client.Get(ctx, key, j); err != nil { // the Job is the last to go
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(j, b) || j.DeletionTimestamp != nil {
		return nil
	}
	_, err := v.removeObjects(ctx, b, func(o client.Object) bool {
		_, ephemeral := o.GetLabels()[machineconfig.EphemeralLabel]
		return ephemeral
	})
	return err
}

// removeObjects deletes the objects of a build that match, the Job as the last. It reports
// whether all of them are gone: a finalizer of somebody's delays that.
func (v *pass) removeObjects(ctx context.Context, b *mcv1.MachineOSBuild, match func(client.Object) bool) (gone bool, err error) {
	labels := client.MatchingLabels{machineconfig.OSBuildLabel: b.Name}
	var maps corev1.ConfigMapList
	var secrets corev1.SecretList
	var jobs batchv1.JobList
	for _, list := range []client.ObjectList{&maps, &secrets, &jobs} {
		if err := v.Reader.List(ctx, list, client.InNamespace(machineconfig.Namespace), labels); err != nil {
			return false, fmt.Errorf("build: objects of MachineOSBuild %s: %w", b.Name, err)
		}
	}
	var all []client.Object
	for i := range maps.Items {
		all = append(all, &maps.Items[i])
	}
	for i := range secrets.Items {
		all = append(all, &secrets.Items[i])
	}
	for i := range jobs.Items {
		all = append(all, &jobs.Items[i])
	}
	gone = true
	for _, o := range all {
		if !metav1.IsControlledBy(o, b) || !match(o) {
			continue
		}
		gone = gone && len(o.GetFinalizers()) == 0
		uid := o.GetUID()
		err := v.Client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("build: delete %s: %w", o.GetName(), err)
		}
	}
	return gone, nil
}

// finish ends the builds that are being deleted: their images go, unless something refers to
// them still, and so do their objects. The garbage collector would delete these some time after
// the build: the next build of the name would take the Job for somebody else's, or lose the
// ConfigMaps that it has adopted. finish returns when to look again.
func (v *pass) finish(ctx context.Context) (after time.Duration, err error) {
	for _, b := range v.builds {
		if b.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(b, imageFinalizer) {
			continue
		}
		wait, err := v.removeImage(ctx, b)
		if err != nil {
			return 0, err
		}
		if wait == 0 {
			gone, err := v.removeObjects(ctx, b, func(client.Object) bool { return true })
			if err != nil {
				return 0, err
			}
			if !gone {
				wait = imagePoll
			}
		}
		if wait > 0 {
			after = wait
			continue
		}
		before := b.DeepCopy()
		controllerutil.RemoveFinalizer(b, imageFinalizer)
		if err := v.Client.Patch(ctx, b, patch.IfUnchanged(before)); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("build: MachineOSBuild %s: %w", b.Name, err)
		}
	}
	if v.osConfig == nil && v.pool != nil && machineconfig.ConditionIsTrue(v.pool, mcv1.MachineConfigPoolImageBuildDegraded) {
		return after, v.report(ctx, corev1.ConditionFalse, "NotLayered", "")
	}
	return after, nil
}

// removeImage deletes the image of a build. wait is when to try again.
func (v *pass) removeImage(ctx context.Context, b *mcv1.MachineOSBuild) (wait time.Duration, err error) {
	image := b.Status.DigestedImagePushSpec
	if image == "" {
		return 0, nil
	}
	used, busy, err := v.users(ctx, b)
	if err != nil {
		return 0, err
	}
	if used {
		return 0, nil // it is another object's now
	}
	if busy {
		return imagePoll, nil
	}
	var s corev1.Secret
	if err := v.Reader.Get(ctx, client.ObjectKey{Namespace: machineconfig.Namespace, Name: b.Annotations[machineconfig.PushSecretAnnotation]}, &s); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("build: push secret: %w", err)
	}
	access := registry.Access{Config: s.Data[corev1.DockerConfigJsonKey]}
	if v.controller != nil {
		access = v.access(&s)
	}
	if err := v.Images.Delete(ctx, string(image), access); err != nil {
		if v.Clock.Since(b.DeletionTimestamp.Time) >= imagePatience {
			return 0, nil // the registry keeps it
		}
		return imagePoll, nil
	}
	return 0, nil
}

// users reports whether something refers to the image of a build that is being deleted: another
// build or MachineOSConfig, which has the image from now on, or a node, which will leave it.
func (v *pass) users(ctx context.Context, build *mcv1.MachineOSBuild) (used, busy bool, err error) {
	image := string(build.Status.DigestedImagePushSpec)
	var configs mcv1.MachineOSConfigList
	var builds mcv1.MachineOSBuildList
	var nodes corev1.NodeList
	if err := errors.Join(v.Client.List(ctx, &configs), v.Client.List(ctx, &builds), v.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy)); err != nil {
		return false, false, fmt.Errorf("build: users of image %s: %w", image, err)
	}
	for _, c := range configs.Items {
		// A rebuild gives the same digest, and so does a MachineOSConfig that was created again
		// before the nodes had left its image.
		again := c.Name == build.Spec.MachineOSConfig.Name && !metav1.IsControlledBy(build, &c)
		used = used || c.DeletionTimestamp == nil && (string(c.Status.CurrentImagePullSpec) == image || again)
	}
	for i := range builds.Items {
		b := &builds.Items[i]
		if b.DeletionTimestamp != nil || b.Name == build.Name {
			continue
		}
		used = used || string(b.Status.DigestedImagePushSpec) == image
		// A build of the same repository may push these bytes at any time.
		busy = busy || !ended(b) && repository(b.Spec.RenderedImagePushSpec) == repository(build.Spec.RenderedImagePushSpec)
	}
	for i := range nodes.Items {
		a := nodes.Items[i].Annotations
		busy = busy || slices.Contains([]string{a[machineconfig.CurrentImage], a[machineconfig.DesiredOSImage], a[machineconfig.DesiredImage]}, image)
	}
	return used, busy, nil
}
