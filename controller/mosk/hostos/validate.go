package hostos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// facts are all that the validation of a HostOSConfiguration depends on.
type facts struct {
	object  *kaasv1.HostOSConfiguration
	modules []kaasv1.HostOSConfigurationModules // in the order of byAge
	secrets map[kaasv1.SecretReference]*secret  // Secrets of the references with a namespace; nil: the Secret does not exist
	others  []kaasv1.HostOSConfiguration        // HostOSConfigurations of the same namespace
}

// secret is a Secret with values.
type secret struct {
	version     string // resourceVersion
	dataVersion string // see secretVersions
	data        map[string][]byte
}

// validate returns the results of the configs. It is pure.
func validate(f facts) []kaasv1.ConfigStatus {
	taken := names(f)
	_, timeoutErr := item.Timeout(f.object.Annotations)
	_, selectorErr := metav1.LabelSelectorAsSelector(&f.object.Spec.MachineSelector)
	var out []kaasv1.ConfigStatus
	for _, c := range f.object.Spec.Configs {
		s := kaasv1.ConfigStatus{ModuleName: c.Module, ModuleVersion: c.ModuleVersion}
		m, err := find(f.modules, c, &s)
		if err == nil {
			err = validateValues(f, c, m, &s)
		}
		for _, name := range itemNames(f.object.Name, c) {
			if err == nil && taken[name] != "" {
				err = fmt.Errorf("another config has the state item %s: %s", name, taken[name])
			}
		}
		if err == nil && selectorErr != nil { // no field of the status is for it
			err = fmt.Errorf("machineSelector: %w", selectorErr)
		}
		if err == nil {
			err = timeoutErr
		}
		if err != nil {
			s.Error = short(err.Error())
		} else { // against two configs of one object
			for _, name := range itemNames(f.object.Name, c) {
				taken[name] = "remove this config, or use another module or version"
			}
		}
		out = append(out, s)
	}
	return out
}

// find returns the module of a config, and adds the module's fields to s. The first list that
// offers the module says which content it has: machines that have it run no other under the
// same version. Of lists with this content, one that has loaded it takes precedence.
func find(all []kaasv1.HostOSConfigurationModules, c kaasv1.Config, s *kaasv1.ConfigStatus) (*kaasv1.ModuleStatus, error) {
	var failed error
	var first *kaasv1.Module
	for _, o := range all {
		listed := slices.IndexFunc(o.Spec.Modules, sameModule(kaasv1.Module{Name: c.Module, Version: c.ModuleVersion}))
		if listed < 0 || !o.DeletionTimestamp.IsZero() {
			continue
		}
		if first == nil {
			first = &o.Spec.Modules[listed]
		} else if first.SHA256Sum != o.Spec.Modules[listed].SHA256Sum {
			continue
		}
		i := slices.IndexFunc(o.Status.Modules, func(m kaasv1.ModuleStatus) bool { return m.Name == c.Module && m.Version == c.ModuleVersion })
		switch {
		case i < 0:
			failed = fmt.Errorf("module %s %s of HostOSConfigurationModules %s is not loaded yet", c.Module, c.ModuleVersion, o.Name)
			continue
		case o.Status.Modules[i].State == kaasv1.ModuleError:
			failed = fmt.Errorf("module %s %s of HostOSConfigurationModules %s cannot be used: %s", c.Module, c.ModuleVersion, o.Name, o.Status.Modules[i].Error)
			continue
		}
		m := &o.Status.Modules[i]
		s.ModulesReference, s.ModulePlaybook, s.ModuleURL, s.ModuleHashsum = o.Name, m.PlaybookName, m.URL, m.SHA256Sum
		s.ModuleDeprecatedBy, s.SupportedDistributions = m.DeprecatedBy, m.SupportedDistributions
		return m, nil
	}
	if failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("no HostOSConfigurationModules has module %s %s: add it to one, or correct name or version", c.Module, c.ModuleVersion)
}

// validateValues validates the values of a config, with those of its Secret, against the
// module's schema. No error has a value in it.
func validateValues(f facts, c kaasv1.Config, m *kaasv1.ModuleStatus, s *kaasv1.ConfigStatus) error {
	var values map[string]any
	if c.Values != nil {
		if err := json.Unmarshal(c.Values.Raw, &values); err != nil {
			return fmt.Errorf("values are not an object of JSON")
		}
	}
	var schema *module.Schema
	if len(m.ValuesValidationSchema) > 0 {
		var err error
		if schema, err = module.ParseSchema(m.ValuesValidationSchema); err != nil {
			return fmt.Errorf("schema of module %s %s: %w", c.Module, c.ModuleVersion, err)
		}
	}
	if c.SecretValues != nil {
		ref := located(*c.SecretValues, f.object.Namespace)
		if ref.Namespace != f.object.Namespace {
			return fmt.Errorf("secretValues.namespace: Secret %s is in the namespace %q, and agents read those of %q alone: copy it there", ref.Name, ref.Namespace, f.object.Namespace)
		}
		from := f.secrets[ref]
		if from == nil {
			return fmt.Errorf("secretValues: Secret %s/%s does not exist: create it, or correct the reference", ref.Namespace, ref.Name)
		}
		s.SecretObjectVersion, s.SecretDataVersion = from.version, from.dataVersion
		values = schema.Merge(values, from.data)
	}
	if schema == nil {
		return nil
	}
	if values == nil {
		values = map[string]any{}
	}
	return schema.Validate(values)
}

// located returns a reference with its namespace.
func located(ref kaasv1.SecretReference, namespace string) kaasv1.SecretReference {
	if ref.Namespace == "" {
		ref.Namespace = namespace
	}
	return ref
}

// itemNames returns the names of the state items of a config. Two objects can collide: the
// download of object a is named host-os-download-a-…, and so is the playbook of object
// download-a.
func itemNames(configuration string, c kaasv1.Config) (out []string) {
	for _, it := range item.HostOS(configuration, string(c.Module), string(c.ModuleVersion), lcmv1.PhaseReconfigure) {
		out = append(out, it.Name)
	}
	return out
}

// names returns the names of state items that belong to other objects, each with the fix.
func names(f facts) map[string]string {
	out := map[string]string{}
	for _, o := range f.others {
		if o.UID == f.object.UID || !precedes(&o, f.object) {
			continue
		}
		for _, c := range o.Spec.Configs {
			for _, name := range itemNames(o.Name, c) {
				out[name] = fmt.Sprintf("HostOSConfiguration %s has it: give this object another name", o.Name)
			}
		}
	}
	return out
}

// precedes reports whether a takes precedence over b when both have a name: the older object
// does. Creation times have a resolution of a second; within one second the valid object takes
// precedence, then the first by name.
func precedes(a, b *kaasv1.HostOSConfiguration) bool {
	switch {
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	case valid(a) != valid(b):
		return valid(a)
	}
	return strings.Compare(a.Name, b.Name) < 0
}
