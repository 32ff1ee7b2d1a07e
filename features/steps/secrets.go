package steps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// holdSecrets are the kinds that hold the secrets of an operator.
var holdSecrets = []string{"Secret", "Proxy"}

// nothingContains reads every object of every kind that the API serves, and what the lab has logged.
func (s *scenario) nothingContains(ctx context.Context, text string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	kinds, err := s.servedKinds()
	if err != nil {
		return err
	}
	for _, k := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k)
		if err := s.kube.List(ctx, list); err != nil {
			return fmt.Errorf("list %s: %w", k.Kind, err)
		}
		for _, o := range list.Items {
			b, err := yaml.Marshal(o.Object)
			if err != nil {
				return err
			}
			if strings.Contains(string(b), text) {
				return fmt.Errorf("%s %s/%s contains %q:\n%s", k.Kind, o.GetNamespace(), o.GetName(), text, b)
			}
		}
	}
	written, err := s.testLab.log.Stat()
	if err != nil {
		return err
	}
	if written.Size() == 0 {
		return errors.New("the lab has logged nothing")
	}
	lines := bufio.NewReader(io.NewSectionReader(s.testLab.log, 0, written.Size()))
	for {
		line, err := lines.ReadString('\n')
		switch {
		case strings.Contains(line, text):
			return fmt.Errorf("the log contains %q: %s", text, line)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// servedKinds returns the kinds that the API lists, without those that hold secrets.
func (s *scenario) servedKinds() (out []schema.GroupVersionKind, err error) {
	api, err := s.lab.APIConfig()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(api)
	if err != nil {
		return nil, err
	}
	groups, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		v, err := schema.ParseGroupVersion(g.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range g.APIResources {
			if slices.Contains([]string(r.Verbs), "list") && !slices.Contains(holdSecrets, r.Kind) {
				out = append(out, v.WithKind(r.Kind))
			}
		}
	}
	if !slices.ContainsFunc(out, func(k schema.GroupVersionKind) bool { return k.Kind == "LCMMachine" }) {
		return nil, errors.New("the API lists no LCMMachines")
	}
	return out, nil
}
