package images

import (
	"encoding/binary"
	"fmt"
	"path"
	"strings"
)

// The layout of our FAT16 file systems: one sector per cluster, one reserved
// sector, two tables, and a root directory of fixed size (Microsoft FAT
// specification 1.03, "Boot Sector and BPB").
const (
	fatReserved    = 1 // sectors
	fatCopies      = 2
	fatRootEntries = 512
	fatEntrySize   = 32 // bytes
	fatRootSectors = fatRootEntries * fatEntrySize / sectorSize
	fatFixedDisk   = 0xf8 // media descriptor

	// FAT16 is what has this many clusters and no other sign.
	fatMinClusters = 4085
	fatMaxClusters = 65524
)

// fatDate and fatTime are the time stamp of every file, 2026-01-01 00:00: it is
// fixed so that the bytes are always the same.
const (
	fatDate = (2026-1980)<<9 | 1<<5 | 1
	fatTime = 0
)

const fatSerial = 0x4d45544c // volume serial number

// Attributes of a directory entry.
const (
	fatVolumeLabel = 0x08
	fatDirectory   = 0x10
	fatArchive     = 0x20
)

// fatFile is a file or, without content, a directory. A directory comes before the
// files in it.
type fatFile struct {
	path    string
	content []byte
}

// fatVolume is a file system that is being built.
type fatVolume struct {
	b          []byte
	fatSectors int
	next       int                // the first cluster that is free
	dirs       map[string]*fatDir // by path; the root is "."
}

type fatDir struct {
	slots   []byte // directory entries that are free
	cluster int    // 0 for the root
}

// newFAT16 returns a FAT16 file system of so many sectors with these files. hidden
// is the number of sectors before it on its disk.
func newFAT16(sectors, hidden int, label string, files []fatFile) ([]byte, error) {
	// A table has an entry for every cluster, and two more. This ignores that the
	// tables themselves take sectors, so that they are a little larger than needed.
	rest := sectors - fatReserved - fatRootSectors
	fatSectors := ((rest+2)*2 + sectorSize - 1) / sectorSize
	clusters := rest - fatCopies*fatSectors
	if clusters < fatMinClusters || clusters > fatMaxClusters {
		return nil, fmt.Errorf("FAT16 of %d sectors would have %d clusters, want %d to %d",
			sectors, clusters, fatMinClusters, fatMaxClusters)
	}
	v := &fatVolume{b: make([]byte, sectors*sectorSize), fatSectors: fatSectors, next: 2}
	v.putBootSector(sectors, hidden, label)
	v.setCluster(0, 0xff00|fatFixedDisk)
	v.setCluster(1, 0xffff)
	root := (fatReserved + fatCopies*fatSectors) * sectorSize
	v.dirs = map[string]*fatDir{".": {slots: v.b[root : root+fatRootSectors*sectorSize]}}
	v.dirs["."].add(paddedName(label, "", 11), 0, fatVolumeLabel, 0, 0)
	for _, f := range files {
		if err := v.put(f, clusters); err != nil {
			return nil, fmt.Errorf("FAT16: %s: %w", f.path, err)
		}
	}
	return v.b, nil
}

func (v *fatVolume) putBootSector(sectors, hidden int, label string) {
	le := binary.LittleEndian
	b := v.b
	copy(b, []byte{0xeb, 0x3c, 0x90}) // jump over the parameters
	copy(b[3:], "METALAB ")
	le.PutUint16(b[11:], sectorSize)
	b[13] = 1 // sectors per cluster
	le.PutUint16(b[14:], fatReserved)
	b[16] = fatCopies
	le.PutUint16(b[17:], fatRootEntries)
	le.PutUint16(b[19:], uint16(sectors)) // at most 65524 clusters and their tables: checked
	b[21] = fatFixedDisk
	le.PutUint16(b[22:], uint16(v.fatSectors))
	le.PutUint16(b[24:], 63)  // sectors per track
	le.PutUint16(b[26:], 255) // heads
	le.PutUint32(b[28:], uint32(hidden))
	b[36] = 0x80 // drive number
	b[38] = 0x29 // the next three fields are there
	le.PutUint32(b[39:], fatSerial)
	copy(b[43:], paddedName(label, "", 11))
	copy(b[54:], "FAT16   ")
	copy(b[62:], []byte{0xf4, 0xeb, 0xfd}) // hlt, if it is ever run
	b[510], b[511] = 0x55, 0xaa
}

func (v *fatVolume) setCluster(n int, value uint16) {
	for i := range fatCopies {
		table := v.b[(fatReserved+i*v.fatSectors)*sectorSize:]
		binary.LittleEndian.PutUint16(table[2*n:], value)
	}
}

// put stores a file or directory in consecutive clusters. clusters is the number of
// clusters of the volume.
func (v *fatVolume) put(f fatFile, clusters int) error {
	parent := v.dirs[path.Dir(f.path)]
	if parent == nil {
		return fmt.Errorf("no directory %s", path.Dir(f.path))
	}
	if len(parent.slots) == 0 {
		return fmt.Errorf("directory %s is full", path.Dir(f.path))
	}
	name, lower, err := shortName(path.Base(f.path))
	if err != nil {
		return err
	}
	need := max(1, (len(f.content)+sectorSize-1)/sectorSize)
	first := v.next
	if first+need > clusters+2 {
		return fmt.Errorf("%d bytes do not fit", len(f.content))
	}
	v.next += need
	for n := first; n < v.next-1; n++ {
		v.setCluster(n, uint16(n+1))
	}
	v.setCluster(v.next-1, 0xffff)
	data := v.b[(fatReserved+fatCopies*v.fatSectors+fatRootSectors+first-2)*sectorSize:][:need*sectorSize]
	if f.content != nil {
		copy(data, f.content)
		parent.add(name, lower, fatArchive, first, len(f.content))
		return nil
	}
	d := &fatDir{slots: data, cluster: first}
	v.dirs[f.path] = d
	d.add(paddedName(".", "", 11), 0, fatDirectory, first, 0)
	d.add(paddedName("..", "", 11), 0, fatDirectory, parent.cluster, 0)
	parent.add(name, lower, fatDirectory, first, 0)
	return nil
}

// add writes a directory entry into the next slot, which must be there.
func (d *fatDir) add(name []byte, lower, attributes byte, cluster, size int) {
	le := binary.LittleEndian
	e := d.slots[:fatEntrySize]
	d.slots = d.slots[fatEntrySize:]
	copy(e, name)
	e[11], e[12] = attributes, lower
	le.PutUint16(e[14:], fatTime) // created
	le.PutUint16(e[16:], fatDate)
	le.PutUint16(e[18:], fatDate) // read
	le.PutUint16(e[22:], fatTime) // written
	le.PutUint16(e[24:], fatDate)
	le.PutUint16(e[26:], uint16(cluster))
	le.PutUint32(e[28:], uint32(size))
}

// shortName is the 8.3 form of a name and the flags by which Windows NT and
// Linux show it in lower case: 08h for the base, 10h for the extension. (FAT
// looks names up without regard to case.)
func shortName(name string) (padded []byte, lower byte, err error) {
	base, ext, _ := strings.Cut(name, ".")
	if base == "" || len(base) > 8 || len(ext) > 3 || strings.ContainsAny(ext, ". ") {
		return nil, 0, fmt.Errorf("name is not of the form 8.3")
	}
	for i, part := range []string{base, ext} {
		switch part {
		case strings.ToUpper(part):
		case strings.ToLower(part):
			lower |= 0x08 << i
		default:
			return nil, 0, fmt.Errorf("name mixes cases")
		}
	}
	return paddedName(strings.ToUpper(base), strings.ToUpper(ext), 8), lower, nil
}

// paddedName is 11 bytes: the base padded with blanks to width, and the
// extension.
func paddedName(base, ext string, width int) []byte {
	return fmt.Appendf(nil, "%-*s%-*s", width, base, 11-width, ext)
}
