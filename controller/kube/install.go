package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/config"
)

// fieldManager is the field manager of the objects that Install applies.
const fieldManager = "metalab"

// Install applies the definitions and policies of controller/config, with those of the
// families, to the cluster that c reaches. It returns when the cluster serves the resources and its discovery lists
// them; the policies may come into force up to a second later. A repeated call writes
// nothing. Install takes over definitions that somebody else has installed, but leaves
// the fields that ours do not set, such as labels and a conversion webhook.
func Install(ctx context.Context, c *rest.Config, families ...string) error {
	crds, err := config.CRDs(families...)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return installDefinitions(ctx, c, crds, func(c *rest.Config) error {
		if slices.Contains(families, config.HOC) {
			if err := installChartRights(ctx, c); err != nil {
				return err
			}
		}
		return installPolicies(ctx, c, families)
	})
}

// installChartRights applies the ClusterRole of the charts of HelmBundles.
func installChartRights(ctx context.Context, c *rest.Config) error {
	b, err := yaml.ToJSON([]byte(config.ChartRights))
	if err != nil {
		return fmt.Errorf("rights of charts: %w", err)
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("rights of charts: %w", err)
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	force := true
	_, err = client.RbacV1().ClusterRoles().Patch(ctx, o.Name, types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("ClusterRole %s: %w", o.Name, err)
	}
	return nil
}

// installDefinitions applies definitions, calls beside, and returns when the cluster serves and lists
// the definitions.
func installDefinitions(ctx context.Context, c *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, beside func(*rest.Config) error) error {
	c = rest.CopyConfig(c)
	c.QPS = -1 // no client-side limit for a handful of requests that the caller waits for
	client, err := clientset.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	for _, crd := range crds {
		if err := apply(ctx, client, crd); err != nil {
			return fmt.Errorf("install %s: %w", crd.Name, err)
		}
	}
	if err := beside(c); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	var missing error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, bootTimeout, true, func(ctx context.Context) (bool, error) {
		if missing = unestablished(ctx, client, crds); missing == nil {
			missing = undiscovered(client.Discovery(), crds)
		}
		return missing == nil, nil
	})
	if err != nil {
		return fmt.Errorf("install: %w", errors.Join(err, missing))
	}
	return nil
}

// apply applies crd by server-side apply.
func apply(ctx context.Context, client clientset.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return err
	}
	// The type has no omitempty on status, which only the server writes.
	delete(object, "status")
	object["apiVersion"], object["kind"] = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	b, err := json.Marshal(object)
	if err != nil {
		return err
	}
	force := true
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, crd.Name, types.ApplyPatchType, b,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	return err
}

// unestablished returns an error for each definition that the cluster does not serve yet,
// nil when it serves all.
func unestablished(ctx context.Context, client clientset.Interface, crds []*apiextensionsv1.CustomResourceDefinition) error {
	var errs []error
	for _, want := range crds {
		got, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			errs = append(errs, err)
		} else if !apihelpers.IsCRDConditionTrue(got, apiextensionsv1.Established) {
			reason := "not established"
			if names := apihelpers.FindCRDCondition(got, apiextensionsv1.NamesAccepted); names != nil && names.Status == apiextensionsv1.ConditionFalse {
				reason = names.Message
			}
			errs = append(errs, fmt.Errorf("%s: %s", want.Name, reason))
		}
	}
	return errors.Join(errs...)
}

// undiscovered returns an error for each resource that discovery does not list yet, nil
// when it lists all. Discovery follows some time after a definition is established, in
// two forms with different delays: per group version, which Go clients read, and
// aggregated, which kubectl reads.
func undiscovered(client discovery.DiscoveryInterface, crds []*apiextensionsv1.CustomResourceDefinition) error {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // a foreign group may be down
		return err
	}
	aggregated := resources(lists)
	var errs []error
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			gv := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
			list, err := client.ServerResourcesForGroupVersion(gv.String())
			if err != nil {
				errs = append(errs, err)
				continue
			}
			perVersion, name := resources([]*metav1.APIResourceList{list}), gv.String()+" "+crd.Spec.Names.Plural
			if v.Served && !(perVersion.Has(name) && aggregated.Has(name)) {
				errs = append(errs, fmt.Errorf("%s: not discovered", name))
			}
		}
	}
	return errors.Join(errs...)
}

// resources returns "group/version resource" for each resource in lists.
func resources(lists []*metav1.APIResourceList) sets.Set[string] {
	out := sets.New[string]()
	for _, l := range lists {
		for _, r := range l.APIResources {
			out.Insert(l.GroupVersion + " " + r.Name)
		}
	}
	return out
}
