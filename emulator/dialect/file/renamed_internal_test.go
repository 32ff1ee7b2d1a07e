package file

import (
	"reflect"
	"slices"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

func TestRenamedKeysLeadToKeysThatExist(t *testing.T) {
	keys := map[string][]string{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()) {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || keys[of.String()] != nil {
			return
		}
		keys[of.String()] = yamlfile.Keys(of)
		for i := range of.NumField() {
			if yamlfile.Key(of.Field(i)) != "" {
				walk(of.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[dialect.Record]())
	for name, renamed := range renamedKeys {
		for before, now := range renamed {
			if slices.Contains(keys[name], before) || !slices.Contains(keys[name], now) {
				t.Errorf("%s: %s is now called %s: the keys are %v", name, before, now, keys[name])
			}
		}
	}
}
