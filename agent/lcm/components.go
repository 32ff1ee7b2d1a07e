package lcm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// maxComponents is how many bytes item.ComponentsFile may have.
const maxComponents = 4 << 10

// components returns the versions that items have noted on the server; none without a file.
func (a *agent) components() (out lcmv1.Components, err error) {
	b, err := a.System.ReadFile(item.ComponentsFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case err != nil:
		return out, fmt.Errorf("lcm: components: %w", err)
	case len(b) > maxComponents:
		return out, fmt.Errorf("lcm: components: %s has %d bytes: write at most %d", item.ComponentsFile, len(b), maxComponents)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return lcmv1.Components{}, fmt.Errorf(`lcm: components: %s: write JSON like {"ucpVersion": "3.7.1"}: %w`, item.ComponentsFile, err)
	}
	return out, nil
}
