package yamlfile

import (
	"reflect"
	"strings"
	"unicode"
)

// irregularKeys has the keys that do not follow from the names of Go fields by
// Key's rule.
var irregularKeys = map[string]string{
	"ETags": "etags", "IDsOnly": "idsOnly", "NICs": "nics", "NICsRenumberAtBoot": "nicsRenumberAtBoot",
}

// Key returns the key of a struct field in a file: the name in its json tag if it
// has one, else its Go name with the first word in lower case: systemID for
// SystemID, bmc for BMC. It is empty for fields that a file cannot have, which
// are functions and those with the tag "-".
func Key(f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case !f.IsExported() || f.Type.Kind() == reflect.Func || tag == "-":
		return ""
	case tag != "":
		return tag
	case irregularKeys[f.Name] != "":
		return irregularKeys[f.Name]
	}
	runes := []rune(f.Name)
	n := 0
	for n < len(runes) && unicode.IsUpper(runes[n]) {
		n++
	}
	if n > 1 && n < len(runes) {
		n-- // the next word's first letter
	}
	for i := range n {
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

// Keys lists the keys of a struct type in the order of its fields.
func Keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if key := Key(t.Field(i)); key != "" {
			out = append(out, key)
		}
	}
	return out
}

func fieldOf(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if Key(v.Type().Field(i)) == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}
