package unapplied

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
)

// specs returns the type of the spec of each kind of the family.
func specs(t *testing.T) map[string]reflect.Type {
	t.Helper()
	s := runtime.NewScheme()
	out := map[string]reflect.Type{}
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, hostprofilev1.AddToScheme, ipamv1.AddToScheme, kaasv1.AddToScheme, lcmv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for gvk, kind := range s.AllKnownTypes() {
		if spec, ok := kind.FieldByName("Spec"); ok && strings.Contains(kind.PkgPath(), "/controller/api/") && gvk.Version != runtime.APIVersionInternal {
			out[gvk.Kind] = spec.Type
		}
	}
	return out
}

// walk calls leaf with each field of a type, as Fields names it, and the field's name in Go. A type
// of another module is one field, and so is a map.
func walk(path, name string, t reflect.Type, leaf func(path, name string)) {
	ours := func(t reflect.Type) bool {
		return t.Kind() == reflect.Struct && strings.Contains(t.PkgPath(), "/controller/api/")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice && ours(t.Elem()) {
		path, t = path+"[]", t.Elem()
	}
	if !ours(t) {
		leaf(path, name)
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		json, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if json != "" && json != "-" { // else the apiVersion and kind of the provider's part
			walk(path+"."+json, f.Name, f.Type, leaf)
		}
	}
}

// covers reports whether a row of Fields is that of a field, or of one above it.
func covers(row, field string) bool {
	rest, ok := strings.CutPrefix(field, row)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Each field of each kind has an effect, which a package has that uses the field, or is one that
// nothing acts on; and each row is that of a field.
func TestEachFieldHasAnEffectOrIsListed(t *testing.T) {
	used := map[string]string{} // sources of packages
	sources := func(dir string) string {
		if text, ok := used[dir]; ok {
			return text
		}
		files, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("no package %s: %v", dir, err)
		}
		var all strings.Builder
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "zz_generated") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		used[dir] = all.String()
		return used[dir]
	}
	all := specs(t)
	for kind, spec := range all {
		left := maps.Clone(effects[kind])
		unused := slices.Clone(Fields[kind])
		walk("spec", "Spec", spec, func(path, name string) {
			effect, acted := left[path]
			delete(left, path)
			listed := slices.ContainsFunc(Fields[kind], func(row string) bool { return covers(row, path) })
			unused = slices.DeleteFunc(unused, func(row string) bool { return covers(row, path) })
			switch {
			case listed == acted:
				t.Errorf("%s %s: give it a row in effects, of what acts on it, or one in Fields, if nothing does (%t, %t)", kind, path, acted, listed)
			case !acted, effect == note, effect == mirror:
			case !regexp.MustCompile(`\b` + name + `\b`).MatchString(sources(effect)):
				t.Errorf("%s %s: %s does not use %s", kind, path, effect, name)
			}
		})
		for path := range left {
			t.Errorf("%s %s: there is no such field: remove its row from effects", kind, path)
		}
		for _, path := range unused {
			t.Errorf("%s %s: there is no such field: remove it from Fields", kind, path)
		}
	}
	for _, kind := range slices.Concat(slices.Collect(maps.Keys(effects)), slices.Collect(maps.Keys(Fields))) {
		if all[kind] == nil {
			t.Errorf("there is no kind %s", kind)
		}
	}
}

// nested returns an object whose field at a path has a value.
func nested(names []string) any {
	if len(names) == 0 {
		return "set"
	}
	if name, list := strings.CutSuffix(names[0], "[]"); list {
		return map[string]any{name: []any{map[string]any{}, nested(names[1:])}}
	}
	return map[string]any{names[0]: nested(names[1:])}
}

// The API reports a field that nothing acts on: by the condition of the object's kind, or by
// the warning that the API gives.
func TestEachFieldOfTheTableIsFound(t *testing.T) {
	for kind, fields := range Fields {
		for _, field := range fields {
			o := nested(strings.Split(field, "."))
			if got := Set(kind, o); !slices.Equal(got, []string{field}) {
				t.Errorf("%s: Set(%v) = %q, want %q", kind, o, got, field)
			}
			if c := Condition(kind, o); c == nil || c.Type != "NotApplied" || !c.Ready || c.Message != "nothing acts on "+field {
				t.Errorf("%s: Condition(%v) = %+v", kind, o, c)
			}
		}
	}
}

// The webhook that warns is for all kinds of the table, and for no others.
func TestWebhookHasTheKindsOfTheTable(t *testing.T) {
	hook, err := config.Webhook("fields.yaml", "https://192.0.2.1", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range hook.Webhooks[0].Rules {
		got = append(got, r.Resources...)
	}
	var want []string
	for kind := range Fields {
		want = append(want, plural(kind))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(want, got) {
		t.Errorf("the webhook is for %q, want %q", got, want)
	}
	for _, field := range Fields["LCMMachine"] {
		if name := strings.TrimPrefix(field, "spec."); !strings.Contains(hook.Webhooks[0].MatchConditions[1].Expression, "'"+name+"'") {
			t.Errorf("the webhook is not for LCMMachines with %s", field)
		}
	}
}

// plural returns the resource of a kind.
func plural(kind string) string {
	name := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(name, "xy"); ok {
		return stem + "xies"
	}
	return name + "s"
}
