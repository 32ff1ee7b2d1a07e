package cloudinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names of the data sources.
const (
	ConfigDrive = "ConfigDrive" // OpenStack's layout, label config-2
	NoCloud     = "NoCloud"     // label cidata
)

// Labels are the labels of the volumes that hold a data source, in lower case, and the
// names of the data sources.
var Labels = map[string]string{"config-2": ConfigDrive, "cidata": NoCloud}

// ErrNoSource reports that a volume holds no data source.
var ErrNoSource = errors.New("cloudinit: no data source")

// maxFile bounds each file of a data source: a config drive has at most 64 MiB.
const maxFile = 64 << 20

// Instance is the metadata, user data and network data of a data source.
type Instance struct {
	Source     string // name of the data source
	ID         string
	Hostname   string
	PublicKeys []string
	// MetaData is all of the metadata as it is read: nil, bool, int64, float64, string, []any and
	// map[string]any. Templates have it as ds.meta_data.
	MetaData map[string]any
	// Device is the block device or the directory of the data source. "": it is not known.
	Device     string
	UserData   []byte
	VendorData []byte
	// VendorData2 is vendor_data2.json of a config drive: the dynamic vendor data of OpenStack.
	VendorData2 []byte
	// NetworkData is network_data.json of a config drive, or network-config of NoCloud.
	NetworkData []byte
	// NICs are the names that the kernel has for the server's NICs, by their MAC addresses in lower
	// case. Where nil is given the NICs are not known, links have their IDs as names, and none is
	// missing.
	NICs map[string]string
	// Interfaces reports an interfaces(5) in the data source, which is not read.
	Interfaces bool
	// Files are the files of the volume that were read, by their names in it, for another reader
	// of the data source.
	Files map[string][]byte
}

// Read reads the data source of a volume.
func Read(volume fs.FS) (Instance, error) {
	seen := recorded{volume, map[string][]byte{}}
	i, err := readVolume(seen)
	i.Files = seen.files
	return i, err
}

// recorded is a volume that keeps the files that its reader has read.
type recorded struct {
	fs.FS
	files map[string][]byte
}

func readVolume(volume recorded) (Instance, error) {
	for _, read := range []func(recorded) (Instance, error){readConfigDrive, readNoCloud} {
		i, err := read(volume)
		if !errors.Is(err, ErrNoSource) {
			return i, err
		}
	}
	return Instance{}, ErrNoSource
}

// readConfigDrive reads openstack/VERSION, of the latest version that has metadata
// (OpenStack, "Config drive": clients take the last one that they know).
func readConfigDrive(volume recorded) (Instance, error) {
	entries, err := fs.ReadDir(volume, "openstack")
	if err != nil {
		return Instance{}, ErrNoSource
	}
	var dirs []string
	for _, e := range entries {
		dirs = append(dirs, e.Name())
	}
	slices.Sort(dirs) // dates; "latest" is behind them
	for _, d := range slices.Backward(dirs) {
		dir := path.Join("openstack", d)
		b, err := readFile(volume, dir+"/meta_data.json")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Instance{}, err
		}
		i := Instance{Source: ConfigDrive}
		var meta struct {
			UUID       string            `json:"uuid"`
			Hostname   string            `json:"hostname"`
			LocalName  string            `json:"local-hostname"`
			PublicKeys map[string]string `json:"public_keys"`
			Network    any               `json:"network_config"`
		}
		if err := json.Unmarshal(b, &meta); err != nil {
			return Instance{}, fmt.Errorf("cloudinit: %s/meta_data.json: %w", dir, err)
		}
		i.ID, i.Hostname, i.Interfaces = meta.UUID, meta.Hostname, meta.Network != nil
		if i.Hostname == "" {
			i.Hostname = meta.LocalName
		}
		for _, name := range slices.Sorted(maps.Keys(meta.PublicKeys)) {
			i.PublicKeys = append(i.PublicKeys, strings.TrimSpace(meta.PublicKeys[name]))
		}
		if v, err := parseJSON(b); err == nil { // else it is beyond the bounds, and templates don't have it
			i.MetaData, _ = v.(dict)
		}
		return i, i.readData(volume, map[string]*[]byte{
			dir + "/user_data": &i.UserData, dir + "/vendor_data.json": &i.VendorData, dir + "/vendor_data2.json": &i.VendorData2, dir + "/network_data.json": &i.NetworkData,
		})
	}
	return Instance{}, ErrNoSource
}

// readNoCloud reads meta-data and user-data, both of which a volume of NoCloud has.
func readNoCloud(volume recorded) (Instance, error) {
	b, err := readFile(volume, "meta-data")
	if errors.Is(err, fs.ErrNotExist) {
		return Instance{}, ErrNoSource
	}
	if err != nil {
		return Instance{}, err
	}
	i, err := ParseNoCloud(b)
	if err != nil {
		return Instance{}, err
	}
	return i, i.readData(volume, map[string]*[]byte{
		"user-data": &i.UserData, "vendor-data": &i.VendorData, "network-config": &i.NetworkData,
	})
}

// ParseNoCloud returns an instance of the data source NoCloud from its meta-data, without
// other data.
func ParseNoCloud(metaData []byte) (Instance, error) {
	var meta struct {
		ID         string    `yaml:"instance-id"`
		LocalName  string    `yaml:"local-hostname"`
		Hostname   string    `yaml:"hostname"`
		PublicKeys yaml.Node `yaml:"public-keys"`
		Network    yaml.Node `yaml:"network-interfaces"`
	}
	if err := yaml.Unmarshal(metaData, &meta); err != nil {
		return Instance{}, fmt.Errorf("cloudinit: meta-data: %w", err)
	}
	i := Instance{Source: NoCloud, ID: meta.ID, Hostname: meta.LocalName, PublicKeys: scalars(&meta.PublicKeys), Interfaces: value(&meta.Network) != nil}
	if i.Hostname == "" {
		i.Hostname = meta.Hostname
	}
	if v, err := parseYAML(metaData); err == nil { // likewise
		i.MetaData, _ = v.(dict)
	}
	return i, nil
}

// readData reads the files that exist.
func (i *Instance) readData(volume recorded, files map[string]*[]byte) error {
	for name, to := range files {
		b, err := readFile(volume, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		*to = b
	}
	return nil
}

func readFile(volume recorded, name string) ([]byte, error) {
	f, err := volume.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("cloudinit: %s: %w", name, err)
	}
	volume.files[name] = b
	return b, nil
}

// scalars returns the texts of a sequence, or of the values of a mapping, or a text
// alone.
func scalars(n *yaml.Node) (out []string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			out = append(out, strings.TrimSpace(n.Value))
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			out = append(out, scalars(c)...)
		}
	case yaml.MappingNode:
		for k := 1; k < len(n.Content); k += 2 {
			out = append(out, scalars(n.Content[k])...)
		}
	}
	return out
}
