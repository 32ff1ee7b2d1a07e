package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// This file stores the files of operating systems with the drives that they lie on. An
// image has a file system that the rack cannot write (ext4, XFS, Btrfs), so what a running
// system changes lies in the drive's file after the last sector, where it moves, is
// copied and is removed with the drive. It belongs to the sector at which the image of
// the system begins: overwriting or discarding that sector removes it.

// maxSystemFiles is how many bytes of files a drive stores.
const maxSystemFiles = 1 << 30

// systemFiles are the files of one system.
type systemFiles struct {
	anchor  int64 // offset of the image's first byte
	content []byte
}

// SystemFiles returns what PutSystemFiles has stored for the system whose image begins at
// an offset; nil if nothing is stored, or if that byte was overwritten since.
func (d *Disk) SystemFiles(anchor int64) ([]byte, error) {
	f, err := d.open("read", anchor, 1, false)
	if err != nil || f == nil {
		return nil, err
	}
	defer d.store.files.release(f)
	f.systems.Lock()
	defer f.systems.Unlock()
	all, err := f.loadSystems(d.size)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(s systemFiles) bool { return s.anchor == anchor }); i >= 0 {
		return slices.Clone(all[i].content), nil
	}
	return nil, nil
}

// PutSystemFiles stores the files of the system whose image begins at an offset; nil
// removes them. It refuses content of more than 1 GiB.
func (d *Disk) PutSystemFiles(anchor int64, content []byte) error {
	if len(content) > maxSystemFiles {
		return fmt.Errorf("files of a system: %d bytes, and a drive stores %d", len(content), maxSystemFiles)
	}
	f, err := d.open("write", anchor, 1, content != nil)
	if err != nil || f == nil {
		return err
	}
	defer d.store.files.release(f)
	if err := d.store.use(len(content)); err != nil {
		return fmt.Errorf("files of a system: %w", err)
	}
	f.systems.Lock()
	defer f.systems.Unlock()
	all, err := f.loadSystems(d.size)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s systemFiles) bool { return s.anchor == anchor })
	if content != nil {
		all = append(all, systemFiles{anchor, content})
	}
	return d.saveSystems(f, all)
}

// dropSystems removes the files of systems that begin in a range which is written or
// discarded.
func (d *Disk) dropSystems(f *diskFile, off, n int64) error {
	if !f.hasSystems.Load() || n == 0 {
		return nil
	}
	f.systems.Lock()
	defer f.systems.Unlock()
	meant := func(anchor int64) bool { return anchor >= off && anchor < off+n }
	if f.anchors != nil && !slices.ContainsFunc(f.anchors, meant) {
		return nil
	}
	all, err := f.loadSystems(d.size)
	if damage := (*DamageError)(nil); errors.As(err, &damage) && off > 0 {
		return nil // which systems there are cannot be read
	} else if err != nil && damage == nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(s systemFiles) bool { return meant(s.anchor) })
	if len(left) == len(all) && err == nil {
		return nil
	}
	return d.saveSystems(f, left)
}

// systemHead is the block after the last sector: where the files of the systems are. They
// are written elsewhere before the block changes, so that a rack that is killed has the old
// files or the new ones.
type systemHead struct {
	Magic       [8]byte
	Off, Length int64 // offset from the block's end, and length, of the files, in bytes
	Sum         [sha256.Size]byte
}

// systemBlock is the size of the block in bytes.
const systemBlock = 4096

var systemMagic = [8]byte{'l', 'a', 'b', 's', 'y', 's', '1', '\n'}

// readHead reads the block; its zero value if there is none.
func readHead(f io.ReaderAt, size int64) (h systemHead, err error) {
	b := make([]byte, binary.Size(h))
	switch _, err := f.ReadAt(b, size); {
	case errors.Is(err, io.EOF):
		return systemHead{}, nil
	case err != nil:
		return h, fmt.Errorf("files of a system: %w", err)
	}
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, &h); err != nil {
		return h, fmt.Errorf("files of a system: %w", err)
	}
	if h.Magic != systemMagic || h.Off < 0 || h.Length < 0 || h.Length > 2*maxSystemFiles {
		return systemHead{}, nil
	}
	return h, nil
}

// loadSystems reads the files of all systems.
func (f *diskFile) loadSystems(size int64) ([]systemFiles, error) {
	h, err := readHead(f, size)
	if err != nil || h.Length == 0 {
		return nil, err
	}
	b := make([]byte, h.Length)
	if _, err := f.ReadAt(b, size+systemBlock+h.Off); err != nil {
		return nil, f.endOf(err)
	}
	if sha256.Sum256(b) != h.Sum {
		return nil, &DamageError{
			Path: f.path, Offset: size + systemBlock + h.Off, Detail: "the files of the operating system do not match their checksum",
			Fix: diskFix,
		}
	}
	var out []systemFiles
	for len(b) >= 16 {
		anchor, length := int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])
		b = b[16:]
		out = append(out, systemFiles{anchor, b[:length]})
		b = b[length:]
	}
	f.setAnchors(out)
	return out, nil
}

// setAnchors stores where the systems begin, so that writes elsewhere read nothing.
func (f *diskFile) setAnchors(all []systemFiles) {
	f.anchors = []int64{}
	for _, s := range all {
		f.anchors = append(f.anchors, s.anchor)
	}
}

// saveSystems replaces the files of all systems.
func (d *Disk) saveSystems(f *diskFile, all []systemFiles) (err error) {
	size, fsync := d.size, d.store.fsync
	defer func() {
		if err != nil {
			err = fmt.Errorf("files of a system: %w", err)
		}
	}()
	f.hasSystems.Store(len(all) > 0)
	f.setAnchors(all)
	if len(all) == 0 {
		if err := d.record(f, false); err != nil {
			return err
		}
		return f.Truncate(size)
	}
	var b []byte
	for _, s := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(s.anchor))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s.content)))
		b = append(b, s.content...)
	}
	old, err := readHead(f, size)
	if err != nil {
		return err
	}
	h := systemHead{Magic: systemMagic, Length: int64(len(b)), Sum: sha256.Sum256(b)}
	if old.Length > 0 && old.Off < h.Length { // there is no room before the old files
		h.Off = old.Off + old.Length
	}
	if _, err := f.WriteAt(b, size+systemBlock+h.Off); err != nil {
		return err
	}
	if fsync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	var head bytes.Buffer
	if err := binary.Write(&head, binary.LittleEndian, h); err != nil {
		return err
	}
	if _, err := f.WriteAt(head.Bytes(), size); err != nil {
		return err
	}
	if err := f.Truncate(size + systemBlock + h.Off + h.Length); err != nil {
		return err
	}
	if h.Off > 0 {
		if err := punchHole(f.File, size+systemBlock, h.Off); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if fsync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return d.record(f, true)
}
