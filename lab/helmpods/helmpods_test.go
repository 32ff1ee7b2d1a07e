package helmpods

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"text/template"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// labTime is the time of the lab, which is not that of the API.
var labTime = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// waits is a clock of the lab that stands still, and by which nothing waits.
type waits struct {
	clock.RealClock
	*clocktesting.FakePassiveClock
}

func (w waits) Now() time.Time                  { return w.FakePassiveClock.Now() }
func (w waits) Since(t time.Time) time.Duration { return w.FakePassiveClock.Since(t) }

// lab is an API with the pods of the chart.
type lab struct {
	*testing.T
	client.Client
	process *Process
	queues  *queue.Monitor
}

func start(t *testing.T) *lab {
	t.Helper()
	api, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: kube.FastPathsWanted(), Nodes: true, Families: []string{config.Nodes}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(api.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t, c, new(Process), new(queue.Monitor)}
	l.process.Set(true)
	p, err := New(Config{API: api.RESTConfig(), Process: l.process, Log: logr.Discard(), Work: queue.Work{Clock: waits{FakePassiveClock: clocktesting.NewFakePassiveClock(labTime)}, Queues: l.queues}})
	l.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

// deployment returns the Deployment of the chart as Helm installs it.
func (l *lab) deployment(name string, replicas int) *appsv1.Deployment {
	l.Helper()
	files, err := helmcontroller.Files()
	l.must(err)
	t, err := template.New("").Parse(string(files[helmcontroller.Chart+"/templates/deployment.yaml"]))
	l.must(err)
	var text bytes.Buffer
	l.must(t.Execute(&text, map[string]any{"Release": map[string]string{"Name": name}, "Values": map[string]any{"replicas": replicas, "image": "metalab", "tag": "devel"}}))
	d := new(appsv1.Deployment)
	l.must(yaml.UnmarshalStrict(text.Bytes(), d))
	d.Namespace = "default"
	d.Labels["app.kubernetes.io/managed-by"] = "Helm"
	d.Annotations = map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": "default"}
	return d
}

// install creates what Helm installs of the chart.
func (l *lab) install(name string, replicas int) *appsv1.Deployment {
	l.Helper()
	d := l.deployment(name, replicas)
	account := &corev1.ServiceAccount{ObjectMeta: l.meta(name)}
	secret := &corev1.Secret{ObjectMeta: l.meta(name + "-management")}
	secret.Labels = map[string]string{"app.kubernetes.io/name": "helm-controller", "app.kubernetes.io/part-of": "metalab", "app.kubernetes.io/instance": name}
	l.must(errors.Join(l.Create(l.Context(), account), l.Create(l.Context(), secret), l.Create(l.Context(), d)))
	return d
}

// account writes the account of the provider.
func (l *lab) account(name string) {
	l.Helper()
	secret := &corev1.Secret{ObjectMeta: l.meta(name + "-management")}
	l.must(l.Patch(l.Context(), secret, client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"bundle":"default/c1"}}`))))
}

// pods returns the pods of a release.
func (l *lab) pods(name string) []corev1.Pod {
	l.Helper()
	var list corev1.PodList
	l.must(l.List(l.Context(), &list, client.InNamespace("default"), client.MatchingLabels{"app.kubernetes.io/instance": name}))
	return list.Items
}

// until waits until the release has pods in a state, READY STATUS as kubectl shows them, and
// returns them.
func (l *lab) until(name string, pods int, want string) (out []corev1.Pod) {
	l.Helper()
	var seen []string
	patience.Await(l, fmt.Sprintf("%d pods of %s are %s", pods, name, want), func() bool {
		out, seen = l.pods(name), nil
		ok := len(out) == pods
		for i := range out {
			s := state(&out[i])
			seen, ok = append(seen, s), ok && s == want
		}
		return ok
	})
	return out
}

// state returns the columns READY and STATUS of kubectl.
func state(p *corev1.Pod) string {
	n, status := 0, string(p.Status.Phase)
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			n++
		}
		if c.State.Waiting != nil {
			status = c.State.Waiting.Reason
		}
	}
	return fmt.Sprintf("%d/%d %s", n, len(p.Spec.Containers), status)
}

func condition(p *corev1.Pod, of corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return corev1.PodCondition{}
}

// A pod waits for the account, is ready while the controllers run, and is replaced when it is
// deleted.
func TestPodIsReadyWhileTheControllersRun(t *testing.T) {
	l := start(t)
	d := l.install("hc", 1)
	p := l.until("hc", 1, "0/1 CreateContainerConfigError")[0]
	if m := condition(&p, corev1.PodReady).Message; m != "couldn't find key bundle in Secret default/hc-management: the provider writes it for the release of a Cluster" {
		t.Errorf("condition Ready: %s", m)
	}
	l.account("hc")
	p = l.until("hc", 1, "1/1 Running")[0]
	if c := condition(&p, corev1.PodReady); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Time.Equal(labTime) {
		t.Errorf("condition Ready %+v, want the time of the lab", c)
	}
	if p.Spec.NodeName != "" {
		t.Errorf("the pod is on the Node %s", p.Spec.NodeName)
	}
	s := new(appsv1.ReplicaSet)
	owner := metav1.GetControllerOf(&p)
	l.must(l.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: owner.Name}, s))
	if hash := p.Labels["pod-template-hash"]; owner.Kind != "ReplicaSet" || !metav1.IsControlledBy(s, d) || hash == "" || s.Name != "hc-"+hash || s.Spec.Selector.MatchLabels["pod-template-hash"] != hash {
		t.Errorf("the pod has the owner %+v, the ReplicaSet %+v", owner, s.ObjectMeta)
	}
	available := func(want bool) {
		t.Helper()
		patience.Await(t, fmt.Sprintf("the Deployment is available: %v", want), func() bool {
			l.must(l.Get(t.Context(), client.ObjectKeyFromObject(d), d))
			for _, c := range d.Status.Conditions {
				if c.Type == appsv1.DeploymentAvailable && (c.Status == corev1.ConditionTrue) == want {
					return d.Status.ObservedGeneration == d.Generation && (d.Status.ReadyReplicas == 1) == want && (d.Status.UnavailableReplicas == 0) == want
				}
			}
			return false
		}, d)
	}
	available(true)
	l.process.Set(false)
	p = l.until("hc", 1, "0/1 ControllersStopped")[0]
	if c := condition(&p, corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != ReasonStopped || c.Message != stoppedMessage {
		t.Errorf("condition Ready %+v", c)
	}
	available(false)
	l.process.Set(true)
	again := l.until("hc", 1, "1/1 Running")[0]
	if again.UID != p.UID || again.Status.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("another pod, or %d restarts, want 1", again.Status.ContainerStatuses[0].RestartCount)
	}
	available(true)
	l.must(l.Delete(t.Context(), &again))
	patience.Await(t, "the pod is replaced", func() bool {
		all := l.pods("hc")
		return len(all) == 1 && all[0].UID != again.UID && state(&all[0]) == "1/1 Running"
	})
	l.must(l.Delete(t.Context(), d))
	patience.Await(t, "the pods are gone", func() bool { return len(l.pods("hc")) == 0 })
}

// Replicas and templates are rolled out, and a lab makes few pods of them.
func TestRollout(t *testing.T) {
	l := start(t)
	d := l.install("hc", 2)
	l.account("hc")
	l.until("hc", 2, "1/1 Running")
	change := func(f func()) {
		t.Helper()
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		before := d.DeepCopy()
		f()
		l.must(l.Patch(t.Context(), d, client.MergeFrom(before)))
	}
	change(func() { d.Spec.Template.Spec.Containers[0].Image = "metalab:next" })
	patience.Await(t, "the pods have the new image", func() bool {
		all := l.pods("hc")
		return len(all) == 2 && all[0].Spec.Containers[0].Image == "metalab:next" && all[1].Spec.Containers[0].Image == "metalab:next"
	})
	var sets appsv1.ReplicaSetList
	l.must(l.List(t.Context(), &sets, client.InNamespace("default")))
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if len(sets.Items) != 2 || d.Annotations[revisionAnnotation] != "2" {
		t.Errorf("%d ReplicaSets, revision %s; want 2 and 2", len(sets.Items), d.Annotations[revisionAnnotation])
	}
	change(func() { d.Spec.Replicas = ptr.To[int32](100_000) })
	l.until("hc", mostPods, "1/1 Running")
	change(func() { d.Spec.Replicas = ptr.To[int32](0) })
	patience.Await(t, "there is no pod", func() bool { return len(l.pods("hc")) == 0 })
}

// Other Deployments stay as they are, and settled objects are not written again.
func TestOtherDeploymentsStay(t *testing.T) {
	l := start(t)
	label := l.deployment("label", 1)
	label.Annotations = nil // made by hand
	other := l.deployment("other", 1)
	other.Spec.Template.Spec.Volumes[0].Secret.SecretName = "another"
	part := l.deployment("part", 1)
	part.Labels["app.kubernetes.io/part-of"] = "another"
	moved := l.deployment("moved", 1)
	moved.Annotations["meta.helm.sh/release-namespace"] = "another"
	for _, d := range []*appsv1.Deployment{label, other, part, moved} {
		l.must(l.Create(t.Context(), d))
		l.must(l.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: l.meta(d.Name)}))
		l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: l.meta(d.Name + "-management"), StringData: map[string]string{"bundle": "default/c1"}}))
	}
	d := l.install("hc", 1)
	l.account("hc")
	p := l.until("hc", 1, "1/1 Running")[0]
	l.must(l.queues.Pass(t.Context()))
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(&p), &p))
	was := d.ResourceVersion + " " + p.ResourceVersion
	l.must(l.queues.Pass(t.Context()))
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(&p), &p))
	if now := d.ResourceVersion + " " + p.ResourceVersion; now != was {
		t.Errorf("versions %s after another pass, want %s", now, was)
	}
	for _, d := range []*appsv1.Deployment{label, other, part, moved} {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		if n := len(l.pods(d.Name)); n != 0 || d.Status.ObservedGeneration != 0 {
			t.Errorf("Deployment %s: %d pods, status %+v", d.Name, n, d.Status)
		}
	}
}
