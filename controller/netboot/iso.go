package netboot

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// VolumeID is the volume label of the ISO image.
const VolumeID = "METALAB_AGENT"

const isoBlock = 2048

// bootFile is the El Torito boot image of an ISO without a kernel. It prints bootLine on
// the screen of a server that is not emulated.
const bootFile = "/boot/stub.img"

const bootLine = "Metalab agent medium without a kernel: nothing to run on this server."

// Medium describes an ISO 9660 image with Rock Ridge names that boots by El Torito,
// without emulation of a disk.
type Medium struct {
	Files map[string][]byte // by absolute path
	// Legacy is the path of the file that a PC BIOS starts: isolinux. "" means a program
	// that prints that there is no kernel, unless UEFI is set.
	Legacy string
	UEFI   string // path of the FAT file system for UEFI; "" means none
}

// isolinuxLoad is how much of isolinux a BIOS loads. isolinux loads the rest itself, from
// the place in its boot information table.
const isolinuxLoad = 4 // sectors

// BuildISO returns an ISO image without a kernel that contains the files.
func BuildISO(files map[string][]byte) ([]byte, error) { return Medium{Files: files}.Build() }

// Build returns the image.
func (m Medium) Build() (iso []byte, err error) {
	files := maps.Clone(m.Files)
	torito := &iso9660.ElTorito{BootCatalog: "/boot/boot.cat"}
	switch {
	case m.Legacy != "":
		e := &iso9660.ElToritoEntry{Platform: iso9660.BIOS, Emulation: iso9660.NoEmulation, BootFile: m.Legacy, BootTable: true}
		e.SetLoadSize(isolinuxLoad)
		torito.Entries = append(torito.Entries, e)
	case m.UEFI == "":
		sector, err := stub.BootSector(bootLine)
		if err != nil {
			return nil, err
		}
		files[bootFile] = slices.Concat(sector, make([]byte, isoBlock-len(sector))) // whole blocks only
		e := &iso9660.ElToritoEntry{Platform: iso9660.BIOS, Emulation: iso9660.NoEmulation, BootFile: bootFile}
		e.SetLoadSize(isoBlock / stub.SectorSize)
		torito.Entries = append(torito.Entries, e)
	}
	if m.UEFI != "" {
		e := &iso9660.ElToritoEntry{Platform: iso9660.EFI, Emulation: iso9660.NoEmulation, BootFile: m.UEFI}
		torito.Entries = append(torito.Entries, e)
	}
	dir, err := os.MkdirTemp("", "metalab-iso-")
	if err != nil {
		return nil, fmt.Errorf("iso: %w", err)
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, fmt.Errorf("iso: %w", err)
	}
	target := filepath.Join(dir, "agent.iso")
	storage, err := file.CreateFromPath(target, room(files))
	if err != nil {
		return nil, fmt.Errorf("iso: %w", err)
	}
	defer storage.Close()
	fs, err := iso9660.Create(storage, 0, 0, isoBlock, tree)
	if err != nil {
		return nil, fmt.Errorf("iso: %w", err)
	}
	defer fs.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := put(fs, name, files[name]); err != nil {
			return nil, err
		}
	}
	err = fs.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: VolumeID, ElTorito: torito})
	if err != nil {
		return nil, fmt.Errorf("iso: %w", err)
	}
	iso, err = os.ReadFile(target)
	if err != nil {
		return nil, fmt.Errorf("iso: %w", err)
	}
	return iso, nil
}

// room returns an upper bound of the image's size in bytes. The finished image is as small
// as its contents allow.
func room(files map[string][]byte) int64 {
	n := int64(1 << 20)
	for _, b := range files {
		n += int64(len(b)) + isoBlock
	}
	return n
}

func put(fs *iso9660.FileSystem, name string, content []byte) error {
	if err := fs.Mkdir(path.Dir(name)); err != nil {
		return fmt.Errorf("iso: %s: %w", name, err)
	}
	f, err := fs.OpenFile(name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("iso: %s: %w", name, err)
	}
	if _, err := f.Write(content); err != nil {
		return fmt.Errorf("iso: %s: %w", name, err)
	}
	return f.Close()
}
