package build

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// The manifests have the account of a Job's pods, which may do what digestScript does and no more.
func TestManifestsHaveTheAccountOfJobs(t *testing.T) {
	text, err := os.ReadFile("../../config/machineconfig/deploy/builder.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, machineconfig.Skip)
	w.layer("FROM configs AS final\n")
	w.settle()
	named := w.jobs()[0].Spec.Template.Spec.ServiceAccountName
	var account corev1.ServiceAccount
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for _, into := range []any{&account, &role, &binding} {
		if err := documents.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	if err := documents.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		t.Errorf("a fourth object: %v", err)
	}
	if account.Name != named || account.Namespace != machineconfig.Namespace || role.Namespace != machineconfig.Namespace || binding.Namespace != machineconfig.Namespace {
		t.Errorf("the account is %s/%s, want that of the Job, %s/%s", account.Namespace, account.Name, machineconfig.Namespace, named)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "patch"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("its rights (-want +got):\n%s", diff)
	}
	if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 || binding.Subjects[0].Name != named || binding.Subjects[0].Namespace != machineconfig.Namespace {
		t.Errorf("the binding is of %+v to %+v", binding.Subjects, binding.RoleRef)
	}
}
