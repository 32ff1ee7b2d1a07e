package machineconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Files of the daemon. The names of currentconfig and currentimage are upstream's.
const (
	stateDir    = "/etc/machine-config-daemon"
	configState = stateDir + "/currentconfig"
	imageState  = stateDir + "/currentimage"
	updateState = stateDir + "/update.json"
	originals   = stateDir + "/orig"
)

// phase is how far an update is.
type phase string

// The phases, in their order.
const (
	draining  phase = "Draining"  // nothing has changed
	applying  phase = "Applying"  // files, units and the next root may have changed
	booting   phase = "Booting"   // all is written: the next boot has it
	finishing phase = "Finishing" // all is written, and no boot is needed
)

// update is an update that has begun. It is stored before each side effect, so that a daemon
// that is started again goes on with it.
type update struct {
	Config json.RawMessage // the MachineConfig
	Image  string          // that the annotations named; "" is not layered
	Root   string          // the image to boot; "" is that of the installation
	Skip   bool            // the image is the only carrier of files and units
	Forced bool            // by ForceFile
	Phase  phase
	Since  time.Time // the drain was requested
	Boot   string    // ID of the boot that requested the reboot
	// Abandoned are files of targets that were given up, which may be on disk.
	Abandoned []string
	Drained   bool // the plan needs a drain
	Again     bool // files were lost with the root before, and are written once more
}

// onDisk is the node's configuration by its own records.
type onDisk struct {
	config *content
	image  string
	update *update // nil: none has begun
}

func (d *daemon) readState() (s onDisk, err error) {
	s.config = none()
	raw, err := d.System.ReadFile(configState)
	switch {
	case err == nil:
		if s.config, err = d.parsed.content(raw); err != nil {
			return s, fmt.Errorf("%s: %w", configState, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return s, err
	}
	image, err := d.System.ReadFile(imageState)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.image = strings.TrimSpace(string(image))
	b, err := d.System.ReadFile(updateState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.update = &update{}
	if err := json.Unmarshal(b, s.update); err != nil {
		return s, fmt.Errorf("%s: %w: remove it, and the update begins again", updateState, err)
	}
	return s, nil
}

// record stores an update before its next side effect.
func (d *daemon) record(u *update) error {
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return d.System.Put(sys.File{Name: updateState, Mode: 0o600, Content: b})
}

// commit makes the configuration of an update the current one.
func (d *daemon) commit(u *update) error {
	return d.System.Put(
		sys.File{Name: imageState, Mode: 0o644, Content: []byte(u.Image + "\n")},
		sys.File{Name: configState, Mode: 0o600, Content: u.Config},
	)
}

// original is where the daemon stores a file that was there before a configuration had it.
func original(name string) string { return path.Join(originals, name) + ".mcdorig" }

// absent records that no file was there.
func absent(name string) string { return path.Join(originals, name) + ".mcdnoorig" }
