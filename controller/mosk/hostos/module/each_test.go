package module

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachHasWhatUnpackWrites(t *testing.T) {
	a, err := Read(bytes.NewReader(zipped(t, tarred(t,
		symlink("first", "a/b"), file("a/b", "one"), &tar.Header{Typeflag: tar.TypeReg, Name: "run", Mode: 0o6777}, hardlink("a/c/same", "a/b"), directory("d"),
	))))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = a.Each(func(f File) error {
		content := ""
		if f.Content != nil {
			b, err := io.ReadAll(f.Content)
			if err != nil {
				return err
			}
			content = string(b)
		}
		got = append(got, fmt.Sprintf("%s %s %s%s", f.Mode, f.Name, content, f.Link))
		return nil
	})
	want := []string{"drwxr-xr-x d ", "-rw-r--r-- a/b one", "-rwxr-xr-x run ", "Lrwxrwxrwx first a/b", "Lrwxrwxrwx a/c/same ../../a/b"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Each error = %v (-want +got):\n%s", err, diff)
	}
}
