package configdrive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

const (
	block = 2048 // bytes
	// isoRoom is the size of an image without its files' contents, rounded up.
	isoRoom = 64 << 10
	noDate  = 70 // years since 1900: 1 January 1970
)

// Block numbers: system area, descriptors, path tables, directories, files.
const (
	primaryAt = 16 + iota // block numbers
	jolietAt
	terminatorAt
	tablesAt // path tables of the primary volume, little and big endian, then those of Joliet
)

const directoriesAt = tablesAt + 4

// file is a file of a drive.
type file struct {
	name    string
	content []byte
	at      uint32 // first block
}

// folder is a directory. The tree has three levels: the root, one folder in it,
// and folders with the same files in that.
type folder struct {
	name   string
	parent int // index in the list of folders; the root is its own parent
	at     uint32
}

// buildISO returns an image with the files in top/sub for each of subs. Each file
// is stored once. The format is that of ECMA-119 (4th edition), Rock Ridge 1.12
// (RRIP) and Joliet.
func buildISO(label, top string, subs []string, files []file) ([]byte, error) {
	// Folders are in the order of the path table: by level, then by name.
	folders := []folder{{}, {name: top}}
	for _, s := range slices.Sorted(slices.Values(subs)) {
		folders = append(folders, folder{name: s, parent: 1})
	}
	joliet := slices.Clone(folders)
	next := uint32(directoriesAt)
	for _, tree := range [][]folder{folders, joliet} {
		for i := range tree {
			tree[i].at = next
			next++
		}
	}
	files = slices.Clone(files)
	for i := range files {
		files[i].at = next
		next += uint32((len(files[i].content) + block - 1) / block)
	}
	img := make([]byte, int(next)*block)
	put := func(at uint32, p []byte) { copy(img[int(at)*block:], p) }
	for i, v := range []struct {
		names names
		tree  []folder
	}{{plain, folders}, {ucs2, joliet}} {
		little, big := pathTable(v.tree, v.names, binary.LittleEndian), pathTable(v.tree, v.names, binary.BigEndian)
		tables := uint32(tablesAt + 2*i)
		put(uint32(primaryAt+i), descriptor(v.names, label, next, uint32(len(little)), tables, v.tree[0].at))
		put(tables, little)
		put(tables+1, big)
		for index := range v.tree {
			dir, err := directory(v.tree, index, files, v.names)
			if err != nil {
				return nil, err
			}
			put(v.tree[index].at, dir)
		}
	}
	put(terminatorAt, []byte("\xffCD001\x01"))
	for _, f := range files {
		put(f.at, f.content)
	}
	return img, nil
}

// names is how a volume encodes names.
type names struct {
	joliet    bool
	file, dir func(name string) []byte
	text      func(text string, n int) []byte // encodes a descriptor's field of n bytes
}

// plain encodes names of interchange level 2 (ECMA-119 §7.5): capitals, digits and
// underscores. People see those of Rock Ridge.
var plain = names{
	file: func(name string) []byte { return []byte(capitals(name) + ";1") },
	dir:  func(name string) []byte { return []byte(strings.ReplaceAll(capitals(name), ".", "_")) },
	text: func(text string, n int) []byte {
		return append([]byte(text), bytes.Repeat([]byte(" "), n-len(text))...)
	},
}

func capitals(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// ucs2 encodes the names of Joliet: big endian UCS-2.
var ucs2 = names{
	joliet: true,
	file:   wide,
	dir:    wide,
	text: func(text string, n int) []byte {
		p := wide(text)
		for len(p)+1 < n {
			p = append(p, 0, ' ')
		}
		return append(p, make([]byte, n-len(p))...)
	},
}

func wide(s string) []byte {
	var p []byte
	for _, u := range utf16.Encode([]rune(s)) {
		p = binary.BigEndian.AppendUint16(p, u)
	}
	return p
}

// both32 appends a number in the format of ECMA-119 §7.3.3: little endian and then
// big endian. both16 does so for §7.2.3.
func both32(p []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(p, n), n)
}

func both16(p []byte, n uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(p, n), n)
}

// descriptor returns a primary or supplementary volume descriptor (§8.4, §8.5).
func descriptor(n names, label string, blocks, tableSize, tables, root uint32) []byte {
	kind := byte(1)
	if n.joliet {
		kind = 2
	}
	p := append([]byte{kind}, "CD001\x01\x00"...)
	p = append(p, n.text("", 32)...)
	p = append(p, n.text(label, 32)...)
	p = append(p, make([]byte, 8)...)
	p = both32(p, blocks)
	escapes := make([]byte, 32)
	if n.joliet {
		copy(escapes, "%/E") // UCS-2 level 3
	}
	p = append(p, escapes...)
	p = both16(p, 1) // volumes in the set
	p = both16(p, 1) // number of this volume
	p = both16(p, block)
	p = both32(p, tableSize)
	p = binary.LittleEndian.AppendUint32(p, tables)
	p = append(p, 0, 0, 0, 0)
	p = binary.BigEndian.AppendUint32(p, tables+1)
	p = append(p, 0, 0, 0, 0)
	p = append(p, record(root, block, true, []byte{0}, nil)...)
	for _, field := range []int{128, 128, 128, 128, 37, 37, 37} { // set, publisher, preparer, application; three files
		p = append(p, n.text("", field)...)
	}
	for range 4 { // no dates (§8.4.26.1)
		p = append(p, "0000000000000000\x00"...)
	}
	return append(p, 1)
}

// pathTable returns the path table (§9.4).
func pathTable(tree []folder, n names, order binary.AppendByteOrder) []byte {
	var p []byte
	for _, f := range tree {
		id := n.dir(f.name)
		if f.name == "" {
			id = []byte{0}
		}
		p = append(p, byte(len(id)), 0)
		p = order.AppendUint32(p, f.at)
		p = order.AppendUint16(p, uint16(f.parent+1))
		p = append(p, id...)
		if len(id)%2 == 1 {
			p = append(p, 0)
		}
	}
	return p
}

// directory returns the block of the folder with an index (§9.1).
func directory(tree []folder, index int, files []file, n names) ([]byte, error) {
	self := tree[index]
	extra := func(name string, dir bool, links int) []byte {
		if n.joliet {
			return nil
		}
		return rockRidge(name, dir, links)
	}
	var first []byte
	if index == 0 && !n.joliet { // the entries that identify Rock Ridge (RRIP §4.1, SUSP §5.3, §5.5)
		first = slices.Concat([]byte("SP\x07\x01\xbe\xef\x00"), extra("", true, links(tree, index)), []byte("ER\x12\x01\x0a\x00\x00\x01RRIP_1991A"))
	} else {
		first = extra("", true, links(tree, index))
	}
	p := record(self.at, block, true, []byte{0}, first)
	p = append(p, record(tree[self.parent].at, block, true, []byte{1}, extra("", true, links(tree, self.parent)))...)
	type entry struct {
		id, rec []byte
	}
	var entries []entry
	leaf := true
	for i, f := range tree {
		if i > 0 && f.parent == index {
			leaf = false
			id := n.dir(f.name)
			entries = append(entries, entry{id, record(f.at, block, true, id, extra(f.name, true, links(tree, i)))})
		}
	}
	for _, f := range files {
		if leaf {
			id := n.file(f.name)
			entries = append(entries, entry{id, record(f.at, uint32(len(f.content)), false, id, extra(f.name, false, 1))})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.id, b.id) })
	for _, e := range entries {
		p = append(p, e.rec...)
	}
	if len(p) > block {
		return nil, fmt.Errorf("configdrive: folder %q does not fit a block", self.name)
	}
	return p, nil
}

// links returns the number of names of a folder, as file systems count them: its
// own, its ".", and the ".." of each folder in it.
func links(tree []folder, index int) int {
	n := 2
	for i, f := range tree {
		if i > 0 && f.parent == index {
			n++
		}
	}
	return n
}

// record returns an entry of a directory (§9.1).
func record(at, size uint32, dir bool, id, system []byte) []byte {
	p := []byte{0, 0}
	p = both32(p, at)
	p = both32(p, size)
	p = append(p, noDate, 1, 1, 0, 0, 0, 0)
	flags := byte(0)
	if dir {
		flags = 2
	}
	p = append(p, flags, 0, 0)
	p = both16(p, 1)
	p = append(p, byte(len(id)))
	p = append(p, id...)
	if len(id)%2 == 0 {
		p = append(p, 0)
	}
	p = append(p, system...)
	if len(p)%2 == 1 {
		p = append(p, 0)
	}
	p[0] = byte(len(p))
	return p
}

// rockRidge returns the POSIX attributes of a file: mode, links and name (RRIP
// §4.1.1, §4.1.4). All files are readable by everybody and writable by nobody.
func rockRidge(name string, dir bool, links int) []byte {
	mode := uint32(0o100444)
	if dir {
		mode = 0o040555
	}
	p := []byte("PX\x24\x01")
	for _, v := range []uint32{mode, uint32(links), 0, 0} {
		p = both32(p, v)
	}
	if name != "" {
		p = append(p, "NM"...)
		p = append(p, byte(5+len(name)), 1, 0)
		p = append(p, name...)
	}
	return p
}
