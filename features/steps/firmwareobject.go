package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/lab"
)

// registerFirmwareObjects binds the steps that compare HostFirmwareSettings and
// FirmwareSchemas with YAML, and the lab whose servers have the BIOS settings for it.
func (s *scenario) registerFirmwareObjects(sc *stepRegistry) {
	sc.Step(`^a lab with (\d+) servers? of the model "([^"]*)" by "([^"]*)" with the BIOS attributes:$`, "starts a lab for this scenario alone, with servers of this model and vendor whose attribute registry has these attributes, in the format of registry files", s.startWithAttributes)
	sc.Step(`^the HostFirmwareSettings contains:$`, "waits until the object has all fields of this YAML, in which SERVER and NAMESPACE stand for the server's", func(ctx context.Context, text *godog.DocString) error {
		var o metal3.HostFirmwareSettings
		return s.contains(ctx, text, &o, func(ctx context.Context) error { return s.object(ctx, &o) })
	})
	sc.Step(`^its FirmwareSchema contains:$`, "the same for the FirmwareSchema that the HostFirmwareSettings refers to", func(ctx context.Context, text *godog.DocString) error {
		var o metal3.FirmwareSchema
		return s.contains(ctx, text, &o, func(ctx context.Context) error { return s.schemaOfSettings(ctx, &o) })
	})
}

// customModel is the name of the profile and of the registry that startWithAttributes makes.
const customModel = "custom"

func (s *scenario) startWithAttributes(ctx context.Context, servers int, model, vendor string, text *godog.DocString) error {
	b, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	if err != nil {
		return err
	}
	var profile, registry map[string]any
	if err := yaml.Unmarshal(b, &profile); err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict([]byte(text.Content), &registry); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	overlay(profile, map[string]any{
		"name": customModel, "manufacturer": vendor, "model": model, "firmware": map[string]any{"registry": customModel},
	})
	overlay(registry, map[string]any{
		"id": "BiosAttributeRegistryC1.v1_0_0", "name": "BIOS Attribute Registry", "version": "1.0.0", "language": "en", "owner": vendor,
	})
	displayNames(registry["attributes"])
	files := rack.Files{}
	for name, object := range map[string]any{"profiles/": profile, "registries/": registry} { // in any order: each object is a file of its own
		if files[name+customModel+".yaml"], err = yaml.Marshal(object); err != nil {
			return err
		}
	}
	if err := files.Check(); err != nil {
		return err
	}
	r := rackfile.Default(servers)
	r.Hosts[0].Profile = customModel
	return s.startKind(ctx, servers, labKind{rack: &r, models: &files})
}

// displayNames gives the attributes of a registry, and their values, their names for
// display.
func displayNames(attributes any) {
	list, _ := attributes.([]any)
	for _, one := range list {
		if attribute, ok := one.(map[string]any); ok {
			attribute["display"] = attribute["name"]
			displayNames(attribute["values"])
		}
	}
}

func (s *scenario) schemaOfSettings(ctx context.Context, o *metal3.FirmwareSchema) error {
	var settings metal3.HostFirmwareSettings
	if err := s.object(ctx, &settings); err != nil {
		return err
	}
	if settings.Status.FirmwareSchema == nil {
		return errors.New("the settings refer to no FirmwareSchema")
	}
	return s.objectOf(ctx, settings.Status.FirmwareSchema.Name, o)
}

// contains waits until an object that read reads has all fields of a text.
func (s *scenario) contains(ctx context.Context, text *godog.DocString, o client.Object, read func(context.Context) error) error {
	var want map[string]any
	named := strings.NewReplacer("SERVER", s.server.Name, "NAMESPACE", lab.Namespace)
	if err := yaml.UnmarshalStrict([]byte(named.Replace(text.Content)), &want); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	if len(want) == 0 {
		return errors.New("the step's YAML has no field")
	}
	last := "never read"
	return eventually(ctx, "the object has these fields", func(ctx context.Context) (bool, string, error) {
		if err := read(ctx); err != nil {
			return false, last + "; " + err.Error(), nil
		}
		kind, err := s.kube.GroupVersionKindFor(o) // a typed client leaves it out
		if err != nil {
			return false, "", err
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
		got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return false, "", err
		}
		last = missing("", want, got)
		return last == "", last, nil
	})
}

// missing returns the first difference of an object from what it must contain, by its
// path; "" if there is none. Objects may have more fields, lists must be as long.
func missing(path string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, not an object", path, got)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			value, ok := object[name]
			if !ok {
				return path + "." + name + " is missing"
			}
			if lacks := missing(path+"."+name, want[name], value); lacks != "" {
				return lacks
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range want {
			if lacks := missing(fmt.Sprintf("%s[%d]", path, i), want[i], list[i]); lacks != "" {
				return lacks
			}
		}
	default:
		// A number is of another Go type in YAML than in an object.
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
	}
	return ""
}
