package cloudinit

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// vendor is a kind of vendor data. OpenStack has static ones and dynamic ones, which count more.
type vendor struct{ of, key, file string }

var (
	staticVendor  = vendor{"the vendor data", "vendor_data", "vendor_data.json"}
	dynamicVendor = vendor{"the second vendor data", "vendor_data2", "vendor_data2.json"}
)

// parts returns the parts of vendor data, unless the user data switch them off: vendor_data.enabled,
// and disabled_handlers, which lists MIME types (cloud-init, "Vendor-data").
func (v vendor) parts(i Instance, data []byte, user document, r *Result) (out []part) {
	enabled, disabled := true, []string{}
	if n := user[v.key]; n != nil {
		delete(user, v.key)
		if n.Kind != yaml.MappingNode {
			r.ignore("%s are not applied: %s: line %d: it is no mapping", v.of, v.key, n.Line)
			return nil
		}
		for k := 0; k+1 < len(n.Content); k += 2 {
			switch key, value := n.Content[k].Value, n.Content[k+1]; key {
			case "enabled":
				enabled = isTrue(value)
			case "disabled_handlers":
				disabled = scalars(value)
			default:
				r.ignore("%s: %s is not applied: there is no such setting here", v.key, key)
			}
		}
	}
	if !enabled {
		return nil
	}
	texts := [][]byte{data}
	if i.Source == ConfigDrive && len(data) > 0 {
		var err error
		if texts, err = vendorTexts(data); err != nil {
			r.ignore("%s are not applied: %s: %v", v.of, v.file, err)
		}
	}
	for _, t := range texts {
		out = append(out, partsOf(t, v.of, r)...)
	}
	return slices.DeleteFunc(out, func(p part) bool { return slices.Contains(disabled, p.kind) })
}

// vendorTexts returns the user data that a file of vendor data of a config drive has: a text, a list of
// texts, or a mapping with one of them as cloud-init.
func vendorTexts(b []byte) (out [][]byte, err error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	if d, ok := v.(dict); ok {
		if v = d["cloud-init"]; v == nil {
			return nil, nil
		}
	}
	switch v := v.(type) {
	case nil:
	case string:
		out = append(out, []byte(v))
	case []any:
		for n, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("entry %d is no text", n+1)
			}
			out = append(out, []byte(s))
		}
	default:
		return nil, fmt.Errorf("it is no text, list, or mapping with cloud-init")
	}
	return out, nil
}
