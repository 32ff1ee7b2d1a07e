package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	access "github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestOnClusterLayering builds an image in the lab's embedded API and rolls it out to three nodes
// whose daemons only answer (statements M4, M25 and M28): the configuration and the image come in one patch, to
// one node at a time (statement M8), and the image of the pullspec is in the registry.
func TestOnClusterLayering(t *testing.T) {
	w, admin := startWithoutControllers(t, config.MachineConfig)
	l := newLayering(t, w, admin, 3)
	l.refusesInvalid()
	if err := w.StartControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the nodes join the pool", func() bool { return l.pool().Status.UpdatedMachineCount == 3 })
	l.create(l.machineConfig("50-motd", "/etc/motd", "Metalab"), l.osConfig("FROM configs AS final\nLABEL team=storage\n"))
	var p *mcv1.MachineConfigPool
	patience.Await(t, "the pool is updated with an image", func() bool {
		p = l.pool()
		c := machineconfig.Condition(p, mcv1.MachineConfigPoolUpdated)
		return c != nil && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "@sha256:")
	}, &p)
	l.freezesBuilds()
	l.daemons.mu.Lock()
	defer l.daemons.mu.Unlock()
	for _, problem := range l.daemons.problems {
		t.Error(problem)
	}
	if l.daemons.most != 1 {
		t.Errorf("%d nodes were updated at a time, want 1 of 3", l.daemons.most)
	}
	var osConfig mcv1.MachineOSConfig
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "worker"}, &osConfig); err != nil {
		t.Fatal(err)
	}
	s, host := w.Registry()
	img, err := access.Access{Config: s.DockerConfig("pull", host)}.Pull(t.Context(), string(osConfig.Status.CurrentImagePullSpec))
	if err != nil {
		t.Fatalf("pull %s: %v", osConfig.Status.CurrentImagePullSpec, err)
	}
	c, err := img.ConfigFile()
	if err != nil || c.Config.Labels["team"] != "storage" || c.Config.Labels["machineconfig"] != l.pool().Spec.Configuration.Name {
		t.Errorf("labels of the image = %v, %v; want team and machineconfig", c.Config.Labels, err)
	}
}

// TestControllersOfMachineConfigurationWorkWithTheRightsOfTheManifests runs the controllers as the
// service account that they have in a cluster, where pods do the Job (statements M28 and M37): the
// test does it here.
func TestControllersOfMachineConfigurationWorkWithTheRightsOfTheManifests(t *testing.T) {
	w, admin := startWithoutControllers(t, config.MachineConfig)
	grant(t, admin, withComponent(t, "machineconfig"))
	var refused refusals
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	as.Wrap(refused.watch)
	l := newLayering(t, w, admin, 1)
	end := runController(t, w, as, manager.Config{Controllers: []string{"machineconfig"}})
	defer end()
	patience.Await(t, "the node joins the pool", func() bool { return l.pool().Status.UpdatedMachineCount == 1 })
	l.create(l.osConfig("FROM configs AS final\n"))
	var jobs batchv1.JobList
	patience.Await(t, "the Job exists", func() bool {
		return admin.List(t.Context(), &jobs, client.InNamespace(machineconfig.Namespace)) == nil && len(jobs.Items) == 1
	}, &jobs)
	j := &jobs.Items[0]
	digest := l.push(w, j)
	l.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: machineconfig.DigestPrefix + j.Labels[machineconfig.OSBuildLabel], Labels: j.Labels, OwnerReferences: j.OwnerReferences},
		Data:       map[string]string{machineconfig.DigestKey: digest},
	})
	now := metav1.Now()
	j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}}
	if err := admin.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	n := new(corev1.Node)
	patience.Await(t, "the node has the image", func() bool {
		return admin.Get(t.Context(), client.ObjectKey{Name: "w-0"}, n) == nil && strings.HasSuffix(n.Annotations[machineconfig.CurrentImage], digest)
	}, n)
	if err := admin.Delete(t.Context(), l.osConfig("")); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the build and its image are gone", func() bool {
		var list mcv1.MachineOSBuildList
		found, err := access.Access{Config: w.registry.DockerConfig("pull", l.host)}.Exists(t.Context(), l.host+"/os/worker@"+digest)
		return admin.List(t.Context(), &list) == nil && len(list.Items) == 0 && err == nil && !found
	})
	end()
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// push pushes an image under the tag of a Job, and returns its digest.
func (l *layering) push(w *Lab, j *batchv1.Job) string {
	l.t.Helper()
	tag := ""
	for _, e := range j.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "TAG" {
			tag = e.Value
		}
	}
	a := access.Access{Config: w.registry.DockerConfig("push", l.host)}
	img, err := a.Pull(l.t.Context(), j.Spec.Template.Spec.Containers[0].Image)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := a.Push(l.t.Context(), tag, img); err != nil {
		l.t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		l.t.Fatal(err)
	}
	return digest.String()
}

// layering is a lab of the family machineconfig with nodes that are objects alone.
type layering struct {
	t testing.TB
	client.WithWatch
	daemons *daemons
	host    string // host and port of the registry
}

func newLayering(t testing.TB, w *Lab, admin client.WithWatch, nodes int) *layering {
	t.Helper()
	l := &layering{t: t, WithWatch: admin, daemons: &daemons{api: admin}}
	_, l.host = w.Registry()
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w-%d", i), Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
		l.create(n)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := admin.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	l.watch()
	return l
}

// watch begins to count the nodes between two configurations, and to answer for their daemons.
func (l *layering) watch() {
	l.t.Helper()
	events, err := l.Watch(l.t.Context(), new(corev1.NodeList))
	if err != nil {
		l.t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() { l.daemons.run(events) })
	l.t.Cleanup(func() { events.Stop(); group.Wait() })
}

func (l *layering) create(objects ...client.Object) {
	l.t.Helper()
	for _, o := range objects {
		if err := l.Create(l.t.Context(), o); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *layering) pool() *mcv1.MachineConfigPool {
	l.t.Helper()
	p := new(mcv1.MachineConfigPool)
	if err := l.Get(l.t.Context(), client.ObjectKey{Name: "worker"}, p); err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *layering) setMaxUnavailable(v intstr.IntOrString) {
	l.t.Helper()
	p := l.pool()
	before := p.DeepCopy()
	p.Spec.MaxUnavailable = &v
	if err := l.Patch(l.t.Context(), p, client.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *layering) machineConfig(name, file, content string) *mcv1.MachineConfig {
	return &mcv1.MachineConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mcv1.MachineConfigRoleLabelKey: "worker"}},
		Spec: mcv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":%q,"mode":420,"contents":{"source":"data:,%s"}}]}}`, file, content)}},
	}
}

func (l *layering) osConfig(containerfile string) *mcv1.MachineOSConfig {
	return &mcv1.MachineOSConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "worker"},
		Spec: mcv1.MachineOSConfigSpec{
			MachineConfigPool: mcv1.MachineConfigPoolReference{Name: "worker"}, ImageBuilder: mcv1.MachineOSImageBuilder{ImageBuilderType: mcv1.JobBuilder},
			RenderedImagePushSecret: mcv1.ImageSecretObjectReference{Name: PushSecret}, RenderedImagePushSpec: mcv1.ImageTagFormat(l.host + "/os/worker:latest"),
			Containerfile: []mcv1.MachineOSContainerfile{{Content: containerfile}},
		},
	}
}

// refusesInvalid creates MachineOSConfigs that the API refuses (statement M24). That of another
// name than the pool's is also what a second one of a pool is.
func (l *layering) refusesInvalid() {
	l.t.Helper()
	for what, change := range map[string]func(*mcv1.MachineOSConfig){
		"another name": func(c *mcv1.MachineOSConfig) { c.Name = "layered" },
		"push spec by digest": func(c *mcv1.MachineOSConfig) {
			c.Spec.RenderedImagePushSpec = mcv1.ImageTagFormat(l.host + "/os/worker@sha256:" + strings.Repeat("0", 64))
		},
		"no push spec": func(c *mcv1.MachineOSConfig) { c.Spec.RenderedImagePushSpec = "" },
		"five Containerfiles": func(c *mcv1.MachineOSConfig) {
			for _, arch := range []mcv1.ContainerfileArch{mcv1.Arm64, mcv1.Amd64, mcv1.Ppc, mcv1.S390} {
				c.Spec.Containerfile = append(c.Spec.Containerfile, mcv1.MachineOSContainerfile{ContainerfileArch: arch, Content: "FROM configs"})
			}
		},
		"long Containerfile": func(c *mcv1.MachineOSConfig) { c.Spec.Containerfile[0].Content = strings.Repeat("#", 4097) },
	} {
		c := l.osConfig("FROM configs")
		change(c)
		if err := l.Create(l.t.Context(), c, client.DryRunAll); !apierrors.IsInvalid(err) {
			l.t.Errorf("create a MachineOSConfig with %s: %v, want a refusal", what, err)
		}
	}
	if err := l.Create(l.t.Context(), l.osConfig("FROM configs"), client.DryRunAll); err != nil {
		l.t.Errorf("create a valid MachineOSConfig: %v", err)
	}
}

// freezesBuilds changes a build that has ended, which the API refuses (statement M29).
func (l *layering) freezesBuilds() {
	l.t.Helper()
	var list mcv1.MachineOSBuildList
	if err := l.List(l.t.Context(), &list); err != nil || len(list.Items) != 1 {
		l.t.Fatalf("%d MachineOSBuilds, %v; want one", len(list.Items), err)
	}
	b := &list.Items[0]
	before := b.DeepCopy()
	b.Spec.MachineConfig.Name = "rendered-worker-other"
	if err := l.Patch(l.t.Context(), b, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		l.t.Errorf("change of spec: %v, want a refusal", err)
	}
	b = before.DeepCopy()
	b.Status.Conditions[0].Status = metav1.ConditionTrue
	if err := l.Status().Patch(l.t.Context(), b, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		l.t.Errorf("change of a terminal condition: %v, want a refusal", err)
	}
}

// daemons count the nodes between two configurations. With an API they answer for the daemon of
// each node, too: drain, the new configuration, uncordon, done.
type daemons struct {
	api client.Client // nil: they only count

	mu       sync.Mutex
	busy     map[string]bool // nodes between two configurations
	most     int             // most busy nodes at a time
	problems []string
}

func (d *daemons) run(events watch.Interface) {
	for e := range events.ResultChan() {
		n, ok := e.Object.(*corev1.Node)
		if !ok || e.Type == watch.Deleted {
			continue
		}
		d.count(n)
		if d.api != nil {
			d.answer(n)
		}
	}
}

// answer writes the next annotation of a node's daemon.
func (d *daemons) answer(n *corev1.Node) {
	a := n.Annotations
	desired, image := a[machineconfig.DesiredConfig], a[machineconfig.DesiredOSImage]
	var set map[string]string
	switch drain, uncordon := machineconfig.DrainVerb+"-"+desired, machineconfig.UncordonVerb+"-"+desired; {
	case desired == "":
		return
	case a[machineconfig.CurrentConfig] == "":
		set = map[string]string{machineconfig.CurrentConfig: desired, machineconfig.State: machineconfig.Done}
	case a[machineconfig.CurrentConfig] != desired || a[machineconfig.CurrentImage] != image:
		switch {
		case a[machineconfig.DesiredDrain] != drain:
			set = map[string]string{machineconfig.State: machineconfig.Working, machineconfig.DesiredDrain: drain}
		case a[machineconfig.LastAppliedDrain] == drain:
			set = map[string]string{machineconfig.DesiredDrain: uncordon, machineconfig.CurrentConfig: desired, machineconfig.CurrentImage: image}
		default:
			return
		}
	case a[machineconfig.LastAppliedDrain] == uncordon && a[machineconfig.State] != machineconfig.Done:
		set = map[string]string{machineconfig.State: machineconfig.Done}
	default:
		return
	}
	after := n.DeepCopy()
	for k, v := range set {
		if after.Annotations[k] = v; v == "" {
			delete(after.Annotations, k)
		}
	}
	if err := d.api.Patch(context.Background(), after, client.MergeFrom(n)); client.IgnoreNotFound(err) != nil {
		d.mu.Lock()
		d.problems = append(d.problems, err.Error())
		d.mu.Unlock()
	}
}

// count counts the nodes between two configurations, and notes a node that got an image under one
// name alone.
func (d *daemons) count(n *corev1.Node) {
	a := n.Annotations
	d.mu.Lock()
	defer d.mu.Unlock()
	if a[machineconfig.DesiredOSImage] != a[machineconfig.DesiredImage] {
		d.problems = append(d.problems, fmt.Sprintf("node %s has desiredOSimage %q and desiredImage %q", n.Name, a[machineconfig.DesiredOSImage], a[machineconfig.DesiredImage]))
	}
	if d.busy == nil {
		d.busy = map[string]bool{}
	}
	done := a[machineconfig.CurrentConfig] == a[machineconfig.DesiredConfig] && a[machineconfig.CurrentImage] == a[machineconfig.DesiredOSImage] && a[machineconfig.State] == machineconfig.Done
	if delete(d.busy, n.Name); !done && a[machineconfig.CurrentConfig] != "" {
		d.busy[n.Name] = true
	}
	d.most = max(d.most, len(d.busy))
}
