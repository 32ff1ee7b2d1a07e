package config

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// RefusesAnnotation is the annotation of a policy that holds an example of an object
// that the policy denies, as JSON without kind and name. An installer creates the
// example as a dry run to find out when the policy is in force.
const RefusesAnnotation = "metalab.dev/refuses"

//go:embed admission/*.yaml webhook/*.yaml hoc/admission/*.yaml
var admission embed.FS

// Policies returns the validating admission policies and the bindings that put them
// in force, each in the order of their files: those of hosts, then those of each family.
func Policies(families ...string) (policies, bindings []*unstructured.Unstructured, err error) {
	if err := CheckFamilies(families); err != nil {
		return nil, nil, err
	}
	var names []string
	for _, dir := range slices.Concat([]string{"."}, families) {
		files, err := fs.Glob(admission, path.Join(dir, "admission/*.yaml"))
		if err != nil {
			return nil, nil, err
		}
		names = append(names, files...)
	}
	for _, name := range names {
		b, err := fs.ReadFile(admission, name)
		if err != nil {
			return nil, nil, err
		}
		for _, text := range strings.Split(string(b), "\n---\n") {
			o := new(unstructured.Unstructured)
			doc, err := yaml.ToJSON([]byte(text))
			if err == nil {
				err = o.UnmarshalJSON(doc)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			if o.GetKind() == "ValidatingAdmissionPolicy" {
				policies = append(policies, o)
			} else {
				bindings = append(bindings, o)
			}
		}
	}
	return policies, bindings, nil
}

// Webhook returns the configuration in a file under webhook, of a webhook that the controllers
// serve at url, for the objects of these namespaces, or of all when none is named. The API
// server trusts the certificate authority whose PEM is ca for it.
func Webhook(file, url, ca string, namespaces ...string) (*admissionv1.ValidatingWebhookConfiguration, error) {
	doc, err := readJSON(admission, "webhook/"+file)
	if err != nil {
		return nil, err
	}
	out := new(admissionv1.ValidatingWebhookConfiguration)
	if err := json.Unmarshal(doc, out); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	for i := range out.Webhooks {
		out.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: []byte(ca)}
		if len(namespaces) > 0 {
			out.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
			}}
		}
	}
	return out, nil
}
