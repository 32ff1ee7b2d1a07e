package elemental

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Files of the dummy plugin in the work directory (the provider's document "Dummy Plugin").
const (
	CloudInitFile = "cloud-init.yaml"
	InstallFile   = "install.yaml"
	OSVersionFile = "os-version.yaml"
	ResetFile     = "reset.yaml"
	// NeedsResetFile is there between the trigger of a reset and the end of its preparation.
	NeedsResetFile = "needs.reset"
	// ResetNeededFile is the name that version 0.7.0 of the provider's dummy gives it, which
	// counts, too.
	ResetNeededFile = "reset.needed"
)

// Files of the bootstrap configuration, by its format.
const (
	CloudConfigFile = "/etc/cloud/cloud.cfg.d/elemental-capi-bootstrap.cfg"
	IgnitionFile    = "/usr/local/bin/ignition/data/elemental-capi-bootstrap.conf"

	// FormatCloudConfig and FormatIgnition are the formats of bootstrap configurations.
	FormatCloudConfig = "cloud-config"
	FormatIgnition    = "ignition"
)

// BootstrapFiles are the files of bootstrap configurations by their formats.
var BootstrapFiles = map[string]string{FormatCloudConfig: CloudConfigFile, FormatIgnition: IgnitionFile}

// Modes of files. The provider's document gives none; the key and the configurations hold
// secrets.
const (
	keyMode    = 0o600
	configMode = 0o640
	secretMode = 0o600
	dumpMode   = 0o644
)

// Dummy is the plugin that writes what it gets to files, and leaves the rest to automation that
// waits for these files.
type Dummy struct {
	System System
	// CompatReset writes reset.yaml before it looks for needs.reset, as version 0.7.0 of the
	// provider does. Its document has the other order, in which a host that is not prepared
	// gets no reset.yaml.
	CompatReset bool

	context PluginContext
}

// Init implements Plugin.
func (d *Dummy) Init(_ context.Context, c PluginContext) error {
	d.context = c
	return d.System.Put(sys.File{Name: c.WorkDir, Mode: fs.ModeDir | 0o755})
}

// Path returns the path of a file in the work directory.
func (d *Dummy) Path(name string) string { return path.Join(d.context.WorkDir, name) }

// GetHostname implements Plugin: it returns the static host name.
func (d *Dummy) GetHostname(context.Context) (string, error) {
	for _, name := range []string{"/etc/hostname", "/proc/sys/kernel/hostname"} {
		b, err := d.System.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("host name: %w", err)
		}
		if text := strings.TrimSpace(string(b)); text != "" {
			return text, nil
		}
	}
	return "", errors.New("host name: /etc/hostname does not exist, or is empty")
}

// InstallHostname implements Plugin.
func (d *Dummy) InstallHostname(ctx context.Context, hostname string) error {
	if strings.Trim(strings.ToLower(hostname), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.HasPrefix(hostname, "-") || hostname == "" {
		return fmt.Errorf("%q: %w", hostname, errHostnameForbidden)
	}
	return run(ctx, d.System, "hostnamectl", "set-hostname", hostname)
}

// run runs a command; its error contains the command's output.
func run(ctx context.Context, s System, args ...string) error {
	var out bytes.Buffer
	code, err := s.Exec(ctx, sys.Command{Args: args, Stdout: &out, Stderr: &out})
	if err == nil && code != 0 {
		text := out.String()
		err = fmt.Errorf("it ended with code %d: %s", code, strings.TrimSpace(text[max(0, len(text)-maxError):]))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// InstallFile implements Plugin. The owner of all files is the superuser.
func (d *Dummy) InstallFile(_ context.Context, content []byte, name string, mode uint32, owner, group int) error {
	if owner != 0 || group != 0 {
		return fmt.Errorf("%s: owner %d:%d: the files of the agent are the superuser's", name, owner, group)
	}
	return d.System.Put(sys.File{Name: name, Mode: fs.FileMode(mode).Perm(), Content: content})
}

// toYAML returns JSON as YAML. Anything but an object or null is an error.
func toYAML(input []byte) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(input, &object); err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(input)
}

// dump writes JSON as YAML to a file of the work directory. A file that has this content is left
// alone.
func (d *Dummy) dump(name, head string, mode fs.FileMode, input []byte) error {
	text, err := toYAML(input)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	text = append([]byte(head), text...)
	if old, err := d.System.ReadFile(d.Path(name)); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return d.System.Put(sys.File{Name: d.Path(name), Mode: mode, Content: text})
}

// InstallCloudInit implements Plugin.
func (d *Dummy) InstallCloudInit(_ context.Context, input []byte) error {
	return d.dump(CloudInitFile, "#cloud-config\n", secretMode, input)
}

// Install implements Plugin.
func (d *Dummy) Install(_ context.Context, input []byte) error {
	return d.dump(InstallFile, "", dumpMode, input)
}

// Installed implements Installer: the system is installed once install.yaml exists.
func (d *Dummy) Installed(context.Context) (bool, error) { return d.exists(d.Path(InstallFile)) }

func (d *Dummy) exists(name string) (bool, error) {
	_, err := d.System.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Bootstrap implements Plugin.
func (d *Dummy) Bootstrap(_ context.Context, format string, input []byte) error {
	name, ok := BootstrapFiles[format]
	if !ok {
		return fmt.Errorf("%w %q: use %s or %s", ErrBootstrapFormat, format, FormatCloudConfig, FormatIgnition)
	}
	switch applied, err := d.exists(name); {
	case err != nil:
		return err
	case applied:
		return fmt.Errorf("%w: %s exists", ErrBootstrapApplied, name)
	}
	return d.System.Put(sys.File{Name: name, Mode: secretMode, Content: input})
}

// ReconcileOSVersion implements Plugin. It never demands a reboot.
func (d *Dummy) ReconcileOSVersion(_ context.Context, input []byte) (bool, error) {
	return false, d.dump(OSVersionFile, "", dumpMode, input)
}

// TriggerReset implements Plugin.
func (d *Dummy) TriggerReset(context.Context) error {
	if err := d.System.Put(sys.File{Name: d.Path(NeedsResetFile), Mode: dumpMode, Content: []byte("1\n")}); err != nil {
		return err
	}
	return d.System.Remove(d.Path(ResetNeededFile)) // one sentinel is enough for the automation
}

// Reset implements Plugin.
func (d *Dummy) Reset(_ context.Context, input []byte) error {
	steps := []func() error{d.prepared, func() error { return d.dump(ResetFile, "", dumpMode, input) }}
	if d.CompatReset {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, do := range steps {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// prepared returns an error while the host is not prepared for a reset.
func (d *Dummy) prepared() error {
	for _, name := range []string{NeedsResetFile, ResetNeededFile} {
		switch waits, err := d.exists(d.Path(name)); {
		case err != nil:
			return err
		case waits:
			return fmt.Errorf("%w: %s", ErrResetNotPrepared, d.Path(name))
		}
	}
	return nil
}

// PowerOff implements Plugin.
func (d *Dummy) PowerOff(ctx context.Context) error { return d.System.PowerOff(ctx) }

// Reboot implements Plugin.
func (d *Dummy) Reboot(ctx context.Context) error { return d.System.Reboot(ctx) }
