package build

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const repo = "registry.example.org/os/worker"

// digestOf returns a digest that differs for each number.
func digestOf(n int) string { return fmt.Sprintf("sha256:%064x", n) }

// shop is a registry that knows which images it has.
type shop struct{ images map[string]bool }

func (s *shop) Exists(_ context.Context, ref string, _ registry.Access) (bool, error) {
	return s.images[ref], nil
}

func (s *shop) Delete(_ context.Context, ref string, _ registry.Access) error {
	delete(s.images, ref)
	return nil
}

// world is the API, whose clock the test moves.
type world struct {
	client.WithWatch
	t     *testing.T
	r     *Reconciler
	shop  *shop
	clock *clocktesting.FakeClock
	fail  func(verb string, o client.Object) error // before a write
}

func newWorld(t *testing.T, mode machineconfig.LayeredFileWrites) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{mcv1.Install, corev1.AddToScheme, batchv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, shop: &shop{map[string]bool{}}, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))}
	uids := 0
	before := func(verb string, o client.Object) error {
		if w.fail != nil {
			return w.fail(verb, o)
		}
		return nil
	}
	w.WithWatch = fake.NewClientBuilder().WithScheme(s).
		WithStatusSubresource(&mcv1.MachineConfigPool{}, &mcv1.MachineOSConfig{}, &mcv1.MachineOSBuild{}, &batchv1.Job{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := before("create", o); err != nil {
					return err
				}
				uids++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", uids)))
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := before("patch", o); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := before(sub, o); err != nil {
					return err
				}
				if err := c.SubResource(sub).Patch(ctx, o, p, opts...); err != nil {
					return err
				}
				return frozen(o)
			},
		}).Build()
	var err error
	if w.r, err = New(Config{Client: w, Reader: w, Images: w.shop, Work: queue.Work{Clock: w.clock}}); err != nil {
		t.Fatal(err)
	}
	pull := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machineconfig.Namespace, Name: "pull"}, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}
	w.add(pull, secret("push"), &mcv1.ControllerConfig{
		ObjectMeta: metav1.ObjectMeta{Name: machineconfig.ControllerConfigName, Annotations: map[string]string{machineconfig.LayeredFileWritesAnnotation: string(mode)}},
		Spec:       mcv1.ControllerConfigSpec{BaseOSContainerImage: "registry.example.org/os@" + digestOf(0), PullSecret: &corev1.ObjectReference{Namespace: machineconfig.Namespace, Name: "pull"}},
	}, &mcv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
	w.render("rendered-worker-1", nil)
	return w
}

// frozen refuses the writes that the CEL rules of MachineOSBuild refuse.
func frozen(o client.Object) error {
	b, ok := o.(*mcv1.MachineOSBuild)
	if !ok {
		return nil
	}
	if b.Status.BuildEnd != nil && !b.Status.BuildEnd.After(b.Status.BuildStart.Time) {
		return errors.New("status: Invalid value: buildEnd must be after buildStart")
	}
	for _, r := range b.Status.RelatedObjects {
		if r.Group == "" {
			return errors.New("status.relatedObjects.group: Invalid value: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters")
		}
	}
	return nil
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machineconfig.Namespace, Name: name}, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}
}

func (w *world) add(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// render makes a rendered configuration that of the pool.
func (w *world) render(name string, change func(*mcv1.MachineConfigSpec)) {
	w.t.Helper()
	m := &mcv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: mcv1.MachineConfigSpec{OSImageURL: "registry.example.org/os@" + digestOf(0), KernelType: "default"}}
	m.Spec.Config.Raw = []byte(`{"ignition":{"version":"3.5.0"}}`)
	if change != nil {
		change(&m.Spec)
	}
	if err := w.Create(w.t.Context(), m); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	p := w.pool()
	p.Spec.Configuration.Name = name
	w.update(p)
}

func (w *world) update(o client.Object) {
	w.t.Helper()
	if err := w.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pool() *mcv1.MachineConfigPool {
	w.t.Helper()
	p := new(mcv1.MachineConfigPool)
	w.get(p, "worker")
	return p
}

func (w *world) get(o client.Object, name string) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) osConfig() *mcv1.MachineOSConfig {
	w.t.Helper()
	c := new(mcv1.MachineOSConfig)
	w.get(c, "worker")
	return c
}

// layer creates the MachineOSConfig of the pool.
func (w *world) layer(containerfile string) {
	w.t.Helper()
	c := &mcv1.MachineOSConfig{ObjectMeta: metav1.ObjectMeta{Name: "worker", Generation: 1}, Spec: mcv1.MachineOSConfigSpec{
		MachineConfigPool: mcv1.MachineConfigPoolReference{Name: "worker"}, RenderedImagePushSecret: mcv1.ImageSecretObjectReference{Name: "push"}, RenderedImagePushSpec: repo + ":latest",
	}}
	if containerfile != "" {
		c.Spec.Containerfile = []mcv1.MachineOSContainerfile{{ContainerfileArch: mcv1.NoArch, Content: containerfile}}
	}
	w.add(c)
}

// settle reconciles until nothing changes any more, and plays garbage collection.
func (w *world) settle() {
	w.t.Helper()
	for range 12 {
		w.reconcileOnce()
		w.collect()
	}
}

// reconcile reconciles until nothing changes any more.
func (w *world) reconcile() {
	w.t.Helper()
	for range 12 {
		w.reconcileOnce()
	}
}

func (w *world) reconcileOnce() {
	w.t.Helper()
	if _, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "worker"}}); err != nil {
		w.t.Fatalf("Reconcile: %v", err)
	}
}

// collect deletes the objects whose owner is gone.
func (w *world) collect() {
	w.t.Helper()
	owners := map[types.UID]bool{}
	var configs mcv1.MachineOSConfigList
	builds := w.builds()
	if err := w.List(w.t.Context(), &configs); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range configs.Items {
		owners[c.UID] = true
	}
	for _, b := range builds {
		owners[b.UID] = true
	}
	var jobs batchv1.JobList
	var objects corev1.ConfigMapList
	if err := errors.Join(w.List(w.t.Context(), &jobs), w.List(w.t.Context(), &objects)); err != nil {
		w.t.Fatal(err)
	}
	var all []client.Object
	for _, b := range builds {
		all = append(all, b)
	}
	for i := range jobs.Items {
		all = append(all, &jobs.Items[i])
	}
	for i := range objects.Items {
		all = append(all, &objects.Items[i])
	}
	for _, o := range all {
		if owner := metav1.GetControllerOf(o); owner != nil && !owners[owner.UID] && o.GetDeletionTimestamp() == nil {
			if err := w.Delete(w.t.Context(), o); client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) builds() (out []*mcv1.MachineOSBuild) {
	w.t.Helper()
	var list mcv1.MachineOSBuildList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

// build returns the only build.
func (w *world) build() *mcv1.MachineOSBuild {
	w.t.Helper()
	all := w.builds()
	if len(all) != 1 {
		w.t.Fatalf("%d MachineOSBuilds, want one", len(all))
	}
	return all[0]
}

func (w *world) jobs() (out []*batchv1.Job) {
	w.t.Helper()
	var list batchv1.JobList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

// job changes the status of the Job of a build.
func (w *world) job(build *mcv1.MachineOSBuild, change func(*batchv1.JobStatus)) {
	w.t.Helper()
	j := new(batchv1.Job)
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: machineconfig.Namespace, Name: JobPrefix + build.Name}, j); err != nil {
		w.t.Fatal(err)
	}
	change(&j.Status)
	if err := w.Status().Update(w.t.Context(), j); err != nil {
		w.t.Fatal(err)
	}
}

// finish ends a build as its pods do: the image, its digest, and the end of the Job.
func (w *world) finish(build *mcv1.MachineOSBuild, digest string) {
	w.t.Helper()
	w.shop.images[repo+"@"+digest] = true
	w.add(&corev1.ConfigMap{
		ObjectMeta: parts{build: build, osConfig: w.osConfig(), config: &mcv1.MachineConfig{}}.meta(machineconfig.DigestPrefix), Data: map[string]string{machineconfig.DigestKey: digest},
	})
	w.job(build, func(s *batchv1.JobStatus) {
		s.Active, s.Succeeded, s.Conditions = 0, 1, []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	})
	w.settle()
}

// states returns the conditions of a build that are true, and checks that all five are there.
func (w *world) state(b *mcv1.MachineOSBuild) string {
	w.t.Helper()
	var out []string
	for _, c := range b.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			out = append(out, c.Type)
		}
	}
	if len(b.Status.Conditions) != 5 {
		w.t.Errorf("conditions of %s = %v, want five", b.Name, b.Status.Conditions)
	}
	return strings.Join(out, " ")
}

// degraded checks the pool's condition ImageBuildDegraded; "" means that it is not.
func (w *world) degraded(want string) {
	w.t.Helper()
	c := machineconfig.Condition(w.pool(), mcv1.MachineConfigPoolImageBuildDegraded)
	if isDegraded := c != nil && c.Status == corev1.ConditionTrue; isDegraded != (want != "") || isDegraded && !strings.Contains(c.Message, want) {
		w.t.Errorf("ImageBuildDegraded = %+v, want a message with %q", c, want)
	}
}
