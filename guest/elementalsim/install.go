package elementalsim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/disk"
	"github.com/metalab-dev/metalab/agent/plugin/inventory"
	"github.com/metalab-dev/metalab/guest/cloudinit"
)

// instructions are the keys of install.yaml that the plugin reads. Others are for Elemental's
// toolkit.
type instructions struct {
	Device string `json:"device"` // /dev/sda; "" is the disk that provisioning takes without hints
	System struct {
		URI      string `json:"uri"`
		Checksum string `json:"checksum"` // or the URL of a file with checksums
	} `json:"system"`
}

// Units of the agent in the installed system. The first one runs at each boot, the plugin starts
// the other.
const (
	RunUnit   = "elemental-agent.service"
	ResetUnit = "elemental-agent-reset.service"
)

// unit returns the unit of a command of the agent.
func unit(verb, install string) string {
	return `[Unit]
Description=Elemental agent: ` + verb + `
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/lab-agent elemental ` + verb + `
Restart=on-failure
RestartSec=5
` + install
}

const wanted = "\n[Install]\nWantedBy=multi-user.target\n"

// SeedUnit is the unit of a medium that registers and installs the server that boots it.
const SeedUnit = "elemental-agent-register.service"

// Units returns the units of the agent by their names: those of an installed system, or that of
// a medium which registers servers.
func Units(seed bool) map[string]string {
	if seed {
		return map[string]string{SeedUnit: unit("register --install", wanted)}
	}
	return map[string]string{RunUnit: unit("run", wanted), ResetUnit: unit("reset", "")}
}

// InstallCloudInit implements elemental.Plugin. It refuses a cloud-config that would not be
// applied.
func (p *plugin) InstallCloudInit(ctx context.Context, input []byte) error {
	text, err := yaml.JSONToYAML(input)
	if err != nil {
		return err
	}
	if string(input) != "null" {
		r := cloudinit.Configure(cloudinit.Instance{UserData: append([]byte("#cloud-config\n"), text...)}, cloudinit.Root{})
		// A module that the lab does not have is no mistake of the registration.
		wrong := slices.DeleteFunc(r.Ignored, func(line string) bool { return strings.HasSuffix(line, "there is no such module here") })
		if len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "; "))
		}
	}
	return p.Dummy.InstallCloudInit(ctx, input)
}

// Install implements elemental.Plugin: it writes the image to the disk, with a config drive that
// makes its first boot the agent's.
func (p *plugin) Install(ctx context.Context, input []byte) error {
	var want instructions
	if err := json.Unmarshal(input, &want); err != nil {
		return fmt.Errorf("%s: %w", elemental.InstallFile, err)
	}
	if err := p.Dummy.Install(ctx, input); err != nil {
		return err
	}
	if want.System.URI == "" {
		want.System.URI, want.System.Checksum = p.c.Image, p.c.Checksum
	}
	if want.System.URI == "" {
		return errors.New("install: give the URL of an image in system.uri, and its checksum in system.checksum")
	}
	hardware, err := inventory.Collect(ctx, p.c.Devices)
	if err != nil {
		return err
	}
	root, err := disk.Choose(hardware.Disks, job.Hints{DeviceName: want.Device})
	if err != nil {
		return fmt.Errorf("install.device: %w", err)
	}
	drive, err := p.configDrive(root.Name)
	if err != nil {
		return err
	}
	w := disk.Writer{System: p.c.Devices, HTTP: p.c.HTTP}
	_, err = w.Write(ctx, job.WriteSpec{
		URL: want.System.URI, Checksum: want.System.Checksum, Root: job.Hints{DeviceName: root.Name}, ConfigDrive: &drive,
	}, hardware.Disks)
	return err
}

// configDrive returns the metadata and the user data of the installed system: the cloud-config of
// the registration, and the files of the agent.
func (p *plugin) configDrive(device string) (job.ConfigDrive, error) {
	doc := map[string]any{}
	text, err := p.System.ReadFile(p.Path(elemental.CloudInitFile))
	if err != nil {
		return job.ConfigDrive{}, err
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return job.ConfigDrive{}, fmt.Errorf("%s: %w", elemental.CloudInitFile, err)
	}
	if doc == nil {
		doc = map[string]any{}
	}
	files, _ := doc["write_files"].([]any)
	commands, _ := doc["runcmd"].([]any)
	add := func(name string, mode fs.FileMode, content []byte) {
		files = append(files, map[string]any{"path": name, "permissions": fmt.Sprintf("%04o", mode), "encoding": "b64", "content": base64.StdEncoding.EncodeToString(content)})
	}
	for name, mode := range map[string]fs.FileMode{
		p.Path("config.yaml"): 0o640, p.context.ConfigPath: 0o640, p.Path("private.key"): 0o600, p.Path("hostname"): 0o644,
		p.Path(elemental.CloudInitFile): 0o600, p.Path(elemental.InstallFile): 0o644,
	} {
		content, err := p.System.ReadFile(name)
		if err != nil {
			return job.ConfigDrive{}, err
		}
		add(name, mode, content)
	}
	add(p.Path(deviceFile), 0o644, []byte(device+"\n"))
	for name, text := range Units(false) {
		add("/etc/systemd/system/"+name, 0o644, []byte(text))
	}
	doc["write_files"] = files
	doc["runcmd"] = append(commands, "systemctl enable --now "+RunUnit)
	user, err := yaml.Marshal(doc)
	if err != nil {
		return job.ConfigDrive{}, err
	}
	hostname, err := p.System.ReadFile("/etc/hostname")
	if err != nil {
		return job.ConfigDrive{}, err
	}
	meta, err := json.Marshal(map[string]string{"uuid": uuid.NewString(), "hostname": strings.TrimSpace(string(hostname))})
	if err != nil {
		return job.ConfigDrive{}, err
	}
	return job.ConfigDrive{MetaData: meta, UserData: append([]byte("#cloud-config\n"), user...)}, nil
}
