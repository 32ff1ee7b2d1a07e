package netboot

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// VolumeID is the label of the agent's medium.
const VolumeID = "METALAB_AGENT"

const isoBlock = 2048

// bootFile is the El Torito image of a medium without a kernel. A server that
// is not emulated and boots it says so on its screen.
const bootFile = "/boot/stub.img"

const bootLine = "Metalab agent medium without a kernel: nothing to run on this server."

// BuildISO makes a bootable ISO 9660 image with Rock Ridge names (El Torito,
// no emulation) that holds the files, by absolute path.
func BuildISO(files map[string][]byte) (iso []byte, err error) {
	sector, err := stub.BootSector(bootLine)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "metalab-iso-")
	if err != nil {
		return nil, fmt.Errorf("netboot: iso: %w", err)
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, fmt.Errorf("netboot: iso: %w", err)
	}
	target := filepath.Join(dir, "agent.iso")
	storage, err := file.CreateFromPath(target, room(files))
	if err != nil {
		return nil, fmt.Errorf("netboot: iso: %w", err)
	}
	defer storage.Close()
	fs, err := iso9660.Create(storage, 0, 0, isoBlock, tree)
	if err != nil {
		return nil, fmt.Errorf("netboot: iso: %w", err)
	}
	defer fs.Close()
	boot := slices.Concat(sector, make([]byte, isoBlock-len(sector))) // whole blocks only
	if err := put(fs, bootFile, boot); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := put(fs, name, files[name]); err != nil {
			return nil, err
		}
	}
	entry := &iso9660.ElToritoEntry{Platform: iso9660.BIOS, Emulation: iso9660.NoEmulation, BootFile: bootFile}
	entry.SetLoadSize(isoBlock / stub.SectorSize)
	err = fs.Finalize(iso9660.FinalizeOptions{
		RockRidge:        true,
		VolumeIdentifier: VolumeID,
		ElTorito:         &iso9660.ElTorito{BootCatalog: "/boot/boot.cat", Entries: []*iso9660.ElToritoEntry{entry}},
	})
	if err != nil {
		return nil, fmt.Errorf("netboot: iso: %w", err)
	}
	iso, err = os.ReadFile(target)
	if err != nil {
		return nil, fmt.Errorf("netboot: iso: %w", err)
	}
	return iso, nil
}

// room is a generous size for the image, which ends up as small as it can be.
func room(files map[string][]byte) int64 {
	n := int64(1 << 20)
	for _, b := range files {
		n += int64(len(b)) + isoBlock
	}
	return n
}

func put(fs *iso9660.FileSystem, name string, content []byte) error {
	if err := fs.Mkdir(path.Dir(name)); err != nil {
		return fmt.Errorf("netboot: iso: %s: %w", name, err)
	}
	f, err := fs.OpenFile(name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("netboot: iso: %s: %w", name, err)
	}
	if _, err := f.Write(content); err != nil {
		return fmt.Errorf("netboot: iso: %s: %w", name, err)
	}
	return f.Close()
}
