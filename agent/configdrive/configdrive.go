// Package configdrive builds OpenStack config drives, from which cloud-init and
// Ignition configure a server. It knows the files of such a drive and their ISO
// 9660 file system; it does not know where the contents come from nor where the
// drive is written.
package configdrive

import (
	"encoding/json"
	"fmt"

	"github.com/metalab-dev/metalab/agent/job"
)

// Label is the volume label by which clients find the drive.
const Label = "config-2"

// MaxSize is the maximum size of a drive in bytes (ironic-python-agent,
// MAX_CONFIG_DRIVE_SIZE_MB).
const MaxSize = 64 << 20

// versions lists the folders that contain each file (openstacksdk, configdrive:
// populate_directory): the oldest that clients still use, and the latest.
var versions = []string{"2012-08-10", "latest"}

// Build returns the drive as an ISO 9660 image with Rock Ridge and Joliet names.
// The same content gives the same bytes. Empty files are left out, except
// meta_data.json, which identifies a drive.
func Build(d job.ConfigDrive) ([]byte, error) {
	meta := d.MetaData
	if len(meta) == 0 {
		meta = []byte("{}")
	}
	for name, doc := range map[string][]byte{"metaData": meta, "networkData": d.NetworkData} {
		var object map[string]json.RawMessage
		if len(doc) == 0 {
			continue
		}
		if err := json.Unmarshal(doc, &object); err != nil {
			return nil, fmt.Errorf("configdrive: %s is no JSON object: %w", name, err)
		}
	}
	if n := len(meta) + len(d.NetworkData) + len(d.UserData); n > MaxSize-isoRoom {
		return nil, fmt.Errorf("configdrive: the contents have %d bytes, the drive has room for %d", n, MaxSize-isoRoom)
	}
	var files []file
	for _, f := range []file{
		{name: "meta_data.json", content: meta},
		{name: "network_data.json", content: d.NetworkData},
		{name: "user_data", content: d.UserData},
	} {
		if len(f.content) > 0 {
			files = append(files, f)
		}
	}
	return buildISO(Label, "openstack", versions, files)
}

// Is reports whether a volume is a config drive, by its first HeadSize bytes: an ISO 9660
// or FAT volume with the label.
func Is(volume []byte) bool {
	_, name := VolumeLabel(volume)
	return name == Label
}
