package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/metalab-dev/metalab/controller/config"
)

// fieldManager signs what Install writes.
const fieldManager = "metalab"

// Install applies the definitions and policies of controller/config to the cluster
// that c reaches, and returns when it serves and discovers their resources; the
// policies may need a second more to be in force. It may be
// repeated: what is there already and the same is not written. Definitions that
// somebody else installed become ours, except for the fields that ours do not
// have, such as labels and a conversion webhook.
func Install(ctx context.Context, c *rest.Config) error {
	crds, err := config.CRDs()
	if err != nil {
		return fmt.Errorf("kube: install: %w", err)
	}
	c = rest.CopyConfig(c)
	c.QPS = -1 // a handful of requests, and somebody waits for them
	client, err := clientset.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("kube: install: %w", err)
	}
	for _, crd := range crds {
		if err := apply(ctx, client, crd); err != nil {
			return fmt.Errorf("kube: install %s: %w", crd.Name, err)
		}
	}
	if err := installPolicies(ctx, c); err != nil {
		return fmt.Errorf("kube: install: %w", err)
	}
	var lack error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, bootTimeout, true, func(ctx context.Context) (bool, error) {
		if lack = unestablished(ctx, client, crds); lack == nil {
			lack = undiscovered(client.Discovery(), crds)
		}
		return lack == nil, nil
	})
	if err != nil {
		return fmt.Errorf("kube: install: %w", errors.Join(err, lack))
	}
	return nil
}

// apply writes crd by server-side apply.
func apply(ctx context.Context, client clientset.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return err
	}
	// The type has no omitempty on status, which is the server's to write.
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

// unestablished tells which definitions the cluster has not taken into service.
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

// undiscovered tells which resources a client would not find yet. Discovery
// follows some time after a definition is established, and comes in two forms,
// each with its own delay: by version, which Go clients read, and of everything,
// which kubectl reads.
func undiscovered(client discovery.DiscoveryInterface, crds []*apiextensionsv1.CustomResourceDefinition) error {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // somebody else's group may be down
		return err
	}
	everything := resources(lists)
	var errs []error
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			gv := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
			list, err := client.ServerResourcesForGroupVersion(gv.String())
			if err != nil {
				errs = append(errs, err)
				continue
			}
			one, name := resources([]*metav1.APIResourceList{list}), gv.String()+" "+crd.Spec.Names.Plural
			if v.Served && !(one.Has(name) && everything.Has(name)) {
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

// haGrace is how long upstream holds up each creation of an object after its
// definition was established, so that other servers of the same cluster have
// seen the definition too.
const haGrace = 2 * time.Second

// age makes the definitions of a cluster that has one server look as if they had
// been established long ago, so that nobody waits for servers that are not there.
func age(ctx context.Context, c *rest.Config) error {
	client, err := clientset.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("kube: install: %w", err)
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	list, err := crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("kube: install: %w", err)
	}
	for _, crd := range list.Items {
		// Upstream's controllers write this status as well.
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			crd, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)
			if established == nil || time.Since(established.LastTransitionTime.Time) > haGrace {
				return nil
			}
			established.LastTransitionTime = metav1.NewTime(established.LastTransitionTime.Add(-2 * haGrace))
			_, err = crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: fieldManager})
			return err
		})
		if err != nil {
			return fmt.Errorf("kube: install %s: %w", crd.Name, err)
		}
	}
	return nil
}
