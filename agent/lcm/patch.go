package lcm

import (
	"encoding/json"
	"reflect"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// statusPatch returns the merge patch (RFC 7386) that makes one status another; empty if
// they are equal. It has only the fields that differ: others are those of controllers.
func statusPatch(from, to lcmv1.LCMMachineStatus) (map[string]any, error) {
	a, err := fields(from)
	if err != nil {
		return nil, err
	}
	b, err := fields(to)
	if err != nil {
		return nil, err
	}
	return mergePatch(a, b), nil
}

func fields(s lcmv1.LCMMachineStatus) (map[string]any, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(b, &out)
}

func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range to {
		old, there := from[name]
		a, wasObject := old.(map[string]any)
		b, isObject := value.(map[string]any)
		switch {
		case there && wasObject && isObject:
			if below := mergePatch(a, b); len(below) > 0 {
				patch[name] = below
			}
		case !there || !reflect.DeepEqual(old, value):
			patch[name] = value
		}
	}
	for name := range from {
		if _, there := to[name]; !there {
			patch[name] = nil
		}
	}
	return patch
}
