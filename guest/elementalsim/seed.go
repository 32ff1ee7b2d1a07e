package elementalsim

import (
	"encoding/base64"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/elemental"
)

// SeedData returns the metadata and the user data (NoCloud) of a medium whose system registers and
// installs the server that boots it. The token of the registration is in them.
func SeedData(f elemental.File) (metaData, userData []byte, err error) {
	if err := f.Validate(); err != nil {
		return nil, nil, err
	}
	config, err := f.Marshal()
	if err != nil {
		return nil, nil, err
	}
	files := []any{map[string]any{
		"path": elemental.DefaultConfigFile, "permissions": "0600", "encoding": "b64", "content": base64.StdEncoding.EncodeToString(config),
	}}
	for name, text := range Units(true) {
		files = append(files, map[string]any{"path": "/etc/systemd/system/" + name, "content": text})
	}
	text, err := yaml.Marshal(map[string]any{"write_files": files, "runcmd": []string{"systemctl enable --now " + SeedUnit}})
	if err != nil {
		return nil, nil, fmt.Errorf("elemental: seed: %w", err)
	}
	return []byte("instance-id: elemental-seed\n"), append([]byte("#cloud-config\n"), text...), nil
}
