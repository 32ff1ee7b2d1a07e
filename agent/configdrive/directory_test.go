package configdrive

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// entry is a directory record (ECMA-119, §9.1) as a reader of the volume has it.
type entry struct {
	Name   string // the file identifier; "." and ".." for the bytes 0 and 1
	At     uint32 // first block
	Size   uint32 // bytes
	Dir    bool
	System string // the system use field
}

// volume is one tree of the image: that of the descriptor at a block.
type volume struct {
	t      *testing.T
	img    []byte
	joliet bool
}

// both reads a number in both byte orders (§7.3.3), which must agree.
func (v volume) both(p []byte) uint32 {
	v.t.Helper()
	little, big := binary.LittleEndian.Uint32(p), binary.BigEndian.Uint32(p[4:])
	if little != big {
		v.t.Errorf("a number is %d in little endian and %d in big endian", little, big)
	}
	return little
}

func (v volume) record(p []byte) entry {
	v.t.Helper()
	n := int(p[32])
	e := entry{At: v.both(p[2:]), Size: v.both(p[10:]), Dir: p[25]&2 != 0, Name: string(p[33 : 33+n])}
	system := 33 + n
	if system%2 == 1 {
		system++ // the padding of an identifier of even length
	}
	e.System = string(p[min(system, int(p[0])):p[0]])
	switch {
	case e.Name == "\x00":
		e.Name = "."
	case e.Name == "\x01":
		e.Name = ".."
	case v.joliet:
		var wide []uint16
		for i := 0; i < n; i += 2 {
			wide = append(wide, binary.BigEndian.Uint16([]byte(e.Name[i:])))
		}
		e.Name = string(utf16.Decode(wide))
	}
	return e
}

// entries reads the records of a directory.
func (v volume) entries(dir entry) (all []entry) {
	v.t.Helper()
	p := v.img[int(dir.At)*block:][:dir.Size]
	for len(p) > 0 && p[0] != 0 {
		all = append(all, v.record(p))
		p = p[p[0]:]
	}
	return all
}

// field is a field of Rock Ridge (SUSP §4) in a record: its data, or "".
func (e entry) field(signature string) string {
	for p := e.System; len(p) > 3; p = p[p[2]:] {
		if p[:2] == signature {
			return p[4:p[2]]
		}
	}
	return ""
}

// links is the number of links of PX (RRIP §4.1.1).
func (e entry) links() string {
	px := e.field("PX")
	if len(px) < 16 {
		return ""
	}
	return fmt.Sprint(binary.LittleEndian.Uint32([]byte(px[8:])))
}

// Every directory begins with an entry of itself and one of its parent (ECMA-119,
// §6.8.2.2), by which guests resolve "." and ".."; Linux takes a directory's
// attributes from ".". All entries of a directory agree on them.
func TestDirectoriesNameThemselvesAndTheirParents(t *testing.T) {
	img, err := Build(full())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name       string
		descriptor int
		want       []string // paths of all files and directories
	}{
		{"primary", 16, []string{
			"/", "/OPENSTACK", "/OPENSTACK/2012_08_10", "/OPENSTACK/2012_08_10/META_DATA.JSON;1", "/OPENSTACK/2012_08_10/NETWORK_DATA.JSON;1",
			"/OPENSTACK/2012_08_10/USER_DATA;1", "/OPENSTACK/LATEST", "/OPENSTACK/LATEST/META_DATA.JSON;1",
			"/OPENSTACK/LATEST/NETWORK_DATA.JSON;1", "/OPENSTACK/LATEST/USER_DATA;1",
		}},
		{"joliet", 17, []string{
			"/", "/openstack", "/openstack/2012-08-10", "/openstack/2012-08-10/meta_data.json", "/openstack/2012-08-10/network_data.json",
			"/openstack/2012-08-10/user_data", "/openstack/latest", "/openstack/latest/meta_data.json",
			"/openstack/latest/network_data.json", "/openstack/latest/user_data",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := volume{t: t, img: img, joliet: tt.descriptor == 17}
			root := v.record(img[tt.descriptor*block+156:])
			if root.Name != "." || !root.Dir {
				t.Errorf("the descriptor's root is %+v", root)
			}
			var paths []string
			var walk func(path string, self, parent entry)
			walk = func(path string, self, parent entry) {
				paths = append(paths, path)
				all := v.entries(self)
				if len(all) < 3 {
					t.Fatalf("%s has the entries %+v", path, all)
				}
				for i, want := range []entry{{Name: ".", At: self.At, Size: self.Size, Dir: true}, {Name: "..", At: parent.At, Size: parent.Size, Dir: true}} {
					got := all[i]
					got.System = ""
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: entry %d (-want +got):\n%s", path, i, diff)
					}
				}
				folders := 0
				for _, e := range all[2:] {
					if e.Dir {
						folders++
						walk(strings.TrimSuffix(path, "/")+"/"+e.Name, e, self)
					} else {
						paths = append(paths, strings.TrimSuffix(path, "/")+"/"+e.Name)
					}
				}
				if tt.name != "primary" {
					return
				}
				// Rock Ridge: a directory has two links, and one per directory in it.
				up := v.entries(parent)
				want := fmt.Sprint(2 + folders)
				if got := all[0].links(); got != want {
					t.Errorf(`%s: its "." has %s links, want %s`, path, got, want)
				}
				if got := self.links(); path != "/" && got != want {
					t.Errorf("%s: its entry in its parent has %s links, want %s", path, got, want)
				}
				if got := all[1].links(); got != up[0].links() {
					t.Errorf(`%s: its ".." has %s links, the parent's "." has %s`, path, got, up[0].links())
				}
				if all[0].field("NM") != "" || all[1].field("NM") != "" {
					t.Errorf(`%s: "." or ".." has another name`, path)
				}
			}
			walk("/", root, root)
			slices.Sort(paths)
			if diff := cmp.Diff(tt.want, paths); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
			// SUSP §5.3, §5.5: the first entry of the root says that there is Rock Ridge.
			first := v.entries(root)[0]
			if got, want := first.field("SP") != "" && strings.Contains(first.field("ER"), "RRIP_1991A"), tt.name == "primary"; got != want {
				t.Errorf("the root identifies Rock Ridge: %t, want %t", got, want)
			}
			v.checkPathTables(img[tt.descriptor*block:], tt.want)
		})
	}
}

// checkPathTables compares the path tables of both byte orders (§9.4) with the
// directories.
func (v volume) checkPathTables(descriptor []byte, paths []string) {
	v.t.Helper()
	size := v.both(descriptor[132:])
	var want []string
	for _, p := range paths {
		if !strings.ContainsAny(p[strings.LastIndexByte(p, '/'):], ";_") || strings.HasSuffix(p, "2012_08_10") {
			want = append(want, p)
		}
	}
	for order, at := range map[binary.ByteOrder]uint32{
		binary.LittleEndian: binary.LittleEndian.Uint32(descriptor[140:]), binary.BigEndian: binary.BigEndian.Uint32(descriptor[148:]),
	} {
		p := v.img[int(at)*block:][:size]
		var found []string
		for len(p) > 0 {
			n := int(p[0])
			e := v.record(v.img[int(order.Uint32(p[2:]))*block:])
			if e.Name != "." || e.At != order.Uint32(p[2:]) {
				v.t.Errorf("%v: block %d of the path table begins with %+v", order, order.Uint32(p[2:]), e)
			}
			parent, name := int(order.Uint16(p[6:])), string(p[8:8+n])
			if v.joliet && name != "\x00" {
				var wide []uint16
				for i := 0; i < n; i += 2 {
					wide = append(wide, binary.BigEndian.Uint16([]byte(name[i:])))
				}
				name = string(utf16.Decode(wide))
			}
			switch {
			case name == "\x00":
				found = append(found, "/")
			case parent < 1 || parent > len(found):
				v.t.Fatalf("%v: the parent of %q is number %d", order, name, parent)
			default:
				found = append(found, strings.TrimSuffix(found[parent-1], "/")+"/"+name)
			}
			p = p[8+n+n%2:]
		}
		slices.Sort(found)
		if diff := cmp.Diff(want, found); diff != "" {
			v.t.Errorf("%v path table (-want +got):\n%s", order, diff)
		}
	}
}
