package rootfs

import (
	"errors"
	"strings"
)

// maxDir is how many bytes a directory may have: Linux allows 2 GiB, for ten million names.
const maxDir = 2 << 30

// List implements Reader. It reads the names one after the other: to this form the tree of
// hashes is empty entries.
func (e *ext) List(in Inode, yield func(Entry) error) error {
	f, err := e.readable(in)
	switch {
	case err != nil:
		return err
	case !in.Mode.IsDir():
		return e.corrupt("inode %d is no directory", in.Number)
	case in.Size > maxDir:
		return e.corrupt("the directory of inode %d has %d bytes", in.Number, in.Size)
	}
	if f.flags&flagInline != 0 {
		// Four bytes name the directory above, which has no entry then.
		if err := e.names(in, f.raw[44:100], yield); err != nil {
			return err
		}
		if in.Size <= 60 {
			return nil
		}
		more, err := e.inlineRest(f)
		if err != nil {
			return err
		}
		return e.names(in, more, yield)
	}
	b := make([]byte, e.block)
	end := (in.Size + e.block - 1) / e.block
	return e.runs(in, func(r run) error {
		for i := range r.count {
			if r.logical+i >= end {
				return nil
			}
			if err := e.spend(); err != nil {
				return err
			}
			if err := e.readBlock(b, r.physical+i); err != nil {
				return err
			}
			if err := e.names(in, b, yield); err != nil {
				return err
			}
		}
		return nil
	})
}

// names reads the entries of a block.
func (e *ext) names(in Inode, b []byte, yield func(Entry) error) error {
	for len(b) >= 8 {
		length, nameLength := int(le.Uint16(b[4:])), int(b[6])
		if e.block == 64<<10 && (length == 0 || length == 0xffff) {
			length = len(b) // which 16 bits have no room for
		}
		if length < 8 || length%4 != 0 || length > len(b) || 8+nameLength > length {
			return e.corrupt("an entry in the directory of inode %d has %d bytes", in.Number, length)
		}
		number, name := le.Uint32(b), string(b[8:8+nameLength])
		b = b[length:]
		if number == 0 || name == "." || name == ".." {
			continue
		}
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return e.corrupt("the directory of inode %d has the name %q", in.Number, name)
		}
		if err := yield(Entry{Name: name, file: number}); err != nil {
			return err
		}
	}
	return nil
}

// attributePrefixes are those that e_name_index stands for.
var attributePrefixes = map[byte]string{
	1: "user.", 2: "system.posix_acl_access", 3: "system.posix_acl_default", 4: "trusted.", 6: "security.", 7: "system.", 8: "system.richacl",
}

const (
	attributeMagic = 0xea020000
	maxAttribute   = 64 << 10 // bytes of a value, XATTR_SIZE_MAX
	inlineName     = "system.data"
)

// Attributes implements Reader.
func (e *ext) Attributes(in Inode) (map[string][]byte, error) {
	f, err := e.readable(in)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	if err := e.inodeAttributes(f, out); err != nil {
		return nil, err
	}
	delete(out, inlineName)
	at := int64(le.Uint32(f.raw[104:])) | int64(le.Uint16(f.raw[118:]))<<32
	if at == 0 {
		return out, nil
	}
	b := make([]byte, e.block)
	if err := e.readBlock(b, at); err != nil {
		return nil, err
	}
	if le.Uint32(b) != attributeMagic {
		return nil, e.corrupt("inode %d has no attributes where it says", in.Number)
	}
	return out, e.attributes(b[32:], b, out)
}

// inodeAttributes reads those between an inode's fields and its end.
func (e *ext) inodeAttributes(f extFile, out map[string][]byte) error {
	if e.inodeSize <= 128 {
		return nil
	}
	at := 128 + int64(le.Uint16(f.raw[128:]))
	if at+8 > e.inodeSize || le.Uint32(f.raw[at:]) != attributeMagic {
		return nil
	}
	return e.attributes(f.raw[at+4:], f.raw[at+4:], out)
}

// inlineRest returns the bytes of a file or directory that did not fit in place of its map.
func (e *ext) inlineRest(f extFile) ([]byte, error) {
	out := map[string][]byte{}
	if err := e.inodeAttributes(f, out); err != nil {
		return nil, err
	}
	return out[inlineName], nil
}

// attributes reads a list of entries, whose values are at offsets of a base.
func (e *ext) attributes(list, base []byte, out map[string][]byte) error {
	for len(list) >= 4 && le.Uint32(list) != 0 {
		if len(list) < 16 || 16+int(list[0]) > len(list) {
			return e.corrupt("an attribute is cut")
		}
		nameLength, index := int(list[0]), list[1]
		off, inode, size := int64(le.Uint16(list[2:])), le.Uint32(list[4:]), int64(le.Uint32(list[8:]))
		name := attributePrefixes[index] + string(list[16:16+nameLength])
		list = list[min(len(list), (16+nameLength+3)&^3):]
		if size > maxAttribute {
			return e.corrupt("the attribute %q has %d bytes", name, size)
		}
		if inode != 0 {
			value, err := e.attributeOf(inode, size)
			if err != nil {
				return err
			}
			out[name] = value
			continue
		}
		if off+size > int64(len(base)) {
			return e.corrupt("the attribute %q is outside", name)
		}
		out[name] = append([]byte(nil), base[off:off+size]...)
	}
	return nil
}

// attributeOf reads a value that is a file of its own (ea_inode).
func (e *ext) attributeOf(inode uint32, size int64) ([]byte, error) {
	in, err := e.inode(inode)
	if err != nil {
		return nil, err
	}
	if !in.Mode.IsRegular() || in.Size < size {
		return nil, e.corrupt("inode %d is no attribute's value", inode)
	}
	out := make([]byte, size)
	err = e.Data(in, func(off int64, b []byte) error {
		if off >= size {
			return errFound
		}
		copy(out[off:], b)
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return out, nil
}
