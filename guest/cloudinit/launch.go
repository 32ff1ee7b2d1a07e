package cloudinit

import (
	"slices"
	"strconv"
	"strings"
)

// launched leaves out the parts of user data that are for another server of those that were launched
// together: launch-index of the metadata says which this one is, and the header Launch-Index, or the
// key launch-index of a cloud-config, for which one a part is (cloud-init, "launch-index"). A part that
// names none is for all. OpenStack writes launch_index, which cloud-init does not look at.
func (i Instance) launched(parts []part) []part {
	wanted, is := wholeNumber(i.MetaData["launch-index"])
	if !is {
		return parts
	}
	return slices.DeleteFunc(parts, func(p part) bool {
		if p.launch != "" {
			n, is := wholeNumber(p.launch)
			return !is || n != wanted
		}
		if p.kind != cloudConfig {
			return false
		}
		v, err := parseYAML(p.content)
		if err != nil {
			return false // it is reported when it is merged
		}
		doc, _ := v.(dict)
		n, is := wholeNumber(doc["launch-index"])
		return is && n != wanted
	})
}

// wholeNumber returns a value as Python's int does.
func wholeNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	case bool:
		return map[bool]int64{true: 1}[v], true
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}
