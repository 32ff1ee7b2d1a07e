package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/lab"
)

// registerObjects binds the steps that edit and read a BareMetalHost by its fields.
func (s *scenario) registerObjects(sc *stepRegistry) {
	sc.Step(`^the operator registers the server with:$`, "applies the Secret, and the BareMetalHost with this YAML merged into it", s.registerWith)
	sc.Step(`^the operator registers the server again with:$`, "the same, once its former BareMetalHost is deleted, whose states no longer count", func(ctx context.Context, text *godog.DocString) error {
		s.recorder.forget()
		return s.registerWith(ctx, text)
	})
	sc.Step(`^the operator registers the server at the address "([^"]*)" with:$`, "the same, with a BMC address in which HOST:PORT, IPMI and SYSTEM stand for those of the server", s.registerAtAddressWith)
	sc.Step(`^the operator edits the host:$`, "merges this YAML into the BareMetalHost; null removes a field", s.edit)
	sc.Step(`^the operator annotates the host with "([^"]*)"$`, "sets an annotation to the empty string",
		func(ctx context.Context, name string) error { return s.annotate(ctx, name, "") })
	sc.StepWithOptionalText(`^the operator annotates the host with "([^"]+)" set to '([^']*)'$`, "sets an annotation to this text", s.annotate)
	sc.Step(`^annotating the host with "([^"]*)" set to '([^']*)' is refused with "([^"]*)"$`, "asserts that the API refuses an annotation with this text", s.cannotAnnotate)
	sc.Step(`^the operator removes the annotation "([^"]*)"$`, "removes an annotation", s.unannotate)
	sc.Step(`^the annotation "([^"]*)" is removed$`, "waits until the host does not have the annotation, which it has had", s.hasLostAnnotation)
	sc.NegativeStep(`^the annotation "([^"]*)" is still there$`, "asserts, once each controller has reconciled every object, that the host has the annotation", s.keepsAnnotation)
	sc.Step(`^the host's status field "([^"]*)" is "([^"]*)"$`, "waits for the value at a path of the status, such as provisioning.bootMode", s.statusHas)
	sc.Step(`^the host has lost its status field "([^"]*)"$`, "waits until there is no value, or an empty one, at a path of the status where there was one", s.statusLost)
	sc.Step(`^the conditions "([^"]*)" are (true|false)$`, "waits until all these conditions have this status", s.conditionsAre)
	sc.Step(`^the condition "([^"]*)" is (True|False|Unknown) with reason "([^"]*)"$`, "waits until a condition has this status and reason", s.conditionIs)
}

// merge merges YAML into a BareMetalHost.
func merge(into *metal3.BareMetalHost, text string) error {
	var patch map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &patch); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return err
	}
	b, err := json.Marshal(overlay(object, patch))
	if err != nil {
		return err
	}
	*into = metal3.BareMetalHost{}
	return yaml.UnmarshalStrict(b, into)
}

// overlay applies a merge patch (RFC 7396) to a parsed object.
func overlay(under, over map[string]any) map[string]any {
	for k, v := range over { // in any order: each key is merged alone
		deeper, ok := v.(map[string]any)
		switch {
		case v == nil:
			delete(under, k)
		case ok:
			below, _ := under[k].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			under[k] = overlay(below, deeper)
		default:
			under[k] = v
		}
	}
	return under
}

func (s *scenario) registerWith(ctx context.Context, text *godog.DocString) error {
	secret, host := lab.Objects(s.server)
	if err := merge(host, text.Content); err != nil {
		return err
	}
	return s.create(ctx, secret, host)
}

func (s *scenario) registerAtAddressWith(ctx context.Context, address string, text *godog.DocString) error {
	secret, host := lab.Objects(s.server)
	if err := merge(host, text.Content); err != nil {
		return err
	}
	if err := s.setAddress(host, address); err != nil {
		return err
	}
	return s.create(ctx, secret, host)
}

func (s *scenario) edit(ctx context.Context, text *godog.DocString) error {
	patch, err := yaml.YAMLToJSONStrict([]byte(text.Content))
	if err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	_, host := lab.Objects(s.server)
	if err := s.kube.Patch(ctx, host, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return err
	}
	return s.catchUp(ctx, host.ResourceVersion)
}

func (s *scenario) annotate(ctx context.Context, name, value string) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) { metav1.SetMetaDataAnnotation(&h.ObjectMeta, name, value) })
}

func (s *scenario) cannotAnnotate(ctx context.Context, name, value, why string) error {
	err := s.annotate(ctx, name, value)
	switch {
	case err == nil:
		return errors.New("it is taken")
	case !strings.Contains(err.Error(), why):
		return fmt.Errorf("it is refused, but not so: %w", err)
	}
	return nil
}

func (s *scenario) unannotate(ctx context.Context, name string) error {
	return s.change(ctx, func(h *metal3.BareMetalHost) { delete(h.Annotations, name) })
}

func (s *scenario) hasLostAnnotation(ctx context.Context, name string) error {
	return eventually(ctx, "the annotation "+name+" is removed", func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		if h == nil {
			return false, "no host", nil
		}
		_, ok := h.Annotations[name]
		had := s.recorder.hadAnnotation(name)
		return had && !ok, fmt.Sprintf("had it: %t, has: %v", had, h.Annotations), nil
	})
}

func (s *scenario) keepsAnnotation(ctx context.Context, name string) error {
	if err := s.letServerAct(ctx); err != nil {
		return err
	}
	h, err := s.read(ctx)
	if err != nil {
		return err
	}
	if _, ok := h.Annotations[name]; !ok {
		return fmt.Errorf("it has gone: there are %v", h.Annotations)
	}
	return nil
}

func (s *scenario) statusHas(ctx context.Context, path, want string) error {
	return s.awaitValue(ctx, path, want, func(h *metal3.BareMetalHost) string { return statusAt(h, path) })
}

func (s *scenario) statusLost(ctx context.Context, path string) error {
	had := func(h *metal3.BareMetalHost) bool { return statusAt(h, path) != "" }
	if !s.recorder.any(had) {
		return fmt.Errorf("the status never had a value at %s", path)
	}
	return eventually(ctx, path+" is empty", func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		return h != nil && !had(h), fmt.Sprintf("%+v", h), nil
	})
}

// statusAt returns the value at a path of a host's status as text; "" when there is none.
func statusAt(h *metal3.BareMetalHost, path string) string {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h.Status)
	if err != nil {
		return err.Error()
	}
	var value any = object
	for part := range strings.SplitSeq(path, ".") {
		m, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = m[part]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func (s *scenario) conditionsAre(ctx context.Context, list, want string) error {
	status := map[string]metav1.ConditionStatus{"true": metav1.ConditionTrue, "false": metav1.ConditionFalse}[want]
	return eventually(ctx, "conditions "+list+" are "+want, func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		if h == nil {
			return false, "no host", nil
		}
		for name := range strings.SplitSeq(list, ", ") {
			if !meta.IsStatusConditionPresentAndEqual(h.Status.Conditions, name, status) {
				return false, fmt.Sprintf("%+v", h.Status.Conditions), nil
			}
		}
		return true, "", nil
	})
}

func (s *scenario) conditionIs(ctx context.Context, name, status, reason string) error {
	return s.awaitValue(ctx, "condition "+name, status+" "+reason, func(h *metal3.BareMetalHost) string {
		c := meta.FindStatusCondition(h.Status.Conditions, name)
		if c == nil {
			return "not there"
		}
		return string(c.Status) + " " + c.Reason
	})
}
