package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// racks renders the manifests of racks as kubectl kustomize does, by kind and name.
func racks(t *testing.T) map[string]map[string]any {
	t.Helper()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "racks")
	if err != nil {
		t.Fatalf("kustomize build: %v", err)
	}
	all := map[string]map[string]any{}
	for _, r := range m.Resources() {
		b, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		add(t, all, b)
	}
	return all
}

// chart renders the chart as helm template does.
func chart(t *testing.T, name, namespace string, values map[string]any) map[string]map[string]any {
	t.Helper()
	c, err := loader.Load("chart")
	if err != nil {
		t.Fatal(err)
	}
	v, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: name, Namespace: namespace}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, v)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for file, text := range files {
		for doc := range strings.SplitSeq(text, "\n---\n") {
			b, err := yaml.ToJSON([]byte(doc))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			add(t, all, b)
		}
	}
	return all
}

func add(t *testing.T, to map[string]map[string]any, b []byte) {
	t.Helper()
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	key := o.GetKind() + " " + o.GetName()
	if to[key] != nil {
		t.Errorf("%s is there twice", key)
	}
	to[key] = o.Object
}

// Kustomize and Helm make the same objects, but for the namespace, which Helm makes itself.
func TestChartHasTheObjectsOfTheManifests(t *testing.T) {
	want := racks(t)
	delete(want, "Namespace metalab-racks")
	if diff := cmp.Diff(want, chart(t, "racks", "metalab-racks", nil)); diff != "" {
		t.Errorf("objects (-kustomize +helm):\n%s", diff)
	}
}

// The kubelet has no credentials, which lab-controller wants on every address but loopback: its
// probes are commands in the pod.
func TestProbesNeedNoCredentials(t *testing.T) {
	var d appsv1.Deployment
	for name, o := range racks(t) {
		if strings.HasPrefix(name, "Deployment ") {
			into(t, o, &d)
		}
	}
	c := d.Spec.Template.Spec.Containers[0]
	for probe, p := range map[string]*corev1.Probe{"healthz": c.LivenessProbe, "readyz": c.ReadinessProbe} {
		if p == nil || p.Exec == nil || !slices.Equal(p.Exec.Command, []string{"lab-controller", "probe", probe}) {
			t.Errorf("the probe of /%s is %+v, want the command lab-controller probe %s", probe, p, probe)
		}
	}
	for _, a := range c.Args {
		if strings.HasPrefix(a, "--health-address") {
			t.Errorf("argument %s: the probe asks the default, which is on loopback", a)
		}
	}
}

// The values of the chart, and the names of a release, are used wherever they matter.
func TestChartUsesItsValues(t *testing.T) {
	all := chart(t, "west", "lab", map[string]any{"shards": 7, "size": 2000000, "speed": "1x", "image": "example.com/metalab", "tag": "v1", "storage": "1Ti", "memory": map[string]any{"limit": "9Gi"}})
	var set appsv1.StatefulSet
	into(t, all["StatefulSet west"], &set)
	c := set.Spec.Template.Spec.Containers[0]
	for _, want := range []string{"--size=2000000", "--speed=1x", "--advertise=$(POD_NAME).west-shards.lab.svc", "--peers=west-%d.west-shards.lab.svc:8443"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("arguments %q, want %s", c.Args, want)
		}
	}
	if *set.Spec.Replicas != 7 || c.Image != "example.com/metalab:v1" || c.Resources.Limits.Memory().String() != "9Gi" || set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String() != "1Ti" {
		t.Errorf("the StatefulSet is %+v", set.Spec)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b); strings.Contains(text, "metalab-racks") || strings.Contains(text, `"racks-`) || strings.Contains(text, "metalab:devel") {
		t.Errorf("objects of another release, namespace or image: %s", text)
	}
}

func into(t *testing.T, o map[string]any, v any) {
	t.Helper()
	b, err := json.Marshal(o)
	if err == nil && o == nil {
		err = fmt.Errorf("there is no such %T", v)
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// All pods meet the Pod Security Standard restricted, which their namespace enforces.
func TestPodsOfRacksAreRestricted(t *testing.T) {
	all := racks(t)
	var namespace corev1.Namespace
	into(t, all["Namespace metalab-racks"], &namespace)
	if level := namespace.Labels[api.EnforceLevelLabel]; level != string(api.LevelRestricted) {
		t.Errorf("the namespace enforces %q, want restricted", level)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	check := func(name string, meta *metav1.ObjectMeta, pod *corev1.PodSpec) bool {
		r := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, meta, pod))
		if !r.Allowed {
			t.Errorf("%s: %s", name, r.ForbiddenDetail())
		}
		for _, c := range pod.Containers {
			if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: the root file system can be written", name)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: resources %+v, want requests and a limit of memory", name, c.Resources)
			}
		}
		return r.Allowed
	}
	var set appsv1.StatefulSet
	var deployment appsv1.Deployment
	into(t, all["StatefulSet racks"], &set)
	into(t, all["Deployment racks-controller"], &deployment)
	check("shards", &set.Spec.Template.ObjectMeta, &set.Spec.Template.Spec)
	check("lab-controller", &deployment.Spec.Template.ObjectMeta, &deployment.Spec.Template.Spec)
	if s := set.Spec; *s.Template.Spec.AutomountServiceAccountToken || s.PersistentVolumeClaimRetentionPolicy.WhenScaled != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Error("shards get a token of the API, or lose their volumes when they are scaled in")
	}
	if *deployment.Spec.Replicas < 2 || !slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--leader-elect") {
		t.Error("no second controller stands by")
	}
	for _, v := range deployment.Spec.Template.Spec.Volumes {
		if v.Secret != nil && (len(v.Secret.Items) != 1 || v.Secret.Items[0].Key != "ca.crt") {
			t.Errorf("the controllers have %+v of the Secret, want the certificate alone", v.Secret.Items)
		}
	}
}

// Services, policies and budgets select the pods that they are for, by ports that these have.
func TestObjectsOfRacksReferToTheirPods(t *testing.T) {
	all := racks(t)
	var set appsv1.StatefulSet
	var deployment appsv1.Deployment
	into(t, all["StatefulSet racks"], &set)
	into(t, all["Deployment racks-controller"], &deployment)
	pods := map[string]corev1.PodTemplateSpec{"racks": set.Spec.Template, "racks-controller": deployment.Spec.Template}
	selects := func(what string, selector map[string]string, name string) {
		t.Helper()
		for pod, template := range pods {
			matches := true
			for k, v := range selector {
				matches = matches && template.Labels[k] == v
			}
			if matches != (pod == name) {
				t.Errorf("%s selects the pods of %s: %t", what, pod, matches)
			}
		}
	}
	ports := func(pod string) (names []string) {
		for _, p := range pods[pod].Spec.Containers[0].Ports {
			names = append(names, p.Name)
		}
		return names
	}
	for _, name := range []string{"racks", "racks-shards"} {
		var s corev1.Service
		into(t, all["Service "+name], &s)
		selects("Service "+name, s.Spec.Selector, "racks")
		for _, p := range s.Spec.Ports {
			if !slices.Contains(ports("racks"), p.TargetPort.String()) {
				t.Errorf("Service %s: port %s: the pods have %v", name, p.TargetPort.String(), ports("racks"))
			}
		}
		if (s.Spec.ClusterIP == corev1.ClusterIPNone) != (name == set.Spec.ServiceName) {
			t.Errorf("Service %s has the address %q; the StatefulSet is governed by %s", name, s.Spec.ClusterIP, set.Spec.ServiceName)
		}
	}
	for name := range pods {
		var p networkingv1.NetworkPolicy
		into(t, all["NetworkPolicy "+name], &p)
		selects("NetworkPolicy "+name, p.Spec.PodSelector.MatchLabels, name)
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if port.EndPort == nil && !slices.Contains(ports(name), port.Port.String()) {
					t.Errorf("NetworkPolicy %s opens %s, the pods have %v", name, port.Port.String(), ports(name))
				}
			}
		}
		var b policyv1.PodDisruptionBudget
		into(t, all["PodDisruptionBudget "+name], &b)
		selects("PodDisruptionBudget "+name, b.Spec.Selector.MatchLabels, name)
	}
	for key := range all { // no Service for each BMC
		if strings.HasPrefix(key, "Service ") && !slices.Contains([]string{"Service racks", "Service racks-shards"}, key) {
			t.Errorf("there is a %s", key)
		}
	}
}
