package charts

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
)

// render returns the documents of the chart of the Helm controller, installed as a release hc of the
// namespace lab, as "KIND NAMESPACE/NAME".
func render(t *testing.T, values helmcontroller.Values) map[string][]byte {
	t.Helper()
	files, err := helmcontroller.Files()
	if err != nil {
		t.Fatal(err)
	}
	text, err := pack(files)
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := json.Unmarshal(b, &given); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "hc", Namespace: "lab"}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for name, text := range rendered {
		for document := range strings.SplitSeq(text, "---\n") {
			var o struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
			}
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			if o.Kind != "" {
				out[o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name] = []byte(document)
			}
		}
	}
	return out
}

func names(documents map[string][]byte) map[string]bool {
	out := map[string]bool{}
	for name := range documents {
		out[name] = true
	}
	return out
}

func decode[T any](t *testing.T, documents map[string][]byte, name string) (out T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(documents[name], &out); err != nil || documents[name] == nil {
		t.Fatalf("%s: %v\n%s", name, err, documents[name])
	}
	return out
}

// The controller has roles of its own for the namespaces of its releases, or the one that is named.
func TestRightsOfTheHelmControllersChart(t *testing.T) {
	got := render(t, helmcontroller.Values{Namespaces: []string{"a", "b"}, Rules: []any{map[string]any{"apiGroups": []string{"apps"}, "resources": []string{"deployments"}, "verbs": []string{"create"}}}})
	want := map[string]bool{
		"ServiceAccount /hc": true, "Deployment /hc": true, "Secret /hc-management": true, "ClusterRole /lab:hc": true, "ClusterRoleBinding /lab:hc": true, "Role /hc-self": true, "RoleBinding /hc-self": true,
		"Role a/hc": true, "RoleBinding a/hc": true, "Role b/hc": true, "RoleBinding b/hc": true,
	}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	role := decode[rbacv1.Role](t, got, "Role b/hc")
	if n := len(role.Rules); n != 3 || role.Rules[2].Resources[0] != "deployments" || role.Rules[0].Resources[0] != "secrets" {
		t.Errorf("rules %+v", role.Rules)
	}
	for _, r := range decode[rbacv1.ClusterRole](t, got, "ClusterRole /lab:hc").Rules {
		for _, resource := range r.Resources {
			if resource != "namespaces" && len(r.ResourceNames) == 0 {
				t.Errorf("the ClusterRole grants %v on all %s", r.Verbs, resource)
			}
		}
	}
	for _, own := range [][]string{nil, {"lab"}} {
		if got := render(t, helmcontroller.Values{Namespaces: own}); got["Role lab/hc"] == nil || got["ClusterRole /lab:hc"] != nil || got["ClusterRoleBinding /lab:hc"] != nil {
			t.Errorf("with the namespaces %q: %v, want a Role in that of the release, and no object of the cluster", own, names(got))
		}
	}
	got = render(t, helmcontroller.Values{ClusterRole: "cluster-admin"})
	if diff := cmp.Diff(map[string]bool{"ServiceAccount /hc": true, "Deployment /hc": true, "Secret /hc-management": true, "ClusterRoleBinding /lab:hc": true}, names(got)); diff != "" {
		t.Errorf("objects with a ClusterRole (-want +got):\n%s", diff)
	}
	binding := decode[rbacv1.ClusterRoleBinding](t, got, "ClusterRoleBinding /lab:hc")
	if s := binding.Subjects; binding.RoleRef.Name != "cluster-admin" || len(s) != 1 || s[0] != (rbacv1.Subject{Kind: "ServiceAccount", Namespace: "lab", Name: "hc"}) {
		t.Errorf("binding %+v", binding)
	}
}

// The pod runs lab-controller for the HelmBundle that its Secret names, and writes no file.
func TestDeploymentOfTheHelmControllersChart(t *testing.T) {
	d := decode[appsv1.Deployment](t, render(t, helmcontroller.Values{Replicas: 2, Image: "registry/metalab", Tag: "1"}), "Deployment /hc")
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	if *d.Spec.Replicas != 2 || c.Image != "registry/metalab:1" || pod.ServiceAccountName != "hc" || c.Command[0] != "lab-controller" || c.Args[0] != "--controllers=helm" {
		t.Errorf("Deployment %+v", d.Spec)
	}
	if from := c.Env[0].ValueFrom.SecretKeyRef; from.Name != helmcontroller.SecretName("hc") || from.Key != helmcontroller.BundleKey {
		t.Errorf("the bundle is that of %+v", from)
	}
	if s := pod.Volumes[0].Secret; s == nil || s.SecretName != helmcontroller.SecretName("hc") {
		t.Errorf("volume %+v", pod.Volumes[0])
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("security context %+v", s)
	}
	if d := decode[appsv1.Deployment](t, render(t, helmcontroller.Values{}), "Deployment /hc"); *d.Spec.Replicas != 1 || d.Spec.Template.Spec.Containers[0].Image != "metalab:devel" {
		t.Errorf("Deployment without values %+v", d.Spec)
	}
}
