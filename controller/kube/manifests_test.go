package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build renders manifests as kubectl kustomize does.
func build(t *testing.T, dir string) []*resource.Resource {
	t.Helper()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize build %s: %v", dir, err)
	}
	return m.Resources()
}

// The folders with manifests.
const (
	controllerManifests = "../config"
	racksManifests      = "../config/racks"
)

// TestManifestsApply applies the manifests as kubectl apply -k --server-side does, with
// unknown fields denied. The lab's API serves no workloads, Services, NetworkPolicies and
// PodDisruptionBudgets: upstream's validation checks those.
func TestManifestsApply(t *testing.T) {
	c := sharedAPI(t).RESTConfig()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(cs.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, tt := range []struct {
		dir       string
		notServed []string // kinds
	}{
		{controllerManifests, []string{"Deployment", "NetworkPolicy", "NetworkPolicy", "PodDisruptionBudget", "Service"}},
		{racksManifests, []string{"Deployment", "NetworkPolicy", "NetworkPolicy", "NetworkPolicy", "PodDisruptionBudget", "PodDisruptionBudget", "Service", "Service", "StatefulSet"}},
	} {
		t.Run(tt.dir, func(t *testing.T) {
			var notServed []string
			for _, r := range build(t, tt.dir) {
				gvk := schema.FromAPIVersionAndKind(r.GetApiVersion(), r.GetKind())
				b, err := r.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
				if meta.IsNoMatchError(err) {
					notServed = append(notServed, r.GetKind())
					validate(t, b)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.Resource(mapping.Resource).Namespace(r.GetNamespace()).Patch(t.Context(), r.GetName(), types.ApplyPatchType, b,
					metav1.PatchOptions{FieldManager: "kubectl", Force: new(true), FieldValidation: metav1.FieldValidationStrict})
				if err != nil {
					t.Errorf("apply %s %s: %v", r.GetKind(), r.GetName(), err)
				}
			}
			slices.Sort(notServed)
			if diff := cmp.Diff(tt.notServed, notServed); diff != "" {
				t.Errorf("kinds that the lab's API does not serve (-want +got):\n%s", diff)
			}
		})
	}
}

// validate checks an object as upstream's API does before storing it.
func validate(t *testing.T, b []byte) {
	t.Helper()
	o, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(b, nil, nil)
	if err != nil {
		t.Errorf("%v: %s", err, b)
		return
	}
	back, err := json.Marshal(o) // without the fields that the type does not have
	if err != nil {
		t.Fatal(err)
	}
	if lost := missing(t, b, back); lost != nil {
		t.Errorf("unknown fields: %s", strings.Join(lost, ", "))
	}
	o, _, err = legacyscheme.Codecs.UniversalDecoder().Decode(b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var invalid field.ErrorList
	switch o := o.(type) {
	case *apps.Deployment:
		invalid = appsvalidation.ValidateDeployment(o, corevalidation.PodValidationOptions{})
	case *apps.StatefulSet:
		invalid = appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{}, corevalidation.PodValidationOptions{})
	case *core.Service:
		if o.Spec.ClusterIP != "" && len(o.Spec.ClusterIPs) == 0 { // as upstream does before it validates
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		invalid = corevalidation.ValidateServiceCreate(o)
	case *networking.NetworkPolicy:
		invalid = networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *policy.PodDisruptionBudget:
		invalid = policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	default:
		t.Errorf("this test has no validation of %T", o)
	}
	if err := invalid.ToAggregate(); err != nil {
		t.Errorf("%T: %v", o, err)
	}
}

// missing returns the paths of the JSON fields that b has and other does not have.
func missing(t *testing.T, b, other []byte) (paths []string) {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(other, &y); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, x, y any)
	walk = func(path string, x, y any) {
		switch x := x.(type) {
		case map[string]any:
			y, _ := y.(map[string]any)
			for k, v := range x {
				if w, ok := y[k]; !ok {
					paths = append(paths, path+"."+k)
				} else {
					walk(path+"."+k, v, w)
				}
			}
		case []any:
			y, _ := y.([]any)
			for i, v := range x {
				if i < len(y) {
					walk(path+"[]", v, y[i])
				}
			}
		}
	}
	walk("", x, y)
	slices.Sort(paths)
	return paths
}

// TestManifestsReferToExistingObjects checks the references between the objects, and that
// every right is to a resource that exists: a misspelt one would give no right.
func TestManifestsReferToExistingObjects(t *testing.T) {
	api := sharedAPI(t)
	cs, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := cs.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			known[gv.Group+" "+r.Name] = true
			known[gv.Group+" "+r.Name+"/finalizers"] = true // only RBAC knows this subresource
		}
	}
	var deployment appsv1.Deployment
	var service corev1.Service
	names := map[string]bool{}
	for _, r := range build(t, controllerManifests) {
		names[r.GetKind()+" "+r.GetNamespace()+"/"+r.GetName()] = true
		var role rbacv1.ClusterRole // a Role has the same fields
		for kind, into := range map[string]any{"Deployment": &deployment, "Service": &service, "ClusterRole": &role, "Role": &role} {
			if kind != r.GetKind() {
				continue
			}
			if b, err := r.MarshalJSON(); err != nil || json.Unmarshal(b, into) != nil {
				t.Fatalf("%s: %v", r.GetName(), err)
			}
		}
		for _, rule := range role.Rules {
			if len(rule.NonResourceURLs) > 0 { // it is about URLs, not about resources
				continue
			}
			served := func(group string) bool {
				return !slices.ContainsFunc(rule.Resources, func(r string) bool { return !known[group+" "+r] })
			}
			if !slices.ContainsFunc(rule.APIGroups, served) {
				t.Errorf("%s %s: no group of %q has all of %q", r.GetKind(), r.GetName(), rule.APIGroups, rule.Resources)
			}
		}
	}
	pod := deployment.Spec.Template
	for _, want := range []string{"Namespace /" + deployment.Namespace, "ServiceAccount " + deployment.Namespace + "/" + pod.Spec.ServiceAccountName} {
		if !names[want] {
			t.Errorf("there is no %s", want)
		}
	}
	for k, v := range service.Spec.Selector {
		if pod.Labels[k] != v || service.Namespace != deployment.Namespace {
			t.Errorf("the Service looks for %s=%s in %s; the pods have %v", k, v, service.Namespace, pod.Labels)
		}
	}
}
