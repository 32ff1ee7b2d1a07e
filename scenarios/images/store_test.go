package images

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnsureCreatesTheDemoImages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "images")
	made, err := Ensure(dir)
	if err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	var want []Image
	for _, f := range [][2]string{{DemoRaw, "raw"}, {DemoQCOW2, "qcow2"}} {
		path := filepath.Join(dir, f[0])
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		want = append(want, Image{f[0], path, f[1], hex.EncodeToString(sum[:]), int64(len(content))})
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("Ensure, want to got:\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("directory holds %v, %v: want the two images and nothing else", entries, err)
	}
	again, err := Ensure(dir)
	if diff := cmp.Diff(made, again); err != nil || diff != "" {
		t.Errorf("Ensure again: %v\n%s", err, diff)
	}
}

func TestEnsureKeepsExistingFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DemoRaw)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := Ensure(dir)
	if err != nil || made[0].Size != 4 {
		t.Errorf("Ensure = %+v, %v: want the file of 4 bytes described", made, err)
	}
	if got, err := os.ReadFile(path); string(got) != "mine" {
		t.Errorf("%s holds %q, %v: want it untouched", DemoRaw, got, err)
	}
}

func TestEnsureRemovesTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	// A directory in the way of the rename.
	target := filepath.Join(dir, DemoRaw)
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeAtomically(target, []byte("x")); err == nil {
		t.Error("writing over a directory = nil error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v, %v: want no temporary file", entries, err)
	}
}
