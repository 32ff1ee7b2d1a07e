package cloudinit

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// vendorParts returns the parts of the vendor data, unless the user data switch them off:
// vendor_data.enabled, and disabled_handlers, which lists MIME types (cloud-init, "Vendor-data").
func vendorParts(i Instance, user document, r *Result) (out []part) {
	enabled, disabled := true, []string{}
	if n := user["vendor_data"]; n != nil {
		delete(user, "vendor_data")
		if n.Kind != yaml.MappingNode {
			r.ignore("the vendor data are not applied: vendor_data: line %d: it is no mapping", n.Line)
			return nil
		}
		for k := 0; k+1 < len(n.Content); k += 2 {
			switch key, v := n.Content[k].Value, n.Content[k+1]; key {
			case "enabled":
				enabled = isTrue(v)
			case "disabled_handlers":
				disabled = scalars(v)
			default:
				r.ignore("vendor_data: %s is not applied: there is no such setting here", key)
			}
		}
	}
	if !enabled {
		return nil
	}
	const of = "the vendor data"
	texts := [][]byte{i.VendorData}
	if i.Source == ConfigDrive && len(i.VendorData) > 0 {
		var err error
		if texts, err = vendorTexts(i.VendorData); err != nil {
			r.ignore("%s are not applied: vendor_data.json: %v", of, err)
		}
	}
	for _, t := range texts {
		out = append(out, partsOf(t, of, r)...)
	}
	return slices.DeleteFunc(out, func(p part) bool { return slices.Contains(disabled, p.kind) })
}

// vendorTexts returns the user data that vendor_data.json of a config drive has: a text, a list of
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
