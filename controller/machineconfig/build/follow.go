package build

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/osimage"
	"github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

// inputsAnnotation of a MachineOSBuild is a hash of the inputs of its image beside the
// configuration.
const inputsAnnotation = "metalab.dev/build-inputs"

// create creates the MachineOSBuild of the pool's configuration. Where daemons write files and
// the image would not differ, the build is a copy of the current one, and no Job runs.
func (v *pass) create(ctx context.Context, name string, bases images) error {
	sum, err := inputs(v.osConfig, bases)
	if err != nil {
		return err
	}
	b := &mcv1.MachineOSBuild{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labelsOf(v.osConfig, v.pool.Spec.Configuration.Name),
			Annotations:     map[string]string{machineconfig.PushSecretAnnotation: v.osConfig.Spec.RenderedImagePushSecret.Name, inputsAnnotation: sum},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v.osConfig, mcv1.GroupVersion.WithKind("MachineOSConfig"))},
			Finalizers:      []string{imageFinalizer},
		},
		Spec: mcv1.MachineOSBuildSpec{
			MachineConfig:         mcv1.MachineConfigReference{Name: v.pool.Spec.Configuration.Name},
			MachineOSConfig:       mcv1.MachineOSConfigReference{Name: v.osConfig.Name},
			RenderedImagePushSpec: tagged(v.osConfig.Spec.RenderedImagePushSpec, name),
		},
	}
	_, asked := v.osConfig.Annotations[machineconfig.RebuildAnnotation]
	if asked {
		b.Annotations[machineconfig.RebuildAnnotation] = v.osConfig.Annotations[machineconfig.RebuildAnnotation]
	}
	carried, err := v.carried(ctx, sum)
	if err != nil {
		return err
	}
	if carried != nil && !asked {
		b.Annotations[carriedAnnotation] = carried.Name
	}
	if err := v.Client.Create(ctx, b); err != nil && !apierrors.IsAlreadyExists(err) { // the cache is late
		return fmt.Errorf("build: create MachineOSBuild %s: %w", name, err)
	}
	return v.condition(ctx, metav1.ConditionFalse, "Building", "")
}

// carriedAnnotation of a MachineOSBuild names the build whose image it carries over.
const carriedAnnotation = "metalab.dev/image-of"

// carried returns the current build when its image serves the pool's configuration, too; nil when
// another image is needed.
func (v *pass) carried(ctx context.Context, sum string) (*mcv1.MachineOSBuild, error) {
	if v.mode() != machineconfig.Write {
		return nil, nil
	}
	b := v.find(v.osConfig.Annotations[machineconfig.CurrentBuildAnnotation])
	if b == nil || !is(b, mcv1.MachineOSBuildSucceeded) || b.DeletionTimestamp != nil || b.Annotations[inputsAnnotation] != sum {
		return nil, nil
	}
	var before, after mcv1.MachineConfig
	if err := v.Client.Get(ctx, client.ObjectKey{Name: b.Spec.MachineConfig.Name}, &before); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if err := v.Client.Get(ctx, client.ObjectKey{Name: v.pool.Spec.Configuration.Name}, &after); err != nil {
		return nil, fmt.Errorf("build: MachineConfig %s: %w", v.pool.Spec.Configuration.Name, err)
	}
	if RequiresRebuild(&before, &after) {
		return nil, nil
	}
	return b, nil
}

// follow brings a build further: it begins, its Job ends, its image is handed on.
func (v *pass) follow(ctx context.Context, b *mcv1.MachineOSBuild, pull, push *corev1.Secret) error {
	if !ended(b) {
		if err := v.progress(ctx, b, pull, push); err != nil {
			return err
		}
	}
	switch {
	case is(b, mcv1.MachineOSBuildSucceeded):
		return v.adopt(ctx, b, pull)
	case ended(b):
		c := apimeta.FindStatusCondition(b.Status.Conditions, string(mcv1.MachineOSBuildFailed))
		if is(b, mcv1.MachineOSBuildInterrupted) {
			c = apimeta.FindStatusCondition(b.Status.Conditions, string(mcv1.MachineOSBuildInterrupted))
		}
		return v.report(ctx, corev1.ConditionTrue, "BuildFailed", fmt.Sprintf("Failed to build OS image for pool %s (MachineOSBuild: %s): %s", v.pool.Name, b.Name, c.Message))
	}
	return errors.Join(v.condition(ctx, metav1.ConditionFalse, "Building", ""), v.report(ctx, corev1.ConditionFalse, "Building", ""))
}

// progress writes the progress of a build that has not ended.
func (v *pass) progress(ctx context.Context, b *mcv1.MachineOSBuild, pull, push *corev1.Secret) error {
	if source := b.Annotations[carriedAnnotation]; source != "" {
		return v.carry(ctx, b, source)
	}
	j := new(batchv1.Job)
	key := client.ObjectKey{Namespace: machineconfig.Namespace, Name: JobPrefix + b.Name}
	err := v.Client.Get(ctx, key, j)
	if apierrors.IsNotFound(err) { // the cache may be late
		err = v.Reader.Get(ctx, key, j)
	}
	switch {
	case apierrors.IsNotFound(err) && b.Annotations[machineconfig.JobUIDAnnotation] == "":
		return v.begin(ctx, b, pull, push)
	case apierrors.IsNotFound(err), err == nil && b.Annotations[machineconfig.JobUIDAnnotation] != "" && string(j.UID) != b.Annotations[machineconfig.JobUIDAnnotation]:
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildInterrupted, cause: "its Job was deleted"})
	case err != nil:
		return fmt.Errorf("build: Job %s: %w", key, err)
	case !metav1.IsControlledBy(j, b):
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildFailed, cause: fmt.Sprintf("Job %s belongs to something else: delete it", key)})
	}
	if err := v.annotate(ctx, b, machineconfig.JobUIDAnnotation, string(j.UID)); err != nil {
		return err
	}
	to, cause := progressOf(j)
	if to != mcv1.MachineOSBuildSucceeded {
		return v.write(ctx, b, advance{to: to, cause: cause, job: j})
	}
	digest, err := v.digest(ctx, b)
	if err != nil {
		return err
	}
	if digest == "" {
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildFailed, cause: fmt.Sprintf("its Job has succeeded without a digest in the ConfigMap %s%s", machineconfig.DigestPrefix, b.Name), job: j})
	}
	return v.write(ctx, b, advance{to: mcv1.MachineOSBuildSucceeded, image: mcv1.ImageDigestFormat(repository(b.Spec.RenderedImagePushSpec) + "@" + digest), job: j})
}

// begin creates the objects of a build, the Job as the last. A crash in between leaves some of
// them: the next reconcile creates the others.
func (v *pass) begin(ctx context.Context, b *mcv1.MachineOSBuild, pull, push *corev1.Secret) error {
	p := parts{build: b, osConfig: v.osConfig, controller: v.controller, pull: pull, push: push, config: new(mcv1.MachineConfig)}
	if err := v.Client.Get(ctx, client.ObjectKey{Name: b.Spec.MachineConfig.Name}, p.config); err != nil {
		return fmt.Errorf("build: MachineConfig %s: %w", b.Spec.MachineConfig.Name, err)
	}
	if err := osimage.CheckSyntax(p.containerfile()); err != nil {
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildFailed, cause: err.Error()})
	}
	all, err := p.objects()
	if err != nil {
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildFailed, cause: err.Error()})
	}
	var job *batchv1.Job // that this call has created
	for _, o := range all {
		err := v.Client.Create(ctx, o)
		switch {
		case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
			return v.write(ctx, b, advance{to: mcv1.MachineOSBuildFailed, cause: fmt.Sprintf("%s cannot be created: %s", o.GetName(), err)})
		case err != nil && !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("build: create %s: %w", o.GetName(), err)
		case err == nil:
			job, _ = o.(*batchv1.Job)
		}
	}
	if job == nil { // it exists already: the next reconcile reads it
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildPrepared})
	}
	if err := v.write(ctx, b, advance{to: mcv1.MachineOSBuildPrepared, job: job}); err != nil {
		return err
	}
	return v.annotate(ctx, b, machineconfig.JobUIDAnnotation, string(job.UID))
}

// jobReference returns the reference to a Job.
func jobReference(j *batchv1.Job) mcv1.ObjectReference {
	return mcv1.ObjectReference{Group: batchv1.GroupName, Resource: "jobs", Namespace: j.Namespace, Name: j.Name}
}

// carry completes a build that has the image of another.
func (v *pass) carry(ctx context.Context, b *mcv1.MachineOSBuild, source string) error {
	from := v.find(source)
	if from == nil || from.Status.DigestedImagePushSpec == "" {
		return v.write(ctx, b, advance{to: mcv1.MachineOSBuildFailed, cause: fmt.Sprintf("MachineOSBuild %s, whose image it has, is gone: annotate the MachineOSConfig with %s", source, machineconfig.RebuildAnnotation)})
	}
	return v.write(ctx, b, advance{to: mcv1.MachineOSBuildSucceeded, image: from.Status.DigestedImagePushSpec})
}

// advance is the next status of a build.
type advance struct {
	to    mcv1.BuildProgress
	cause string // completes the message of the condition
	image mcv1.ImageDigestFormat
	job   *batchv1.Job // Job of the build, once it exists
}

// write writes the progress of a build.
func (v *pass) write(ctx context.Context, b *mcv1.MachineOSBuild, a advance) error {
	before := b.DeepCopy()
	setProgress(b, a.to, a.cause, v.Clock.Now())
	if a.image != "" {
		b.Status.DigestedImagePushSpec = a.image
	}
	if a.job != nil {
		r := jobReference(a.job)
		b.Status.Builder = &mcv1.MachineOSBuilderReference{ImageBuilderType: mcv1.JobBuilder, Job: &r}
		// The definition refuses ConfigMaps and Secrets here: their group, "", is no DNS
		// subdomain. They have the build's label.
		b.Status.RelatedObjects = []mcv1.ObjectReference{r}
	}
	if equality.Semantic.DeepEqual(before.Status, b.Status) {
		return nil
	}
	// Conditions that are terminal are frozen: a write from an older view must not reach them.
	if err := v.Client.Status().Patch(ctx, b, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("build: status of MachineOSBuild %s: %w", b.Name, err)
	}
	return nil
}

// annotate sets an annotation of an object, and removes it when value is "".
func (v *pass) annotate(ctx context.Context, o client.Object, name, value string) error {
	if has, ok := o.GetAnnotations()[name]; has == value && ok == (value != "") {
		return nil
	}
	before := o.DeepCopyObject().(client.Object)
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	if a[name] = value; value == "" {
		delete(a, name)
	}
	o.SetAnnotations(a)
	if err := v.Client.Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("build: annotation %s of %s: %w", name, o.GetName(), err)
	}
	return nil
}

var digestForm = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)

// digest returns the digest that the Job has stored; "" when there is none.
func (v *pass) digest(ctx context.Context, b *mcv1.MachineOSBuild) (string, error) {
	var m corev1.ConfigMap
	err := v.Reader.Get(ctx, client.ObjectKey{Namespace: machineconfig.Namespace, Name: machineconfig.DigestPrefix + b.Name}, &m)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("build: digest of MachineOSBuild %s: %w", b.Name, err)
	}
	if d := m.Data[machineconfig.DigestKey]; digestForm.MatchString(d) {
		return d, nil
	}
	return "", nil
}

// adopt hands the image of a build that has succeeded to the nodes of its pool, and removes what
// the build does not need any more. An image of an earlier build must still exist.
func (v *pass) adopt(ctx context.Context, b *mcv1.MachineOSBuild, pull *corev1.Secret) error {
	image := b.Status.DigestedImagePushSpec
	current := v.osConfig.Annotations[machineconfig.CurrentBuildAnnotation] == b.Name
	if !current && v.osConfig.Status.CurrentImagePullSpec != image {
		found, err := v.Images.Exists(ctx, string(image), v.access(pull))
		if err != nil {
			return fmt.Errorf("build: image of MachineOSBuild %s: %w", b.Name, err)
		}
		if !found {
			return v.restart(ctx, b)
		}
	}
	before := v.osConfig.DeepCopy()
	st := &v.osConfig.Status
	st.CurrentImagePullSpec, st.ObservedGeneration = image, v.osConfig.Generation
	st.MachineOSBuild = &mcv1.ObjectReference{Group: mcv1.GroupName, Resource: "machineosbuilds", Name: b.Name}
	v.setCondition(metav1.ConditionFalse, "Ready", "")
	if !equality.Semantic.DeepEqual(before.Status, v.osConfig.Status) {
		if err := v.Client.Status().Patch(ctx, v.osConfig, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("build: status of MachineOSConfig %s: %w", v.osConfig.Name, err)
		}
	}
	before = v.osConfig.DeepCopy()
	if v.osConfig.Annotations == nil {
		v.osConfig.Annotations = map[string]string{}
	}
	_, answers := b.Annotations[machineconfig.RebuildAnnotation]
	v.osConfig.Annotations[machineconfig.CurrentBuildAnnotation] = b.Name
	if answers {
		delete(v.osConfig.Annotations, machineconfig.RebuildAnnotation)
	}
	if !equality.Semantic.DeepEqual(before.Annotations, v.osConfig.Annotations) {
		if err := v.Client.Patch(ctx, v.osConfig, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("build: annotations of MachineOSConfig %s: %w", v.osConfig.Name, err)
		}
	}
	if answers { // after the request: else a crash in between would repeat it
		if err := v.annotate(ctx, b, machineconfig.RebuildAnnotation, ""); err != nil {
			return err
		}
	}
	return errors.Join(v.report(ctx, corev1.ConditionFalse, "BuildSucceeded", ""), v.removeEphemeral(ctx, b))
}

// condition writes the condition Degraded of the MachineOSConfig.
func (v *pass) condition(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	before := v.osConfig.DeepCopy()
	v.setCondition(status, reason, message)
	if equality.Semantic.DeepEqual(before.Status, v.osConfig.Status) {
		return nil
	}
	if err := v.Client.Status().Patch(ctx, v.osConfig, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("build: status of MachineOSConfig %s: %w", v.osConfig.Name, err)
	}
	return nil
}

func (v *pass) setCondition(status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&v.osConfig.Status.Conditions, metav1.Condition{
		Type: degradedCondition, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(v.Clock.Now()),
	})
}

// access returns how to reach the registry with a Secret.
func (v *pass) access(s *corev1.Secret) registry.Access {
	return registry.Access{Config: s.Data[corev1.DockerConfigJsonKey], CAs: []byte(parts{controller: v.controller}.bundle())}
}

// secrets returns the secrets to pull the base image and to push the result, or the problem that
// keeps the build from having them.
func (v *pass) secrets(ctx context.Context) (pull, push *corev1.Secret, problem string, err error) {
	read := func(namespace, name, field string) (*corev1.Secret, error) {
		s := new(corev1.Secret)
		err := v.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
		if apierrors.IsNotFound(err) {
			problem = fmt.Sprintf("%s: there is no Secret %s in the namespace %s: create it with the type kubernetes.io/dockerconfigjson", field, name, namespace)
			return nil, nil
		}
		if err == nil {
			if _, perr := registry.ParseCredentials(s.Data[corev1.DockerConfigJsonKey]); perr != nil || len(s.Data[corev1.DockerConfigJsonKey]) == 0 {
				problem = fmt.Sprintf("%s: Secret %s/%s has no valid %s", field, namespace, name, corev1.DockerConfigJsonKey)
			}
		}
		return s, err
	}
	if push, err = read(machineconfig.Namespace, v.osConfig.Spec.RenderedImagePushSecret.Name, "spec.renderedImagePushSecret"); err != nil || problem != "" {
		return nil, nil, problem, err
	}
	switch s := v.controller.Spec; {
	case v.osConfig.Spec.BaseImagePullSecret != nil:
		pull, err = read(machineconfig.Namespace, v.osConfig.Spec.BaseImagePullSecret.Name, "spec.baseImagePullSecret")
	case s.PullSecret != nil && s.PullSecret.Name != "":
		pull, err = read(s.PullSecret.Namespace, s.PullSecret.Name, "spec.pullSecret of ControllerConfig")
	default:
		pull = &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: s.InternalRegistryPullSecret}}
	}
	return pull, push, problem, err
}
