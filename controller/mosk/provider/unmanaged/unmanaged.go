// Package unmanaged says why the bare metal provider does not act on an object: the label of the
// provider is missing, or is another provider's. The reconcilers of all kinds that are filtered by
// the label ask it, and write the answer into the object's status.
package unmanaged

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// ConditionProvider is the type of the condition of a Cluster or Machine that no provider acts
// for.
const ConditionProvider = "Provider"

// Message says why the provider does not act on an object; "" when it does. It goes on, whatever
// the label, while the object has its finalizer.
func Message(o client.Object, finalizer string) string {
	label, labelled := o.GetLabels()[clusterv1.ProviderLabel]
	switch {
	case label == clusterv1.ProviderBareMetal || controllerutil.ContainsFinalizer(o, finalizer):
		return ""
	case !labelled:
		return fmt.Sprintf("the bare metal provider does not act on this object: give it the label %s=%s", clusterv1.ProviderLabel, clusterv1.ProviderBareMetal)
	}
	return fmt.Sprintf("the bare metal provider does not act on an object of the provider %q: the label %s that it acts on is %q", label, clusterv1.ProviderLabel, clusterv1.ProviderBareMetal)
}

// With returns conditions with that of the provider, which has a message of Message. It is ready:
// HostOSConfigurations apply to the Machines of all providers that are Ready.
func With(conditions []baremetalv1.Condition, message string) []baremetalv1.Condition {
	return append(Without(conditions), baremetalv1.Condition{Type: ConditionProvider, Ready: true, Message: message})
}

// Without returns conditions without that of the provider.
func Without(conditions []baremetalv1.Condition) []baremetalv1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c baremetalv1.Condition) bool { return c.Type == ConditionProvider })
}
