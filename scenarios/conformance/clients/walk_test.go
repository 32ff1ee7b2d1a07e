package clients

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/scenarios/sample"
)

// TestGofishReadsEveryModel follows every link for which gofish has a method; none
// may return an error.
func TestGofishReadsEveryModel(t *testing.T) {
	for _, profile := range sample.Rows(t, "the models that gofish reads", modelsPerClient, profiles(t)) {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, profile)
			w := &walk{testServer: b, seen: map[string]bool{}}
			w.read(reflect.ValueOf(connectGofish(b).Service))
			d := b.server.Dialect()
			for _, of := range []string{"/redfish/v1/Systems/" + d.SystemID, "/redfish/v1/Managers/" + d.ManagerID, "/redfish/v1/Chassis/" + d.ChassisID} {
				if !slices.ContainsFunc(w.uris, func(uri string) bool { return strings.TrimSuffix(uri, "/") == of }) {
					t.Errorf("gofish has not reached %s", of)
				}
			}
			if len(w.uris) < 50 {
				t.Errorf("gofish has reached %d resources alone: %q", len(w.uris), w.uris)
			}
			for what := range w.faults {
				t.Error(what)
			}
		})
	}
}

// walk calls every method of gofish's resources that reads other resources.
type walk struct {
	*testServer
	seen   map[string]bool
	uris   []string
	faults map[string]bool
}

var entity = reflect.TypeFor[schemas.Entity]()

// isEntity reports whether a type is a pointer to a resource.
func isEntity(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	f, ok := t.Elem().FieldByName("Entity")
	return ok && f.Type == entity
}

func (w *walk) read(v reflect.Value) {
	if v.IsNil() {
		return
	}
	uri := v.Elem().FieldByName("ODataID").String()
	key := v.Type().String() + " " + uri
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	if !slices.Contains(w.uris, uri) {
		w.uris = append(w.uris, uri)
	}
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if m.Type().NumIn() != 0 || m.Type().NumOut() != 2 {
			continue
		}
		out := m.Type().Out(0)
		many := out.Kind() == reflect.Slice && isEntity(out.Elem())
		if !many && !isEntity(out) || name == "JSONSchemas" { // gofish 0.22 takes a Location for an object, which the schema says is an array
			continue
		}
		found := m.Call(nil)
		if err, _ := found[1].Interface().(error); err != nil {
			// gofish returns this for actions that a resource does not have.
			if !strings.HasSuffix(name, "ActionInfo") || !strings.Contains(err.Error(), "not supported") {
				if w.faults == nil {
					w.faults = map[string]bool{}
				}
				w.faults[fmt.Sprintf("%s.%s of %s: %v", v.Type().Elem().Name(), name, uri, err)] = true
			}
			continue
		}
		if !many {
			w.read(found[0])
			continue
		}
		for i := range found[0].Len() {
			w.read(found[0].Index(i))
		}
	}
}
