package lab

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// damages are the ways to damage a file with content b.
var damages = map[string]func(name string, b []byte) error{
	"empty":   func(name string, _ []byte) error { return os.Truncate(name, 0) },
	"half":    func(name string, b []byte) error { return os.Truncate(name, int64(len(b)/2)) },
	"missing": func(name string, _ []byte) error { return os.Remove(name) },
	"one byte changed": func(name string, b []byte) error {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte{b[len(b)/2] ^ 0x20}, int64(len(b)/2))
		return errors.Join(err, f.Close())
	},
	"a directory": func(name string, _ []byte) error {
		return errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o700))
	},
}

// imageSum returns the checksum of an image that a lab serves.
func imageSum(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ImagesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// A lab one of whose files was damaged while it was down starts without a loss, or does
// not start, with an error that has the file and the fix. It starts once the file is as it
// was.
func TestDamagedFilesOfAStoppedLab(t *testing.T) {
	c := Config{Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max", Kube: true}, Listen: AnyPort}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}, Data: map[string]string{"a": "b"}}
	run := func(do func(client.Client) error) {
		t.Helper()
		w, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		api, err := w.Kubernetes()
		if err == nil {
			err = do(api)
		}
		if err = errors.Join(err, w.Stop()); err != nil {
			t.Fatal(err)
		}
	}
	unchanged := func(api client.Client) error {
		var got corev1.ConfigMap
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), &got); err != nil {
			return err
		}
		if got.Data["a"] != "b" {
			t.Errorf("the object has %v", got.Data)
		}
		return nil
	}
	run(func(api client.Client) error { return api.Create(t.Context(), object) })
	// It also has the log of a detached lab, and a server that booted from the network.
	for name, text := range map[string]string{LogFile: "a log", networkBootDir + "/node-0.json": `{"boot":7}`} {
		if err := errors.Join(os.MkdirAll(filepath.Join(c.Dir, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	run(unchanged)

	demo := map[string]string{images.DemoRaw: imageSum(t, c.Dir, images.DemoRaw), images.DemoQCOW2: imageSum(t, c.Dir, images.DemoQCOW2)}

	// Files that a start makes anew. A missing files.json is harmless, too: nothing is compared
	// without it. Without view.token pages get a new token, and a changed one is a new token.
	remade := map[string]bool{
		HostsFile: true, LogFile: true, "lock": true, "state.log": true, "state.mark": true, "kube/lock": true, "ballast": true, "kube/kubeconfig": true,
		"images/metalab-demo.img": true, "images/metalab-demo.qcow2": true,
	}
	var names []string
	err := filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, relErr := filepath.Rel(c.Dir, path)
			names, err = append(names, name), relErr
		}
		return err
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("%q, %v", names, err)
	}
	harmless := map[string][]string{} // names by damage
	for _, name := range names {
		path := filepath.Join(c.Dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for damage, do := range damages {
			if damage != "a directory" && remade[name] || damage == "missing" && name == "files.json" || name == view.TokenFile && (damage == "missing" || damage == "one byte changed") {
				harmless[damage] = append(harmless[damage], name)
				continue
			}
			if err := do(path, b); err != nil {
				t.Fatal(err)
			}
			w, err := Start(t.Context(), c)
			if err == nil {
				t.Fatalf("%s, %s: the lab starts, and Stop() = %v", name, damage, w.Stop())
			}
			if text := err.Error(); !strings.Contains(text, path) || !strings.Contains(text, "remove ") && !strings.Contains(text, "move it away") {
				t.Errorf("%s, %s: %v, want the file and what to do", name, damage, err)
			}
			if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, b, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for damage, names := range harmless { // all at once: each start takes seconds
		for _, name := range names {
			path := filepath.Join(c.Dir, name)
			b, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // the log, after it went missing
			}
			if err == nil && len(b) > 0 {
				err = damages[damage](path, b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		run(unchanged)
		for _, image := range []string{images.DemoRaw, images.DemoQCOW2} {
			if sum := imageSum(t, c.Dir, image); sum != demo[image] {
				t.Errorf("%s: %s has the checksum %s, want %s", damage, image, sum, demo[image])
			}
		}
	}
}

// All that a lab makes in its directory, while it runs and after, is in Owned: labctl removes
// that, and leaves the rest as a user's.
func TestALabMakesOnlyFilesThatItOwns(t *testing.T) {
	c := Config{Dir: filepath.Join(t.TempDir(), "state"), Settings: Settings{Hosts: 2, Speed: "max", Kube: true, With: config.Families}, Listen: AnyPort}
	w, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	names, err := Owned().Foreign(c.Dir)
	if err := errors.Join(err, w.ReplaceElementalCertificate(true), w.Stop()); err != nil {
		t.Fatal(err)
	}
	after, err := Owned().Foreign(c.Dir)
	if len(names)+len(after) > 0 || err != nil {
		t.Errorf("of a lab that runs, Owned lacks %q, and of one that has stopped %q, %v", names, after, err)
	}
	if !HoldsLab(c.Dir) {
		t.Error("the directory of a lab holds no lab")
	}
	mine := filepath.Join(c.Dir, ImagesDir, "mine.img")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := Remove(c.Dir, Owned())
	if err != nil || !slices.Equal(left.Foreign, []string{mine}) || HoldsLab(c.Dir) {
		t.Errorf("Remove() = %+v, %v, want %s left", left, err, mine)
	}
}

// A lab is known by two of three files: one may be lost, and one alone is of another program.
func TestHoldsLab(t *testing.T) {
	for names, want := range map[string]bool{
		"": false, "settings.json": false, "state.db": false, "lock": false, "files.json hosts.yaml ca.crt": false,
		"settings.json state.db": true, "settings.json lock": true, "state.db lock": true, "settings.json state.db lock": true,
	} {
		dir := t.TempDir()
		for _, name := range strings.Fields(names) {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := HoldsLab(dir); got != want {
			t.Errorf("HoldsLab() with %q = %t, want %t", names, got, want)
		}
	}
}
