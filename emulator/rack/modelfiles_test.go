package rack_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
)

// folder makes a user's folder with one model.
func folder(t *testing.T) (dir, profile string) {
	t.Helper()
	b, err := fs.ReadFile(fixtures.Profiles, "profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, text := range map[string]string{
		"profiles/mine.yaml": strings.NewReplacer("name: generic\n", "name: mine\n", "dialect: generic", "dialect: ours").Replace(string(b)),
		"dialects/ours.yaml": "name: ours\nbase: generic\nvendor: Ours\n",
	} {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(dir, "profiles", "mine.yaml")
}

func TestKeepModelsStoresThem(t *testing.T) {
	from, profile := folder(t)
	for _, at := range []string{from, profile} {
		f, err := rack.LoadModels(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Profiles(); len(got) != 1 || got[0] != "mine" || len(f) != 2 {
			t.Errorf("LoadModels(%s) has %v of %d files", at, got, len(f))
		}
	}
	f, err := rack.LoadModels(from)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := rack.KeepModels(dir, f); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	r := rackfile.Default(1)
	r.Hosts[0].Profile = "mine"
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: &r})
	if got := l.First().Dialect().Vendor; got != "Ours" {
		t.Errorf("the vendor is %q", got)
	}
	// Snapshots contain the models too.
	to := filepath.Join(t.TempDir(), "s.tar")
	if _, err := l.SaveSnapshot(t.Context(), to, nil); err != nil {
		t.Fatal(err)
	}
	l.Stop()
	other := filepath.Join(t.TempDir(), "other")
	if _, err := rack.RestoreSnapshot(t.Context(), other, to, nil); err != nil {
		t.Fatal(err)
	}
	if got := racktest.Start(t, rack.Config{Dir: other}).First().Dialect().Vendor; got != "Ours" {
		t.Errorf("the vendor is %q after a snapshot", got)
	}
	// The models of existing servers cannot change.
	if err := rack.KeepModels(dir, f); err != nil {
		t.Errorf("the same models again: %v", err)
	}
	f["dialects/ours.yaml"] = append(f["dialects/ours.yaml"], "product: x\n"...)
	if err := rack.KeepModels(dir, f); err == nil || !strings.Contains(err.Error(), "made with another one") {
		t.Errorf("another model of the same name: %v", err)
	}
}

func TestLoadModelsErrors(t *testing.T) {
	for want, change := range map[string]func(dir string) error{
		"no such file":      os.RemoveAll,
		"holds no profiles": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "profiles")) },
		`profiles/mine.yaml:3: dialect: "ours": there is no such dialect`: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "dialects")) },
		`dialects/ours.yaml: base: "": there is no such dialect`: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "dialects/ours.yaml"), []byte("name: ours"), 0o644)
		},
	} {
		dir, _ := folder(t)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := rack.LoadModels(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadModels = %v, want an error with %q", err, want)
		}
	}
	if err := rack.KeepModels(t.TempDir(), rack.Files{"profiles/generic.yaml": nil}); err == nil || !strings.Contains(err.Error(), "built-in") {
		t.Errorf("a model in place of a built-in one: %v", err)
	}
	other := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(other, []byte("kind: Lab\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := rack.LoadModels(other); err == nil || !strings.Contains(err.Error(), "is no profile") {
		t.Errorf("a file that is no profile: %v", err)
	}
}
