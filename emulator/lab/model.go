package lab

import (
	"fmt"
	"io/fs"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// dialects are all that a profile can name.
var dialects = map[string]*dialect.Record{
	generic.Record.Name: &generic.Record,
}

// model is a profile and how its BMC speaks. All hosts of a profile share it.
type model struct {
	profile *machine.Profile
	record  *dialect.Record
}

// loadModels reads the profiles that the groups name.
func loadModels(from fs.FS, groups []rack.Group) (map[string]model, error) {
	models := map[string]model{}
	for i, g := range groups {
		if _, ok := models[g.Profile]; ok {
			continue
		}
		file := "profiles/" + g.Profile + ".yaml"
		b, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, fmt.Errorf("lab: hosts[%d].profile: %s: there is no such profile: %w", i, g.Profile, err)
		}
		p, err := machine.ParseProfile(b)
		if err != nil {
			return nil, fmt.Errorf("lab: %s: %w", file, err)
		}
		if p.Name != g.Profile {
			return nil, fmt.Errorf("lab: %s: name: %q: must be %s, as the file", file, p.Name, g.Profile)
		}
		r, ok := dialects[p.Dialect]
		if !ok {
			return nil, fmt.Errorf("lab: %s: dialect: there is no %q", file, p.Dialect)
		}
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("lab: %s: %w", file, err)
		}
		models[g.Profile] = model{profile: p, record: r}
	}
	return models, nil
}
