package osimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

const baseRef = "registry.example.org/os@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// base returns a base image with a few files, a link and a unit.
func base(t *testing.T) v1.Image {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []struct {
		tar.Header
		text string
	}{
		{tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}, ""},
		{tar.Header{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644}, "root:x:0:0::/:/bin/sh\ncore:x:1000:1000::/var/home/core:/bin/sh\n"},
		{tar.Header{Name: "etc/motd", Typeflag: tar.TypeReg, Mode: 0o644}, "base\n"},
		{tar.Header{Name: "run/", Typeflag: tar.TypeDir, Mode: 0o755}, ""},
		{tar.Header{Name: "var/", Typeflag: tar.TypeDir, Mode: 0o755}, ""},
		{tar.Header{Name: "var/run", Typeflag: tar.TypeSymlink, Linkname: "../run"}, ""},
		{tar.Header{Name: "usr/lib/systemd/system/chronyd.service", Typeflag: tar.TypeReg, Mode: 0o644}, "[Install]\nWantedBy=multi-user.target\n"},
	} {
		h.Size = int64(len(h.text))
		if err := w.WriteHeader(&h.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(h.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := Base(b.Bytes(), "amd64", map[string]string{"from": "base"})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func dataURL(text string) *string { return ptr.To("data:," + strings.ReplaceAll(text, " ", "%20")) }

// machineConfig returns a MachineConfig with an Ignition configuration.
func machineConfig(t *testing.T, c types.Config) *mcv1.MachineConfig {
	t.Helper()
	c.Ignition.Version = "3.5.0"
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return &mcv1.MachineConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "rendered-worker-1", ResourceVersion: "77", UID: "u"},
		Spec:       mcv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: raw}, OSImageURL: baseRef},
	}
}

func file(path, text string) types.File {
	return types.File{Node: types.Node{Path: path}, FileEmbedded1: types.FileEmbedded1{Contents: types.Resource{Source: dataURL(text)}}}
}

func build1(t *testing.T, m *mcv1.MachineConfig, content string) (v1.Image, string, error) {
	t.Helper()
	img := base(t)
	var log bytes.Buffer
	out, err := Build(t.Context(), Input{
		Containerfile: Recipe{Base: baseRef, Config: m.Name, Pool: "worker", Content: content}.Containerfile(),
		Config:        m, Context: map[string][]byte{ContextConfig: []byte("encoded")}, HTTP: http.DefaultClient, Log: &log,
		Pull: func(_ context.Context, ref string) (v1.Image, error) {
			if ref != baseRef {
				return nil, fmt.Errorf("no image %s", ref)
			}
			return img, nil
		},
	})
	return out, log.String(), err
}

// contents returns the root of an image: mode, owner and content or link target of each file
// that is not a directory.
func contents(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	out := map[string]string{}
	all, err := read(img, "/")
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range all {
		if e.kind != tar.TypeDir && name != ConfigFile {
			out[name] = fmt.Sprintf("%o %d:%d %s%s", e.mode, e.uid, e.gid, e.content, e.link)
		}
	}
	return out
}

func TestImageHasFilesUnitsAndLabels(t *testing.T) {
	c := types.Config{}
	secret := file("/etc/app/secret", "hello world")
	secret.Mode, secret.User.Name = ptr.To(0o4600), ptr.To("core")
	c.Storage.Files = []types.File{file("/etc/motd", "new"), secret, file("/var/run/app", "through the link")}
	c.Storage.Links = []types.Link{{Node: types.Node{Path: "/etc/localtime"}, LinkEmbedded1: types.LinkEmbedded1{Target: ptr.To("../usr/share/zoneinfo/UTC")}}}
	c.Systemd.Units = []types.Unit{
		{Name: "app.service", Enabled: ptr.To(true), Contents: ptr.To("[Install]\nWantedBy=multi-user.target\n"), Dropins: []types.Dropin{{Name: "10-a.conf", Contents: ptr.To("[Service]\n")}}},
		{Name: "chronyd.service", Enabled: ptr.To(true)},
		{Name: "tmp.mount", Mask: ptr.To(true)},
	}
	m := machineConfig(t, c)
	img, log, err := build1(t, m, "FROM configs AS final\nENV A=1 B=${A}2\nCOPY --chmod=0750 <<EOF /opt/run.sh\n#!/bin/sh\nEOF\nCOPY --from=configs /etc/passwd /opt/accounts/\nLABEL team=\"storage and nets\"\n")
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	want := map[string]string{
		"etc/passwd": "644 0:0 root:x:0:0::/:/bin/sh\ncore:x:1000:1000::/var/home/core:/bin/sh\n", "etc/motd": "644 0:0 new",
		"etc/app/secret": "4600 1000:0 hello world", "run/app": "644 0:0 through the link", "var/run": "0 0:0 ../run",
		"etc/localtime":                                              "777 0:0 ../usr/share/zoneinfo/UTC",
		"usr/lib/systemd/system/chronyd.service":                     "644 0:0 [Install]\nWantedBy=multi-user.target\n",
		"etc/systemd/system/app.service":                             "644 0:0 [Install]\nWantedBy=multi-user.target\n",
		"etc/systemd/system/app.service.d/10-a.conf":                 "644 0:0 [Service]\n",
		"etc/systemd/system/tmp.mount":                               "777 0:0 /dev/null",
		"etc/systemd/system/multi-user.target.wants/app.service":     "777 0:0 /etc/systemd/system/app.service",
		"etc/systemd/system/multi-user.target.wants/chronyd.service": "777 0:0 /usr/lib/systemd/system/chronyd.service",
		"opt/run.sh":          "750 0:0 #!/bin/sh\n",
		"opt/accounts/passwd": "644 0:0 root:x:0:0::/:/bin/sh\ncore:x:1000:1000::/var/home/core:/bin/sh\n",
	}
	if diff := cmp.Diff(want, contents(t, img)); diff != "" {
		t.Errorf("root of the image (-want +got):\n%s", diff)
	}
	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{"from": "base", LabelConfig: m.Name, LabelPool: "worker", LabelBase: baseRef, "team": "storage and nets"}
	if diff := cmp.Diff(wantLabels, cf.Config.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"A=1", "B=2"}, cf.Config.Env); diff != "" { // the value of A is that before the instruction
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if !strings.Contains(log, "STEP apply MachineConfig rendered-worker-1\n") {
		t.Errorf("log %q lacks the MachineConfig", log)
	}
	stored, err := read(img, ConfigFile)
	var has mcv1.MachineConfig
	if err != nil || json.Unmarshal(stored[""].content, &has) != nil || has.Name != m.Name || has.ResourceVersion != "" || has.UID != "" {
		t.Errorf("/%s = %s, %v; want the MachineConfig without what the API has added", ConfigFile, stored[""].content, err)
	}
}

func TestSameInputGivesSameDigest(t *testing.T) {
	c := types.Config{}
	c.Storage.Files = []types.File{file("/etc/a", "1"), file("/etc/b/c", "2")}
	digests := map[string]bool{}
	for i := range 3 {
		m := machineConfig(t, c)
		m.ResourceVersion, m.UID = fmt.Sprint(i), "another"
		img, _, err := build1(t, m, "FROM configs AS final\nCOPY <<EOF /opt/x\ntext\nEOF\n")
		if err != nil {
			t.Fatal(err)
		}
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[d.String()] = true
	}
	if len(digests) != 1 {
		t.Errorf("three builds of the same input give the digests %v, want one", digests)
	}
	c.Storage.Files[0] = file("/etc/a", "other")
	img, _, err := build1(t, machineConfig(t, c), "FROM configs AS final\nCOPY <<EOF /opt/x\ntext\nEOF\n")
	if err != nil {
		t.Fatal(err)
	}
	if d, _ := img.Digest(); digests[d.String()] {
		t.Errorf("another file gives the same digest %s", d)
	}
}

func TestInstructionsThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"FROM configs AS final\nRUN true\n", "line 2, RUN: the lab's builder starts no program"},
		{"FROM configs AS final\nUSER core\n", "line 2, USER: the lab's builder has the instructions FROM, COPY, ADD, ENV and LABEL"},
		{"FROM configs AS final\nCOPY a /b\n", "the build's context has no such file"},
		{"FROM configs AS final\nCOPY /etc/* /b\n", "patterns are not supported"},
		{"FROM configs AS final\nCOPY --from=configs /etc/none /b\n", "there is no /etc/none"},
		{"FROM configs AS final\nCOPY --chmod=rwx <<EOF /b\nx\nEOF\n", "--chmod=rwx: use octal digits"},
		{"FROM configs AS final\nCOPY <<EOF /proc/1/mem\nx\nEOF\n", "/proc has files of the kernel"},
		{"FROM configs AS final\nCOPY <<EOF /etc\nx\nEOF\n", "/etc is a directory"},
		{"FROM configs AS final\nADD http://192.0.2.1/x /x\n", "needs --checksum=sha256:HEX"},
		{"RUNN x\n", "unknown instruction: RUNN"},
	} {
		_, _, err := build1(t, machineConfig(t, types.Config{}), tt.content)
		permanent := new(PermanentError)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &permanent) {
			t.Errorf("Build(%q) error = %v, want a PermanentError with %q", tt.content, err, tt.want)
		}
	}
	if _, _, err := build1(t, machineConfig(t, types.Config{}), "FROM example.org/none\n"); err == nil || errors.As(err, new(*PermanentError)) {
		t.Errorf("Build from an image that cannot be pulled: error = %v, want one that another attempt may not meet", err)
	}
}

// TestInvalidContainerfileIsFoundWithoutABuilder shows statement M36.
func TestInvalidContainerfileIsFoundWithoutABuilder(t *testing.T) {
	for content, bad := range map[string]bool{"RUNN x": true, "FROM configs AS final\nRUN true": false, "": false, "FROM": true} {
		err := CheckSyntax(Recipe{Base: baseRef, Config: "c", Pool: "p", Content: content}.Containerfile())
		if (err != nil) != bad {
			t.Errorf("CheckSyntax(%q) = %v, want an error: %v", content, err, bad)
		}
	}
}

func TestHostileConfigurationIsRefused(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 100<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	huge := types.File{Node: types.Node{Path: "/etc/huge"}}
	huge.Contents = types.Resource{Source: ptr.To("data:;base64," + base64.StdEncoding.EncodeToString(bomb.Bytes())), Compression: ptr.To("gzip")}
	var many []types.File
	for i := range 100_000 {
		many = append(many, file(fmt.Sprintf("/etc/many/%d", i), ""))
	}
	var empty []types.File
	for i := range 21_000 {
		empty = append(empty, types.File{Node: types.Node{Path: fmt.Sprintf("/e/%d", i)}})
	}
	link := func(path, target string) types.Config {
		c := types.Config{}
		c.Storage.Links = []types.Link{{Node: types.Node{Path: path}, LinkEmbedded1: types.LinkEmbedded1{Target: &target}}}
		return c
	}
	files := func(f ...types.File) types.Config {
		c := types.Config{}
		c.Storage.Files = f
		return c
	}
	through := link("/etc/out", "/etc")
	through.Storage.Files = []types.File{file("/etc/motd/below-a-file", "x")}
	for _, tt := range []struct {
		name, want string
		c          types.Config
	}{
		{"path out of the root", "path", files(file("/etc/../../x", ""))},
		{"device", "/dev has files of the kernel", files(file("/dev/sda", ""))},
		{"link out of the root", "leaves the root", link("/etc/x", "../../../etc/shadow")},
		{"file of 100 MB", "more than 16777216 bytes once it is decompressed", files(huge)},
		{"100,000 files", "at most 2097152 are allowed", files(many...)},
		{"21,000 empty files", "at most 20000 are allowed", files(empty...)},
		{"file of the network", `source has the scheme "https"`, files(types.File{Node: types.Node{Path: "/etc/x"}, FileEmbedded1: types.FileEmbedded1{Contents: types.Resource{Source: ptr.To("https://example.org/x")}}})},
		{"file below a file", "is no directory", through},
		{"user that does not exist", `does not have "nobody-here"`, files(types.File{Node: types.Node{Path: "/etc/x", User: types.NodeUser{Name: ptr.To("nobody-here")}}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img, _, err := build1(t, machineConfig(t, tt.c), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, new(*PermanentError)) || img != nil {
				t.Errorf("Build = %v, %v; want no image and a PermanentError with %q", img, err, tt.want)
			}
		})
	}
}

// A base image is data, too: its links must not lead a file of a configuration out of the root.
func TestLinkOfTheBaseThatLeavesTheRootIsNotFollowed(t *testing.T) {
	root := tree{"etc": {kind: tar.TypeDir}, "etc/out": {kind: tar.TypeSymlink, link: "../../tmp"}, "loop": {kind: tar.TypeSymlink, link: "loop"}}
	for name, want := range map[string]string{"/etc/out/x": "leaves the root", "/loop/x": "more than 40 links"} {
		if at, err := root.resolve(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("resolve(%s) = %q, %v; want an error with %q", name, at, err, want)
		}
	}
}

func TestPackagesAreRefused(t *testing.T) {
	m := machineConfig(t, types.Config{})
	m.Spec.Extensions, m.Spec.KernelType = []string{"usbguard"}, "realtime"
	if _, _, err := build1(t, m, ""); err == nil || !strings.Contains(err.Error(), "extensions usbguard") || !strings.Contains(err.Error(), "kernelType realtime") {
		t.Errorf("Build error = %v, want the extension and the kernel", err)
	}
}

func TestAddFetchesAURLWithItsChecksum(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "content of "+r.URL.Path) }))
	defer s.Close()
	sum := sha256.Sum256([]byte("content of /x"))
	img, _, err := build1(t, machineConfig(t, types.Config{}), fmt.Sprintf("FROM configs AS final\nADD --checksum=sha256:%x %s/x /opt/\n", sum, s.URL))
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, img)["opt/x"]; got != "600 0:0 content of /x" {
		t.Errorf("/opt/x = %q, want the content of the URL", got)
	}
	_, _, err = build1(t, machineConfig(t, types.Config{}), fmt.Sprintf("FROM configs AS final\nADD --checksum=sha256:%x %s/y /opt/\n", sum, s.URL))
	if err == nil || !strings.Contains(err.Error(), "its SHA-256 is") {
		t.Errorf("ADD of other content: error = %v, want one about its SHA-256", err)
	}
}
