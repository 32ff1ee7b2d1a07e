package rack

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/fixtures"
)

// FirmwareFor returns the header of a firmware image that fits a component of a
// server model, without its version. Nil profiles means the built-in ones.
// firmware.BuildImage makes an image of it.
func FirmwareFor(profiles fs.FS, profile, component string) (firmware.Image, error) {
	if profiles == nil {
		profiles = fixtures.Profiles
	}
	raw, err := fs.ReadFile(profiles, "profiles/"+profile+".yaml")
	if err != nil {
		return firmware.Image{}, fmt.Errorf("profile %s: %w", profile, err)
	}
	p, err := machine.ParseProfile("profiles/"+profile+".yaml", raw)
	if err != nil {
		return firmware.Image{}, err
	}
	if err := p.Equip(func(name string) ([]byte, error) { return readRegistry(profiles, name) }); err != nil {
		return firmware.Image{}, fmt.Errorf("profile %s: %w", profile, err)
	}
	var known []string
	for _, c := range p.Firmware.Model.Components {
		if strings.EqualFold(c.ID, component) {
			return firmware.Image{Kind: c.Kind, Vendor: c.Vendor, Model: c.Model}, nil
		}
		known = append(known, c.ID)
	}
	return firmware.Image{}, fmt.Errorf("profile %s: component %q: must be one of %s", profile, component, strings.Join(known, ", "))
}
