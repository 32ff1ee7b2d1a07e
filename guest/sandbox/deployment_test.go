package sandbox

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
)

// diskOf is a store that survives boots.
type diskOf struct {
	b    []byte
	fail error
}

func (d *diskOf) Load() ([]byte, error) { return d.b, nil }
func (d *diskOf) Save(b []byte) error {
	if d.fail != nil {
		return d.fail
	}
	d.b = slices.Clone(b)
	return nil
}

func bootOfDisk(d *diskOf, boot string) *System {
	return New(Config{Base: Tree{"etc/os-release": File(0o644, "ID=installed\n"), "etc/hosts": File(0o644, "base\n")}, Store: d, Boot: sys.Boot{ID: boot}})
}

func contents(t *testing.T, s *System, names ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range names {
		b, err := s.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out[name] = "-"
		case err != nil:
			t.Fatalf("ReadFile(%s) error = %v", name, err)
		default:
			out[name] = string(b)
		}
	}
	return out
}

func TestStagedRootIsBootedByTheNextBoot(t *testing.T) {
	d := &diskOf{}
	s := bootOfDisk(d, "1")
	must(t, s.Put(Tree{"etc/hostname": File(0o644, "node-0"), "etc/a.conf": File(0o644, "local"), "var/lib/x": File(0o600, "kept")}))
	image := Tree{"etc/os-release": File(0o644, "ID=image\n"), "etc/a.conf": File(0o640, "image"), "etc/b.conf": File(0o644, "image")}
	want := Deployment{Image: "r/i@sha256:1", Arguments: []string{"quiet", "nosmt"}}
	must(t, s.Stage(want, image, []string{"/etc/a.conf"}))
	names := []string{"etc/os-release", "etc/hostname", "etc/a.conf", "etc/b.conf", "etc/hosts", "var/lib/x", "proc/cmdline"}
	before := map[string]string{"etc/os-release": "ID=installed\n", "etc/hostname": "node-0", "etc/a.conf": "local", "etc/b.conf": "-", "etc/hosts": "base\n", "var/lib/x": "kept", "proc/cmdline": "-"}
	if diff := cmp.Diff(before, contents(t, s, names...)); diff != "" {
		t.Errorf("files of the boot that stages (-want +got):\n%s", diff)
	}
	must(t, s.Put(Tree{"etc/late": File(0o644, "late")})) // a change after staging keeps the staged root

	// The lab is started again: the same boot goes on.
	s = bootOfDisk(d, "1")
	if diff := cmp.Diff(before, contents(t, s, names...)); diff != "" {
		t.Errorf("files after a restart of the lab (-want +got):\n%s", diff)
	}
	s = bootOfDisk(d, "2")
	after := map[string]string{"etc/os-release": "ID=image\n", "etc/hostname": "node-0", "etc/a.conf": "image", "etc/b.conf": "image", "etc/hosts": "-", "var/lib/x": "kept", "proc/cmdline": "quiet nosmt\n"}
	if diff := cmp.Diff(after, contents(t, s, names...)); diff != "" {
		t.Errorf("files after the boot (-want +got):\n%s", diff)
	}
	got, err := s.Deployments()
	if diff := cmp.Diff(Deployments{Booted: want, Previous: &Deployment{}}, got); diff != "" || err != nil {
		t.Errorf("Deployments (-want +got):\n%s%v", diff, err)
	}

	// The previous root comes back with its /etc, but /var is shared.
	must(t, s.Put(Tree{"etc/b.conf": File(0o644, "changed"), "var/lib/y": File(0o600, "new")}))
	must(t, s.Rollback())
	s = bootOfDisk(d, "3")
	names = append(names, "var/lib/y", "etc/late")
	before["var/lib/y"], before["etc/late"], before["proc/cmdline"] = "new", "late", "\n"
	if diff := cmp.Diff(before, contents(t, s, names...)); diff != "" {
		t.Errorf("files after the rollback (-want +got):\n%s", diff)
	}
	if got, err := s.Deployments(); err != nil || got.Booted.Image != "" || got.Previous == nil || got.Previous.Image != want.Image {
		t.Errorf("Deployments after the rollback = %+v, %v, want the installation booted and the image as previous", got, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedRootIsNotBooted(t *testing.T) {
	d := &diskOf{}
	s := bootOfDisk(d, "1")
	must(t, s.Stage(Deployment{Image: "r/i@sha256:1"}, Tree{"etc/os-release": File(0o644, "ID=image\n")}, nil))
	i := bytes.Index(d.b, []byte{0x1f, 0x8b}) // the root's content follows the head
	d.b[i+20] ^= 0xff
	var lines []string
	s = New(Config{Base: Tree{"etc/os-release": File(0o644, "ID=installed\n")}, Store: d, Boot: sys.Boot{ID: "2"}, Report: func(l string) { lines = append(lines, l) }})
	if got := contents(t, s, "etc/os-release"); got["etc/os-release"] != "ID=installed\n" {
		t.Errorf("a damaged root was booted: os-release = %q", got)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "checksum") {
		t.Errorf("console = %q, want a line about the checksum", lines)
	}
}

func TestFailedStoreStagesNothing(t *testing.T) {
	d := &diskOf{}
	s := bootOfDisk(d, "1")
	must(t, s.Put(Tree{"etc/x": File(0o644, "x")}))
	was := slices.Clone(d.b)
	d.fail = errors.New("the disk is full")
	if err := s.Stage(Deployment{Image: "r/i@sha256:1"}, Tree{"etc/a": File(0o644, "a")}, nil); !errors.Is(err, d.fail) {
		t.Errorf("Stage error = %v, want %v", err, d.fail)
	}
	if !bytes.Equal(was, d.b) {
		t.Error("a Stage that failed has changed the disk")
	}
}

func TestWatchReportsChanges(t *testing.T) {
	s := bootOfDisk(&diskOf{}, "1")
	n := 0
	var local Tree
	stop := s.Watch(func(tree Tree) { n, local = n+1, tree })
	must(t, s.Put(Tree{"etc/a": File(0o644, "a")}))
	if string(local["etc/a"].Content) != "a" || len(local["etc/hosts"].Content) > 0 {
		t.Errorf("local files = %v, want the one that was put, and none of the base", local)
	}
	must(t, s.Put(Tree{"run/force": File(0o644, "")}))
	must(t, s.Remove("etc/a", "run/force"))
	if n != 3 {
		t.Errorf("%d changes were reported, want 3", n)
	}
	must(t, s.Stage(Deployment{Image: "r/i@sha256:1"}, Tree{"etc/a": File(0o644, "a")}, nil))
	if n != 3 {
		t.Error("staging a root was reported as a change of files")
	}
	stop()
	must(t, s.Put(Tree{"etc/b": File(0o644, "b")}))
	if n != 3 {
		t.Error("a change was reported after stop")
	}
}

func layerOf(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := h.PAXRecords["comment"]
		h.PAXRecords = nil
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = int64(len(content))
		}
		must(t, w.WriteHeader(&h))
		if content != "" {
			_, err := w.Write([]byte(content))
			must(t, err)
		}
	}
	must(t, w.Close())
	return &b
}

func entry(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: map[string]string{"comment": content}}
}

func TestUnpackAppliesLayers(t *testing.T) {
	got, err := Unpack(
		layerOf(t, tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, entry("etc/a", "1"), entry("etc/gone", "1"), entry("opt/d/x", "1"), entry("etc/same", "1")),
		layerOf(t, entry("etc/a", "2"), entry("etc/.wh.gone", ""), entry("opt/d/.wh..wh..opq", ""), entry("opt/d/y", "2"), tar.Header{Name: "etc/hard", Typeflag: tar.TypeLink, Linkname: "etc/same"},
			tar.Header{Name: "etc/soft", Typeflag: tar.TypeSymlink, Linkname: "../opt/d/y"}),
	)
	must(t, err)
	have := map[string]string{}
	for name, n := range got {
		if !n.Mode.IsDir() {
			have[name] = string(n.Content) + n.Link
		}
	}
	want := map[string]string{"etc/a": "2", "opt/d/y": "2", "etc/same": "1", "etc/hard": "1", "etc/soft": "../opt/d/y"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("Unpack (-want +got):\n%s", diff)
	}
}

// The must of the issue: hostile layers are refused, and nothing is unpacked.
func TestUnpackRefusesHostileLayers(t *testing.T) {
	many := make([]tar.Header, 0, 100_000)
	for i := range 100_000 {
		many = append(many, entry("f/"+fmt.Sprint(i), ""))
	}
	for _, tt := range []struct {
		name string
		in   []tar.Header
		want string
	}{
		{"path out of the root", []tar.Header{entry("etc/../../../x", "")}, "leaves the root"},
		{"link out of the root", []tar.Header{{Name: "etc/l", Typeflag: tar.TypeSymlink, Linkname: "../../x"}}, "leaves the root"},
		{"hard link out of the root", []tar.Header{{Name: "etc/l", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}}, "leaves the root"},
		{"hard link to nothing", []tar.Header{{Name: "etc/l", Typeflag: tar.TypeLink, Linkname: "etc/none"}}, "there is no file"},
		{"file below a link", []tar.Header{{Name: "etc/l", Typeflag: tar.TypeSymlink, Linkname: "/var"}, entry("etc/l/x", "")}, "no directory"},
		{"device", []tar.Header{{Name: "dev/sda", Typeflag: tar.TypeBlock, Devmajor: 8}}, "not stored"},
		{"too many bytes", []tar.Header{{Name: "a", Typeflag: tar.TypeReg, Size: maxImageBytes + 1}}, "256 MiB"},
		{"too many files", many, "50000 files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range tt.in {
				h.PAXRecords = nil
				must(t, w.WriteHeader(&h))
				if h.Size > 0 {
					break // the content is not read
				}
			}
			got, err := Unpack(&b)
			if refused := new(ImageError); !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("Unpack = %d files, %v, want an ImageError with %q", len(got), err, tt.want)
			}
		})
	}
}
