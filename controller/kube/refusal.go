package kube

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/metalab-dev/metalab/controller/config"
)

// policyRefusals makes the refusals of our admission policies begin as those of
// upstream's webhooks, whose names the policies have: clients match the prefix
// "admission webhook … denied the request". Other policies refuse as usual.
type policyRefusals struct {
	admission.ValidationInterface
	ours map[string]bool // names of policies
}

// policyRefusal matches the error of the plugin ValidatingAdmissionPolicy. Upgrade
// check: TestPoliciesRefuseInTheFormOfWebhooks.
var policyRefusal = regexp.MustCompile(`(?s)ValidatingAdmissionPolicy '([^']+)'(?: with binding '[^']*')? denied request: (.*)$`)

// Validate implements admission.ValidationInterface.
func (p policyRefusals) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.ValidationInterface.Validate(ctx, a, o)
	status := new(apierrors.StatusError)
	if !errors.As(err, &status) {
		return err
	}
	m := policyRefusal.FindStringSubmatch(status.ErrStatus.Message)
	if m == nil || !p.ours[m[1]] {
		return err
	}
	s := status.ErrStatus
	s.Message, s.Details = fmt.Sprintf("admission webhook %q denied the request: %s", m[1], m[2]), nil
	return &apierrors.StatusError{ErrStatus: s}
}

// webhookRefusals returns the decorator that puts policyRefusals around the plugin.
func webhookRefusals() (admission.Decorator, error) {
	policies, _, err := config.Policies(config.Families...)
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, p := range policies {
		ours[p.GetName()] = true
	}
	return admission.DecoratorFunc(func(plugin admission.Interface, name string) admission.Interface {
		if v, ok := plugin.(admission.ValidationInterface); ok && name == validating.PluginName {
			return policyRefusals{v, ours}
		}
		return plugin
	}), nil
}
