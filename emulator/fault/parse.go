package fault

import (
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// Parse reads a YAML list of rules, as it stands below "faults:" in a rack file.
// The error joins a yamlfile.Error for each mistake, with file, line and field.
func Parse(file string, data []byte) ([]Rule, error) {
	f, err := yamlfile.Read(file, data, "- status: 503")
	if err != nil {
		return nil, err
	}
	var rules []Rule
	if err := f.Decode(&rules); err != nil {
		return nil, err
	}
	if err := f.Locate(errors.Join(Problems(f, "", rules)...)); err != nil {
		return nil, err
	}
	return rules, nil
}

// Problems lists the mistakes in the rules of a list, each as a yamlfile.Error. list
// is the field that the list is, or "" for the whole file. f is the file, or nil for
// rules that came from none.
func Problems(f *yamlfile.File, list string, rules []Rule) (out []error) {
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", list, i)
		for _, p := range r.Problems() {
			p.Field = yamlfile.Within(at, p.Field)
			out = append(out, p)
		}
		// Only the file tells a probability of 0 from none.
		if field := at + ".probability"; f != nil && r.Probability == 0 && f.Has(field) {
			out = append(out, yamlfile.Errorf(field, "0: must be above 0 and at most 1"))
		}
	}
	return out
}
