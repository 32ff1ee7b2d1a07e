package module

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file is an entry of a test's archive.
func file(name, content string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), PAXRecords: map[string]string{"TEST.content": content}}
}

func symlink(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

func hardlink(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func directory(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}

// tarred returns a tar file with these entries.
func tarred(t testing.TB, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := h.PAXRecords["TEST.content"]
		h.PAXRecords = nil
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const goodMetadata = "name: sample\nversion: 1.0.0\nplaybook: main.yaml\n"

// sample returns the archive of a module with more entries.
func sample(t testing.TB, more ...*tar.Header) []byte {
	t.Helper()
	return zipped(t, tarred(t, append([]*tar.Header{file("metadata.yaml", goodMetadata), file("main.yaml", "- hosts: all\n")}, more...)...))
}

// damaged returns data with its last byte changed.
func damaged(data []byte) []byte {
	out := bytes.Clone(data)
	out[len(out)-5] ^= 1
	return out
}

// bomb returns the archive of a file of zeros.
func bomb(t testing.TB, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Mode: 0o600, Size: size}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// statement H4: archives that are broken or not safe.
func TestUnsafeArchivesAreRefused(t *testing.T) {
	many := make([]*tar.Header, MaxEntries+1)
	for i := range many {
		many[i] = file(fmt.Sprint("f", i), "")
	}
	for _, tt := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"nothing", nil, "not compressed by gzip"},
		{"no gzip", []byte("a module"), "not compressed by gzip"},
		{"no tar", zipped(t, []byte(strings.Repeat("a module", 100))), "not a tar file"},
		{"cut gzip", sample(t)[:60], "archive is not a tar file"},
		{"damaged checksum", damaged(sample(t)), "archive is damaged"},
		{"more after it", append(sample(t), "and more"...), "archive is damaged"},
		{"no metadata", zipped(t, tarred(t, file("main.yaml", "a"))), "archive has no file metadata.yaml"},
		{"metadata below a directory", zipped(t, tarred(t, file("sample/metadata.yaml", goodMetadata))), "archive has no file metadata.yaml"},
		{"metadata that is a link", zipped(t, tarred(t, file("m", goodMetadata), symlink("metadata.yaml", "m"))), "metadata.yaml is not a file"},
		{"metadata that is too large", zipped(t, tarred(t, file("metadata.yaml", strings.Repeat("#", maxMetadata+1)))), "metadata.yaml has more than 64 KiB"},
		{"no playbook", zipped(t, tarred(t, file("metadata.yaml", goodMetadata))), "playbook: archive has no file main.yaml"},
		{"path to the parent", sample(t, file("../x", "a")), `"../x": path has ..`},
		{"path to the parent inside", sample(t, file("a/../../x", "a")), `path has ..`},
		{"path to the parent that stays", sample(t, file("a/../x", "a")), `path has ..`},
		{"absolute path", sample(t, file("/etc/cron.d/x", "a")), "path is absolute"},
		{"backslash", sample(t, file(`..\x`, "a")), "backslash"},
		{"long path", sample(t, file(strings.Repeat("a/", maxPath/2)+"b", "a")), "more than 1024 bytes"},
		{"link to the root directory", sample(t, symlink("l", "/etc")), `link to "/etc": the target must be relative`},
		{"link to the parent", sample(t, symlink("l", "..")), `link to ".." leaves the root`},
		{"link to the parent below", sample(t, directory("a/b"), symlink("a/b/l", "../../../etc")), "leaves the root"},
		{"link out and in", sample(t, symlink("l", "../archive/main.yaml")), "leaves the root"},
		{"link through a link", sample(t, directory("a/b/c"), symlink("a/b/c/up", "../../.."), symlink("l", "a/b/c/up/..")), `leads through the link "a/b/c/up"`},
		{"link without a target", sample(t, symlink("l", "")), "target must be relative"},
		{"file below a link", sample(t, symlink("l", "main.yaml"), file("l/x", "a")), `is below "l", which is no directory`},
		{"file below a link that comes later", sample(t, file("l/x", "a"), symlink("l", ".")), `is below "l", which is no directory`},
		{"file below a file", sample(t, file("main.yaml/x", "a")), `is below "main.yaml"`},
		{"hard link to a file of the system", sample(t, hardlink("l", "/etc/shadow")), `link to "/etc/shadow": path is absolute`},
		{"hard link to the parent", sample(t, hardlink("l", "../x")), "path has .."},
		{"hard link to a file that is not there", sample(t, hardlink("l", "later"), file("later", "a")), "no file before it"},
		{"hard link to a link", sample(t, symlink("s", "main.yaml"), hardlink("l", "s")), "no file before it"},
		{"character device", sample(t, &tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}), "device file"},
		{"block device", sample(t, &tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}), "device file"},
		{"named pipe", sample(t, &tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"}), "device file"},
		{"file twice", sample(t, file("main.yaml", "b")), `"main.yaml": is there twice`},
		{"file twice by another spelling", sample(t, file("./main.yaml", "b")), "is there twice"},
		{"root that is a file", sample(t, file(".", "b")), "the root is not a directory"},
		{"bomb", bomb(t, MaxUnpacked+1), "more than 256 MiB unpacked"},
		{"too many files", sample(t, many...), "more than 10000 entries"},
	} {
		if _, err := Load(tt.archive); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Load error = %v, want %q", tt.name, err, tt.want)
		}
	}
}

// endless is an archive without an end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) { e.read += int64(len(p)); return len(p), nil }

func TestArchiveThatIsTooLongIsNotReadToItsEnd(t *testing.T) {
	r := &endless{}
	if _, err := Read(r); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("Read error = %v, want its limit", err)
	}
	if r.read > 2*MaxArchive+1<<20 {
		t.Errorf("%d bytes were read", r.read)
	}
}

func TestUnpack(t *testing.T) {
	archive := zipped(t, tarred(t,
		directory("./"), file("./metadata.yaml", goodMetadata), file("main.yaml", "- hosts: all\n"),
		file("roles/a/tasks/main.yaml", "[]\n"), directory("roles/a/"), // a directory may follow its files
		&tar.Header{Typeflag: tar.TypeReg, Name: "run", Mode: 0o6777},
		symlink("roles/link", "a/tasks"), symlink("top", "roles/link"), symlink("roles/here", "../main.yaml"), hardlink("same", "main.yaml"),
	))
	m, err := Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"main.yaml", "metadata.yaml", "roles/a/tasks/main.yaml", "run"}, m.Archive.Files()); diff != "" {
		t.Errorf("Files (-want +got):\n%s", diff)
	}
	dir := filepath.Join(t.TempDir(), "new", "module")
	if err := m.Archive.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"metadata.yaml": goodMetadata, "roles/a/tasks/main.yaml": "[]\n", "roles/link/main.yaml": "[]\n", "top/main.yaml": "[]\n", "roles/here": "- hosts: all\n", "same": "- hosts: all\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "run")); err != nil || info.Mode() != 0o755 {
		t.Errorf("a file with set-ID bits and writable by all: %v, %v, want mode 0755", info, err)
	}
	if err := m.Archive.Unpack(dir); err == nil || !strings.Contains(err.Error(), "must be an empty directory") {
		t.Errorf("Unpack to a directory with files: %v", err)
	}
}

// Whatever bytes an archive has: what Read accepts stays below the directory that it is
// unpacked in.
func FuzzArchive(f *testing.F) {
	f.Add(sample(f))
	f.Add(sample(f, directory("a/b/c"), symlink("a/b/c/up", "../../.."), symlink("l", "a/b/c/up/..")))
	f.Add(sample(f, file("../x", "a"), hardlink("l", "main.yaml")))
	f.Add(tarred(f, file("main.yaml", "a"), symlink("l", "..")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2 && data[0] != 0x1f { // a tar file: most mutations of gzip are damaged
			data = zipped(t, data)
		}
		a, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		outside := t.TempDir()
		dir := filepath.Join(outside, "deep", "module")
		if err := a.Unpack(dir); err != nil {
			if entries, _ := os.ReadDir(filepath.Join(outside, "deep")); len(entries) > 1 {
				t.Errorf("Unpack has written %v beside its directory", entries)
			}
			return // such as a name that is too long for the file system
		}
		entries, err := os.ReadDir(filepath.Join(outside, "deep"))
		if err != nil || len(entries) != 1 {
			t.Errorf("beside the directory: %v, %v", entries, err)
		}
		err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.Type()&os.ModeSymlink == 0 {
				return err
			}
			target, err := filepath.EvalSymlinks(name)
			if err == nil && target != dir && !strings.HasPrefix(target, dir+"/") {
				t.Errorf("%s leads to %s, outside of %s", name, target, dir)
			}
			return nil // a link may lead to nothing, or to itself
		})
		if err != nil {
			t.Error(err)
		}
	})
}
