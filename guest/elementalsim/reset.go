package elementalsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/disk"
	"github.com/metalab-dev/metalab/agent/plugin/inventory"
)

// services are those that a bootstrap may have started, in the order in which they are stopped.
var services = []string{"k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service", "kubelet.service", "lab-agent-node.service"}

// TriggerReset implements elemental.Plugin: it writes needs.reset, prepares the host, removes
// needs.reset and starts the agent with the command reset.
func (p *plugin) TriggerReset(ctx context.Context) error {
	if err := p.Dummy.TriggerReset(ctx); err != nil {
		return err
	}
	for _, name := range services {
		if _, err := p.System.ReadFile("/etc/systemd/system/" + name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := p.exec(ctx, "systemctl", "stop", name); err != nil {
			return err
		}
	}
	if err := p.System.Remove(
		elemental.CloudConfigFile, elemental.IgnitionFile, elemental.SentinelFile, p.Path(appliedFile), p.Path(versionFile),
		p.Path(elemental.NeedsResetFile), p.Path(elemental.ResetNeededFile),
	); err != nil {
		return err
	}
	return p.exec(ctx, "systemctl", "start", "--no-block", ResetUnit)
}

// FinishReset implements elemental.Finisher: it erases the disk that Install has written, so that
// the next boot is from the medium with which the server has registered.
func (p *plugin) FinishReset(ctx context.Context) error {
	b, err := p.System.ReadFile(p.Path(deviceFile))
	if errors.Is(err, fs.ErrNotExist) { // the system is no installed one
		return nil
	}
	if err != nil {
		return err
	}
	name := strings.TrimSpace(string(b))
	hardware, err := inventory.Collect(ctx, p.c.Devices)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(hardware.Disks, func(d job.Disk) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("%s: no such disk", name)
	}
	_, err = disk.Erase(ctx, p.c.Devices, hardware.Disks[i:i+1], job.EraseMetadata, nil)
	return err
}
