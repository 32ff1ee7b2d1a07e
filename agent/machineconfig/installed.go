package machineconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/metalab-dev/metalab/agent/sys"
)

// installedState has the storage that the node was installed with, from the first update on in
// which an override let a configuration differ from it.
const installedState = stateDir + "/installed-storage.json"

// keepInstalled stores the storage of a configuration as that of the installation, before the
// node takes one with another.
func (d *daemon) keepInstalled(was, next *content) error {
	for _, p := range irreconcilable {
		if p.override == "" || !p.differs(was.ignition, next.ignition) {
			continue
		}
		if there, err := d.exists(installedState); there || err != nil {
			return err
		}
		s := was.ignition.Storage
		b, err := json.Marshal(types.Storage{Disks: s.Disks, Filesystems: s.Filesystems, Raid: s.Raid})
		if err != nil {
			return err
		}
		return d.System.Put(sys.File{Name: installedState, Mode: 0o600, Content: b})
	}
	return nil
}

// maxDiff is how many bytes the difference in a section has, by the definition of
// MachineConfigNode.
const maxDiff = 4096

// unapplied returns the sections of a configuration that differ from the installation of the
// node: no update applies them.
func (d *daemon) unapplied(current *content) (out []mcv1.IrreconcilableChangeDiff, err error) {
	b, err := d.System.ReadFile(installedState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var installed types.Config
	if err := json.Unmarshal(b, &installed.Storage); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and no difference is reported", installedState, err)
	}
	for _, p := range irreconcilable {
		if p.override == "" || !p.differs(installed, current.ignition) {
			continue
		}
		before, err := json.Marshal(p.value(installed))
		if err != nil {
			return nil, err
		}
		after, err := json.Marshal(p.value(current.ignition))
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("-%s\n+%s", before, after)
		if len(text) > maxDiff {
			text = strings.ToValidUTF8(text[:maxDiff], "") // the cut may be within a character
		}
		out = append(out, mcv1.IrreconcilableChangeDiff{FieldPath: "spec.config.storage." + p.name, Diff: text})
	}
	return out, nil
}
