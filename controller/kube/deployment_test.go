package kube

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// fromManifests decodes the manifests of a kind.
func fromManifests[T any](t *testing.T, kind string) (all []T) {
	t.Helper()
	for _, r := range build(t, controllerManifests) {
		if r.GetKind() != kind {
			continue
		}
		var o T
		if b, err := r.MarshalJSON(); err != nil || json.Unmarshal(b, &o) != nil {
			t.Fatalf("%s %s: %v", kind, r.GetName(), err)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		t.Fatalf("the manifests have no %s", kind)
	}
	return all
}

// The pod can write nothing but its temporary directory, has no rights on its node, and
// its image has a version.
func TestDeploymentIsConfined(t *testing.T) {
	pod := fromManifests[appsv1.Deployment](t, "Deployment")[0].Spec.Template.Spec
	if s := pod.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v, want runAsNonRoot and RuntimeDefault", s)
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: security context %+v, want a root file system to read, no escalation and no capabilities", c.Name, s)
		}
		if _, tag, ok := strings.Cut(c.Image, ":"); !ok || tag == "latest" {
			t.Errorf("%s: image %s, want a version", c.Name, c.Image)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: resources %+v, want requests and a limit of memory", c.Name, c.Resources)
		}
	}
	for _, v := range pod.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s is %+v, want an emptyDir with a limit", v.Name, v.VolumeSource)
		}
	}
	var tolerated []string
	for _, x := range pod.Tolerations {
		tolerated = append(tolerated, x.Key)
	}
	for _, want := range []string{"node-role.kubernetes.io/control-plane", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.Contains(tolerated, want) {
			t.Errorf("tolerations of %v, want %s", tolerated, want)
		}
	}
}

// The network policy lets in what listens, by names of the container's ports, and metrics
// only from namespaces with a label.
func TestNetworkPolicyOpensThePortsOfThePod(t *testing.T) {
	pod := fromManifests[appsv1.Deployment](t, "Deployment")[0].Spec.Template
	var names []string
	for _, p := range pod.Spec.Containers[0].Ports {
		names = append(names, p.Name)
	}
	open := map[string]bool{} // by port: whether anybody may reach it
	for _, p := range fromManifests[networkingv1.NetworkPolicy](t, "NetworkPolicy") {
		if !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("%s: types %v, want Ingress: BMCs are anywhere", p.Name, p.Spec.PolicyTypes)
		}
		if len(p.Spec.Ingress) == 0 && len(p.Spec.PodSelector.MatchLabels) > 0 {
			t.Errorf("%s lets nothing in for %v", p.Name, p.Spec.PodSelector)
		}
		for k, v := range p.Spec.PodSelector.MatchLabels {
			if pod.Labels[k] != v {
				t.Errorf("%s selects %s=%s; the pods have %v", p.Name, k, v, pod.Labels)
			}
		}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if port.Port.Type != intstr.String || !slices.Contains(names, port.Port.StrVal) {
					t.Errorf("%s opens %s, the container has %v", p.Name, port.Port, names)
				}
				open[port.Port.StrVal] = len(rule.From) == 0
			}
		}
	}
	for _, name := range names {
		anybody, ok := open[name]
		if !ok || anybody != (name != "metrics") {
			t.Errorf("port %s: open %t, to anybody %t", name, ok, anybody)
		}
	}
}

// A drain is never blocked, and the budget is of the controller's pods.
func TestDisruptionBudgetAllowsADrain(t *testing.T) {
	d, b := fromManifests[appsv1.Deployment](t, "Deployment")[0], fromManifests[policyv1.PodDisruptionBudget](t, "PodDisruptionBudget")[0]
	if b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 1 || b.Namespace != d.Namespace {
		t.Errorf("budget %+v in %s, want maxUnavailable 1 in %s", b.Spec, b.Namespace, d.Namespace)
	}
	for k, v := range b.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("it selects %s=%s; the pods have %v", k, v, d.Spec.Template.Labels)
		}
	}
}

// The ServiceMonitor of monitoring/ finds the Service and its port, and asks by HTTPS with
// a token.
func TestServiceMonitorFindsTheService(t *testing.T) {
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../config/monitoring")
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Metadata struct{ Namespace string }
		Spec     struct {
			Selector  struct{ MatchLabels map[string]string }
			Endpoints []struct {
				Port, Scheme, BearerTokenFile string
				TLSConfig                     struct {
					InsecureSkipVerify bool
					CA                 struct{ ConfigMap struct{ Name, Key string } }
				}
			}
		}
	}
	b, err := m.Resources()[0].MarshalJSON()
	if err == nil {
		err = json.Unmarshal(b, &monitor)
	}
	if err != nil || len(m.Resources()) != 1 || len(monitor.Spec.Endpoints) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	service, endpoint := fromManifests[corev1.Service](t, "Service")[0], monitor.Spec.Endpoints[0]
	for k, v := range monitor.Spec.Selector.MatchLabels {
		if service.Labels[k] != v {
			t.Errorf("it selects %s=%s; the Service has %v", k, v, service.Labels)
		}
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint.Port }) || monitor.Metadata.Namespace != service.Namespace {
		t.Errorf("port %s in %s; the Service in %s has %v", endpoint.Port, monitor.Metadata.Namespace, service.Namespace, service.Spec.Ports)
	}
	if endpoint.Scheme != "https" || endpoint.BearerTokenFile == "" || endpoint.TLSConfig.InsecureSkipVerify || endpoint.TLSConfig.CA.ConfigMap.Name == "" {
		t.Errorf("endpoint %+v, want HTTPS with an authority and a token", endpoint)
	}
}

// No rule has a wildcard. Hosts name Secrets of their namespaces, which the controller reads
// there and marks with a label, a finalizer and an owner; it deletes none. Of its own
// namespace's it reads the identity alone and creates it, which RBAC cannot restrict to a name.
func TestRightsToSecretsAreNarrow(t *testing.T) {
	type right struct {
		Role  string
		Names []string
		Verbs []string
	}
	want := []right{
		{Role: "/lab-controller", Verbs: []string{"get", "list", "watch", "patch"}},
		{Role: "metalab-system/lab-controller", Verbs: []string{"create"}},
		{Role: "metalab-system/lab-controller", Names: []string{"lab-controller-identity"}, Verbs: []string{"get"}},
	}
	var got []right
	roles := append(fromManifests[rbacv1.ClusterRole](t, "ClusterRole"), fromManifests[rbacv1.ClusterRole](t, "Role")...)
	for _, r := range roles {
		for _, rule := range r.Rules {
			for _, all := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups, rule.NonResourceURLs} {
				if slices.Contains(all, "*") {
					t.Errorf("%s: %v has a wildcard", r.Name, rule)
				}
			}
			if !slices.Contains(rule.Resources, "secrets") {
				continue
			}
			if len(rule.Resources) > 1 {
				t.Errorf("%s in %q: %v, want a rule for secrets alone", r.Name, r.Namespace, rule)
			}
			got = append(got, right{r.Namespace + "/" + r.Name, rule.ResourceNames, rule.Verbs})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights to Secrets (-want +got):\n%s", diff)
	}
}

// With the component namespaced, what the controller may do with hosts and Secrets is bound
// in the namespaces that it watches, and nowhere else.
func TestNamespacedComponentBindsNoRightsToSecretsInTheCluster(t *testing.T) {
	dir := t.TempDir()
	err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS("../config"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [config]\ncomponents: [config/namespaced]\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]bool{} // ClusterRoles with rights to Secrets
	for _, r := range fromManifests[rbacv1.ClusterRole](t, "ClusterRole") {
		secrets[r.Name] = slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "secrets") })
	}
	var bound, watched []string // namespaces
	for _, r := range m.Resources() {
		b, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		var deployment appsv1.Deployment
		switch r.GetKind() {
		case "ClusterRoleBinding", "RoleBinding":
			if err := json.Unmarshal(b, &binding); err != nil {
				t.Fatal(err)
			}
			if binding.RoleRef.Kind == "ClusterRole" && secrets[binding.RoleRef.Name] {
				bound = append(bound, r.GetNamespace()) // "" in the whole cluster
			}
		case "Deployment":
			if err := json.Unmarshal(b, &deployment); err != nil {
				t.Fatal(err)
			}
			for _, v := range deployment.Spec.Template.Spec.Containers[0].Env {
				if v.Name == "WATCH_NAMESPACE" {
					watched = strings.Split(v.Value, ",")
				}
			}
		}
	}
	if !slices.Equal(bound, []string{"default"}) || !slices.Equal(watched, bound) {
		t.Errorf("rights to Secrets are bound in %q, the controller watches %q, want default for both", bound, watched)
	}
}

// The manifests of a release have its version as the tag of the image. This runs the
// script's command on a copy.
func TestReleasePinsTheImage(t *testing.T) {
	script, err := os.ReadFile("../../cmd/release.sh")
	if err != nil {
		t.Fatal(err)
	}
	command := ""
	for line := range strings.Lines(string(script)) {
		if strings.HasPrefix(line, "sed -i ") {
			command = line
		}
	}
	dir := filepath.Join(t.TempDir(), "manifests")
	if err := os.CopyFS(dir, os.DirFS("../config")); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-euc", command)
	c.Env = append(os.Environ(), "version=v9.8.7", "name=manifests", "dir="+filepath.Dir(dir))
	if out, err := c.CombinedOutput(); err != nil || command == "" {
		t.Fatalf("%q = %v: %s", command, err, out)
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.AsYaml()
	if err != nil || !strings.Contains(string(text), "image: metalab:v9.8.7\n") {
		t.Errorf("the manifests of v9.8.7, %v, have no image metalab:v9.8.7", err)
	}
}
