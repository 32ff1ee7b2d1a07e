package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/config"
)

// installPolicies applies the admission policies. They may come into force a second or
// two later; see awaitPolicies.
func installPolicies(ctx context.Context, c *rest.Config, families []string) error {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return err
	}
	policies, bindings, err := config.Policies(families...)
	if err != nil {
		return err
	}
	for resource, objects := range map[string][]*unstructured.Unstructured{ // in any order: neither has an effect without the other
		"validatingadmissionpolicies": policies, "validatingadmissionpolicybindings": bindings,
	} {
		for _, o := range objects {
			b, err := json.Marshal(o)
			if err != nil {
				return err
			}
			force := true
			if _, err := client.Resource(admissionv1.SchemeGroupVersion.WithResource(resource)).Patch(ctx, o.GetName(), types.ApplyPatchType, b,
				metav1.PatchOptions{FieldManager: fieldManager, Force: &force}); err != nil {
				return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}

// awaitPolicies returns when every policy is in force: when a dry run of creating the
// example in its RefusesAnnotation is forbidden. It stores nothing.
func awaitPolicies(ctx context.Context, c *rest.Config, families []string) error {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	policies, _, err := config.Policies(families...)
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	crds, err := config.CRDs(families...)
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	kinds := map[schema.GroupResource]string{}
	for _, crd := range crds {
		kinds[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = crd.Spec.Names.Kind
	}
	for _, p := range policies {
		example, ok := p.GetAnnotations()[config.RefusesAnnotation]
		if !ok {
			continue
		}
		resource, err := matchedResource(p)
		if err != nil {
			return fmt.Errorf("policy %s: %w", p.GetName(), err)
		}
		o := new(unstructured.Unstructured)
		if err := json.Unmarshal([]byte(example), &o.Object); err != nil {
			return fmt.Errorf("policy %s: example: %w", p.GetName(), err)
		}
		o.SetAPIVersion(resource.GroupVersion().String())
		o.SetKind(kinds[resource.GroupResource()])
		o.SetName("metalab-example")
		objects := client.Resource(resource).Namespace(metav1.NamespaceDefault)
		var last error
		err = wait.PollUntilContextTimeout(ctx, policyPeriod/2, bootTimeout, true, func(ctx context.Context) (bool, error) {
			_, last = objects.Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsForbidden(last), nil
		})
		if err != nil {
			return fmt.Errorf("policy %s is not in force: %w", p.GetName(), errors.Join(err, last))
		}
	}
	return nil
}

// matchedResource returns the resource that a policy matches, the first one of several: that of its
// example.
func matchedResource(policy *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	b, err := policy.MarshalJSON()
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	var p admissionv1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(b, &p); err != nil {
		return schema.GroupVersionResource{}, err
	}
	rule := p.Spec.MatchConstraints.ResourceRules[0].Rule
	return schema.GroupVersionResource{Group: rule.APIGroups[0], Version: rule.APIVersions[0], Resource: rule.Resources[0]}, nil
}
