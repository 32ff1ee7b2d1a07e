// Package cpio writes and reads archives in the "newc" format, in which a Linux kernel
// expects its initrd (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
// It supports regular files, directories, symbolic links and device nodes.
package cpio

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Modes of entries, as in stat(2).
const (
	File      = 0o100000
	Directory = 0o040000
	Symlink   = 0o120000
	Character = 0o020000

	kind = 0o170000
)

// Entry is one member of an archive.
type Entry struct {
	Name         string // without a leading slash
	Mode         uint32 // kind and permissions
	Major, Minor uint32 // device numbers of a device node
	Content      []byte // content of a file; the target of a link
}

const (
	magic     = "070701"
	headerLen = 6 + 13*8
	trailer   = "TRAILER!!!"
	maxName   = 4096 // PATH_MAX
	align     = 4
)

var errFormat = errors.New("cpio: not an archive in the newc format")

// Append appends an archive of the entries to b, whose length must be a multiple of 4. It
// adds the parent directories of an entry before the entry.
func Append(b []byte, entries ...Entry) []byte {
	made := map[string]bool{}
	ino := uint32(0)
	add := func(e Entry) {
		ino++
		b = appendEntry(b, e, ino)
	}
	for _, e := range entries {
		e.Name = strings.TrimPrefix(path.Clean("/"+e.Name), "/")
		var missing []string
		for d := path.Dir(e.Name); d != "." && !made[d]; d = path.Dir(d) {
			made[d] = true
			missing = append(missing, d)
		}
		for _, d := range slices.Backward(missing) {
			add(Entry{Name: d, Mode: Directory | 0o755})
		}
		if e.Mode&kind == Directory {
			if made[e.Name] {
				continue
			}
			made[e.Name] = true
		}
		add(e)
	}
	return appendEntry(b, Entry{Name: trailer}, 0)
}

func appendEntry(b []byte, e Entry, ino uint32) []byte {
	b = append(b, magic...)
	for _, n := range []uint32{
		ino, e.Mode, 0, 0, 1, 0, uint32(len(e.Content)), 0, 0, e.Major, e.Minor, uint32(len(e.Name) + 1), 0,
	} {
		b = fmt.Appendf(b, "%08x", n)
	}
	b = pad(append(append(b, e.Name...), 0))
	return pad(append(b, e.Content...))
}

func pad(b []byte) []byte {
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// Read returns the entries of the uncompressed archives at the beginning of b. As for a
// kernel, several archives may follow each other with zeros between them. rest begins at
// the first byte that belongs to no archive, for example of a compressed one. The contents
// of the entries share memory with b.
func Read(b []byte) (entries []Entry, rest []byte, err error) {
	at := 0
	for {
		for at < len(b) && b[at] == 0 {
			at++
		}
		if at == len(b) || at%align != 0 || !bytes.HasPrefix(b[at:], []byte(magic)) {
			return entries, b[at:], nil
		}
		for {
			e, n, err := readEntry(b[at:])
			if err != nil {
				return nil, nil, err
			}
			at += n
			if e.Name == trailer {
				break
			}
			entries = append(entries, e)
		}
	}
}

// readEntry reads one entry and returns its length in bytes with the padding.
func readEntry(b []byte) (Entry, int, error) {
	if len(b) < headerLen || string(b[:len(magic)]) != magic {
		return Entry{}, 0, errFormat
	}
	var fields [13]uint32
	for i := range fields {
		n, err := strconv.ParseUint(string(b[len(magic)+8*i:][:8]), 16, 32)
		if err != nil {
			return Entry{}, 0, errFormat
		}
		fields[i] = uint32(n)
	}
	size, name := int(fields[6]), int(fields[11])
	if name < 1 || name > maxName || headerLen+name > len(b) || b[headerLen+name-1] != 0 {
		return Entry{}, 0, errFormat
	}
	content := up(headerLen + name)
	if content > len(b) || size > len(b)-content {
		return Entry{}, 0, errFormat
	}
	e := Entry{
		Name: string(b[headerLen:][:name-1]), Mode: fields[1], Major: fields[9], Minor: fields[10], Content: b[content:][:size:size],
	}
	return e, min(up(content+size), len(b)), nil
}

func up(n int) int { return (n + align - 1) &^ (align - 1) }

// Find returns the content of the last regular file of that name, because a kernel unpacks
// a later one over an earlier one.
func Find(entries []Entry, name string) ([]byte, bool) {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for _, e := range slices.Backward(entries) {
		if e.Mode&kind == File && strings.TrimPrefix(path.Clean("/"+e.Name), "/") == name {
			return e.Content, true
		}
	}
	return nil, false
}
