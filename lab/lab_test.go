package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

func TestValidateNamesTheWrongFlag(t *testing.T) {
	good := DefaultSettings()
	if err := good.Validate(); err != nil {
		t.Fatalf("DefaultSettings: %v", err)
	}
	for _, tt := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Hosts = 0 }, "--hosts 0: use 1 to"},
		{func(s *Settings) { s.Hosts = -3 }, "--hosts -3"},
		{func(s *Settings) { s.Hosts = 10_000_000 }, "--hosts 10000000"},
		{func(s *Settings) { s.Speed = "fast" }, "--speed"},
		{func(s *Settings) { s.Speed = "0x" }, "--speed"},
		{func(s *Settings) { s.Speed = "NaNx" }, "--speed"},
		{func(s *Settings) { s.Listen = "everywhere" }, `--listen "everywhere": use loopback`},
		{func(s *Settings) { s.Profile = "toaster" }, "--profile toaster: there is no such profile: use one of "},
	} {
		s := good
		tt.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Validate(%+v) = %v, want %q in it", s, err, tt.want)
		}
	}
}

func TestSettingsAreStoredAndDifferencesNameFlags(t *testing.T) {
	dir := t.TempDir()
	if _, found, err := LoadSettings(dir); found || err != nil {
		t.Fatalf("LoadSettings of an empty directory = %v, %v", found, err)
	}
	made := Settings{Hosts: 7, Speed: "max", Kube: true}
	if err := made.save(dir); err != nil {
		t.Fatal(err)
	}
	got, found, err := LoadSettings(dir)
	if err != nil || !found || !reflect.DeepEqual(got, made) {
		t.Fatalf("LoadSettings = %+v, %v, %v, want %+v", got, found, err, made)
	}
	if err := made.Differences(got); err != nil {
		t.Errorf("Same(itself) = %v", err)
	}
	err = made.Differences(Settings{Hosts: 8, Speed: "1x", Seed: 3})
	for _, want := range []string{"--hosts is 7 there, not 8", "--seed is 1 there, not 3", "--speed is max there, not 1x", "--no-kube is false there, not true"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Same = %v, want %q in it", err, want)
		}
	}
	more := got
	more.With = []string{"hoc"}
	more.AddFamilies([]string{"nodes", "hoc"})
	if err := got.Differences(more); err != nil || !slices.Equal(more.With, []string{"hoc", "nodes"}) || !slices.Equal(more.FamiliesBeyond(got), more.With) {
		t.Errorf("Differences() of added families %q = %v, want none", more.With, err)
	}
	if err := more.Differences(got); err == nil || !strings.Contains(err.Error(), "--with is [hoc nodes] there, not []") {
		t.Errorf("Differences() of families that go = %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadSettings(dir); err == nil {
		t.Error("LoadSettings of a broken file = nil error")
	}
}

// start starts a lab without a Kubernetes API.
func start(t *testing.T, dir string) *Lab {
	t.Helper()
	w, err := Start(t.Context(), Config{Dir: dir, Settings: Settings{Hosts: 2, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return w
}

func TestManifestRegistersEveryServer(t *testing.T) {
	dir := t.TempDir()
	w := start(t, dir)
	b, err := os.ReadFile(filepath.Join(dir, HostsFile))
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(strings.TrimPrefix(string(b), "---\n"), "\n---\n")
	if len(docs) != 4 {
		t.Fatalf("%d documents, want a Secret and a BareMetalHost for 2 servers:\n%s", len(docs), b)
	}
	for i, h := range w.Hosts() {
		var secret corev1.Secret
		var host metal3.BareMetalHost
		if err := yaml.UnmarshalStrict([]byte(docs[2*i]), &secret); err != nil {
			t.Errorf("document %d: %v", 2*i, err)
		}
		if err := yaml.UnmarshalStrict([]byte(docs[2*i+1]), &host); err != nil {
			t.Errorf("document %d: %v", 2*i+1, err)
		}
		wantSecret, wantHost := Objects(h)
		if diff := cmp.Diff(wantSecret, &secret); diff != "" {
			t.Errorf("server %s: the Secret differs from what the lab itself would create:\n%s", h.Name, diff)
		}
		if diff := cmp.Diff(wantHost, &host); diff != "" {
			t.Errorf("server %s: the BareMetalHost differs likewise:\n%s", h.Name, diff)
		}
		if host.Spec.Image != nil || strings.Contains(docs[2*i+1], "status:") {
			t.Errorf("server %s: the manifest asks for more than to be registered:\n%s", h.Name, docs[2*i+1])
		}
	}
	if st, err := os.Stat(filepath.Join(dir, HostsFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%s holds passwords, and has mode %v", HostsFile, st.Mode())
	}
}

func TestRestartedLabHasTheSameAddresses(t *testing.T) {
	dir := t.TempDir()
	one := start(t, dir)
	hosts, url, secure, before := one.Hosts(), one.ImagesURL(), one.SecureImagesURL(), one.Clock().Now()
	if err := one.Stop(); err != nil {
		t.Fatal(err)
	}
	two := start(t, dir)
	if got := two.Hosts(); got[0] != hosts[0] || got[1] != hosts[1] {
		t.Errorf("hosts %+v, want %+v", got, hosts)
	}
	if two.ImagesURL() != url || two.SecureImagesURL() != secure {
		t.Errorf("images at %s and %s, want %s and %s: objects name them", two.ImagesURL(), two.SecureImagesURL(), url, secure)
	}
	if two.Clock().Now().Before(before) {
		t.Errorf("time went back from %v to %v", before, two.Clock().Now())
	}
	if _, err := Start(t.Context(), Config{Dir: dir, Settings: Settings{Hosts: 2, Speed: "max"}, Listen: AnyPort}); err == nil {
		t.Error("Start in a directory that is in use = nil error")
	}
	if _, err := two.Control().Status(t.Context()); err != nil {
		t.Errorf("the refused start has hurt the running lab: %v", err)
	}
}

func TestImagesAreServedWithTheirChecksums(t *testing.T) {
	w := start(t, t.TempDir())
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.Rack().CAs()}}}
	defer trusting.CloseIdleConnections()
	for _, name := range []string{images.DemoRaw, images.DemoQCOW2} {
		for _, suffix := range []string{"", ".sha256", ".sha512", ".md5"} {
			for _, base := range []string{w.ImagesURL(), w.SecureImagesURL()} { // with a certificate of the lab's
				resp, err := trusting.Get(base + name + suffix)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || suffix != "" && !strings.Contains(string(b), name) {
					t.Errorf("GET %s%s%s = %d, %v", base, name, suffix, resp.StatusCode, err)
				}
			}
		}
	}
}

func TestDownOfTheControlAPIEndsTheLab(t *testing.T) {
	dir := t.TempDir()
	w := start(t, dir)
	ended := make(chan error, 1)
	go func() {
		err := w.Wait(context.Background())
		ended <- err
		_ = w.Stop() // reported by the clean-up, too
	}()
	if err := w.Control().Down(t.Context()); err != nil {
		t.Fatalf("Down: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Wait = %v, want nil: somebody asked for it", err)
	}
	if err := w.Failure(); err != nil {
		t.Errorf("Failure = %v, want nil: somebody asked for the end", err)
	}
}

// A part that ends by itself ends the lab, and Wait and Failure return its error.
func TestALabSaysWhichPartHasEndedIt(t *testing.T) {
	l, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Failure(); err != nil {
		t.Errorf("Failure of a running lab = %v, want none", err)
	}
	failed := errors.New("the part has lost its port")
	l.run(func(context.Context) error { return failed })
	if err := l.Wait(t.Context()); !errors.Is(err, failed) {
		t.Errorf("Wait = %v, want %v", err, failed)
	}
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
	if err := l.Failure(); !errors.Is(err, failed) {
		t.Errorf("Failure after Stop = %v, want %v", err, failed)
	}
}

// The state of a lab holds passwords, keys and tokens. Nobody else can read it, but for
// the certificate of the lab's authority, which clients need.
func TestFilesOfALabArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	w, err := Start(t.Context(), Config{Dir: dir, Settings: Settings{Hosts: 1, Speed: "max", Kube: true}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	kube, err := w.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	secret, host := Objects(w.Hosts()[0])
	for _, o := range []client.Object{secret, host} {
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	awaitAgentKey(t, filepath.Join(dir, networkBootDir))
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		public := strings.HasPrefix(path, filepath.Join(dir, ImagesDir)) || e.Name() == "ca.crt"
		if st.Mode().Perm()&0o077 != 0 && !public {
			t.Errorf("%s has mode %v: others can use it", path, st.Mode().Perm())
		}
		files++
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files, %v", files, err)
	}
}

// awaitAgentKey returns when a server's agent has made its key.
func awaitAgentKey(t *testing.T, dir string) {
	t.Helper()
	patience.Await(t, "an agent makes a key", func() bool {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*.key"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found) > 0
	})
}
