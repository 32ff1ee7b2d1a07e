// Package configdrive builds OpenStack config drives: the volume from which
// cloud-init, Ignition and their kin learn what a server shall be. It knows the
// files that such a drive holds and the ISO 9660 file system that they lie in;
// it does not know where their contents come from, nor where the drive goes.
package configdrive

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/metalab-dev/metalab/agent/job"
)

// Label is the volume's name, by which it is found.
const Label = "config-2"

// MaxSize is the size in bytes that a drive may have (ironic-python-agent,
// MAX_CONFIG_DRIVE_SIZE_MB).
const MaxSize = 64 << 20

// versions are the folders in which each file lies (openstacksdk, configdrive:
// populate_directory): the oldest that clients still ask for, and the latest.
var versions = []string{"2012-08-10", "latest"}

// Build makes the drive as an ISO 9660 image with Rock Ridge and Joliet names.
// The same content makes the same bytes. Files that are empty are left out, but
// meta_data.json, by which a drive is known.
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

// Is tells whether a volume is a config drive, by its first 36 KiB: an ISO 9660
// or a FAT volume with the name.
func Is(volume []byte) bool {
	name := func(at, n int) string {
		if len(volume) < at+n {
			return ""
		}
		return string(bytes.ToLower(bytes.TrimRight(volume[at:at+n], " \x00")))
	}
	if name(16*block+1, 5) == "cd001" {
		return name(16*block+40, 32) == Label
	}
	// The boot sectors of FAT12 and FAT16, and of FAT32.
	return name(54, 3) == "fat" && name(43, 11) == Label || name(82, 5) == "fat32" && name(71, 11) == Label
}
