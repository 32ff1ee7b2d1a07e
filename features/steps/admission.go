package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/lab"
)

func (s *scenario) registerAdmission(sc *stepRegistry) {
	sc.Step(`^the operator tries to create a (\w+) with '([^']*)'$`, "creates an object with this YAML in a dry run; a BareMetalHost is the server's, with the YAML merged into it", s.tryObject)
	sc.Step(`^the operator tries to change the host to '([^']*)'$`, "applies this merge patch to the BareMetalHost in a dry run", s.tryChange)
	sc.Step(`^it is refused with: (.+)$`, "asserts that the last dry run was refused with this text", s.isRefused)
	sc.Step(`^it is accepted$`, "asserts that the last dry run was accepted", func() error {
		if !s.dryRun {
			return errors.New("nothing has been tried")
		}
		return s.admissionError
	})
}

func (s *scenario) tryObject(ctx context.Context, kind, text string) error {
	var patch map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &patch); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	object := map[string]any{"metadata": map[string]any{"name": s.server.Name, "namespace": lab.Namespace}}
	if kind == "BareMetalHost" {
		_, host := lab.Objects(s.server)
		var err error
		if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(host); err != nil {
			return err
		}
		delete(object, "status")
	}
	o := &unstructured.Unstructured{Object: overlay(object, patch)}
	o.SetGroupVersionKind(metal3.GroupVersion.WithKind(kind))
	s.dryRun = true
	s.admissionError = s.kube.Create(ctx, o, client.DryRunAll)
	return nil
}

func (s *scenario) tryChange(ctx context.Context, text string) error {
	patch, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	_, host := lab.Objects(s.server)
	s.dryRun = true
	s.admissionError = s.kube.Patch(ctx, host, client.RawPatch("application/merge-patch+json", patch), client.DryRunAll)
	return nil
}

func (s *scenario) isRefused(text string) error {
	if s.admissionError == nil || !strings.Contains(s.admissionError.Error(), text) {
		return fmt.Errorf("the answer was: %v", s.admissionError) //nolint:errorlint // there may be none
	}
	return nil
}
