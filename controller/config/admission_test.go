package config

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// refusesByUser are the policies that refuse an administrator no new object: no example
// shows when they are in force.
var refusesByUser = map[string]bool{"releases.kaas.mirantis.com": true, "machine-profile.cluster.k8s.io": true, "helmbundles.lcm.mirantis.com": true, "charts.cluster.k8s.io": true}

// The API server never evaluates a policy without a binding, and drops a field that
// it does not know without an error.
func TestEveryPolicyIsBoundAndHasOnlyKnownFields(t *testing.T) {
	policies, bindings, err := Policies(Families...)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range policies {
		var typed admissionv1.ValidatingAdmissionPolicy
		strictly(t, p, &typed)
		names[p.GetName()] = true
		if typed.Spec.FailurePolicy == nil || len(typed.Spec.Validations) == 0 {
			t.Errorf("%s: no failure policy or no validation: %+v", p.GetName(), typed.Spec)
		}
		if example := p.GetAnnotations()[RefusesAnnotation]; *typed.Spec.FailurePolicy == admissionv1.Fail && !refusesByUser[p.GetName()] && !json.Valid([]byte(example)) {
			t.Errorf("%s: annotation %s = %q, want an example of what it refuses", p.GetName(), RefusesAnnotation, example)
		}
	}
	for _, b := range bindings {
		var typed admissionv1.ValidatingAdmissionPolicyBinding
		strictly(t, b, &typed)
		if !names[typed.Spec.PolicyName] {
			t.Errorf("%s binds %s, which does not exist or is bound twice", b.GetName(), typed.Spec.PolicyName)
		}
		delete(names, typed.Spec.PolicyName)
	}
	if len(names) > 0 {
		t.Errorf("policies without a binding: %v", names)
	}
}

// No policy is about a BareMetalHost that is being deleted: its finalizers must go, whatever its
// specification says.
func TestPoliciesOnHostsSkipDeletion(t *testing.T) {
	policies, _, err := Policies(Families...)
	if err != nil {
		t.Fatal(err)
	}
	hosts := 0
	for _, p := range policies {
		var typed admissionv1.ValidatingAdmissionPolicy
		strictly(t, p, &typed)
		about := typed.Spec.MatchConstraints != nil && slices.ContainsFunc(typed.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.Resources, "baremetalhosts")
		})
		if !about {
			continue
		}
		hosts++
		if !slices.ContainsFunc(typed.Spec.MatchConditions, func(c admissionv1.MatchCondition) bool {
			return c.Expression == "!has(object.metadata.deletionTimestamp)"
		}) {
			t.Errorf("%s: no match condition leaves out hosts that are being deleted", p.GetName())
		}
	}
	if hosts < 2 {
		t.Errorf("%d policies are about BareMetalHosts, want two or more", hosts)
	}
}

func strictly(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, to, true); err != nil {
		t.Errorf("%s %s: %v", from.GetKind(), from.GetName(), err)
	}
}

func TestWebhookHasTheServersURLAndCA(t *testing.T) {
	got, err := Webhook("baremetalhost.yaml", "https://192.0.2.1:9443/validate", "PEM")
	if err != nil {
		t.Fatal(err)
	}
	url := "https://192.0.2.1:9443/validate"
	want := admissionv1.WebhookClientConfig{URL: &url, CABundle: []byte("PEM")}
	if len(got.Webhooks) != 1 {
		t.Fatalf("Webhook() has %d webhooks, want 1", len(got.Webhooks))
	}
	if diff := cmp.Diff(want, got.Webhooks[0].ClientConfig); diff != "" {
		t.Errorf("clientConfig (-want +got):\n%s", diff)
	}
	if s := got.Webhooks[0].NamespaceSelector; s != nil {
		t.Errorf("namespaceSelector = %v, want none: all namespaces", s)
	}
	if got, err = Webhook("baremetalhost.yaml", url, "PEM", "east", "west"); err != nil {
		t.Fatal(err)
	}
	in := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{"east", "west"}},
	}}
	if diff := cmp.Diff(in, got.Webhooks[0].NamespaceSelector); diff != "" {
		t.Errorf("namespaceSelector (-want +got):\n%s", diff)
	}
	if w := got.Webhooks[0]; len(w.MatchConditions) == 0 || *w.FailurePolicy != admissionv1.Fail || len(w.Rules) == 0 {
		t.Errorf("webhook = %+v, want rules, conditions and failure policy Fail", w)
	}
}
