package sandbox_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// FuzzNames stores a file of any name that Linux takes beside the directory that it would hide if
// it were a whiteout (OCI Image Format Specification, "Whiteouts"), and reads it again.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", ".wh.dir", ".wh..wh..opq", ".wh.", "\xff", "a\nb", " ", "...", strings.Repeat("n", 255), "é", "a=b", "-"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "." || name == ".." || name == "dir" || name == "gone" || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			return // Linux has no such name, or it is another of the test
		}
		in := sandbox.Tree{path.Join("var", name): sandbox.File(0o644, "x"), "var/dir/deep/file": sandbox.File(0o600, "y"), "var/gone": {Removed: true}}
		b, err := in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := sandbox.Decode(b)
		if diff := cmp.Diff(in, got, cmpopts.IgnoreFields(sandbox.Node{}, "Modified")); diff != "" || err != nil {
			t.Errorf("Decode(Encode()): error %v, (-want +got):\n%s", err, diff)
		}
	})
}

// FuzzDecode reads a layer that somebody has damaged.
func FuzzDecode(f *testing.F) {
	b, err := sandbox.Tree{"etc/.wh.a": sandbox.File(0o644, "x"), "etc/b": {Removed: true}}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := sandbox.Decode(b)
		if err != nil {
			return
		}
		for name := range tree {
			if sandbox.Clean(name) != name || name == "." {
				t.Errorf("Decode accepts the name %q", name)
			}
		}
	})
}
