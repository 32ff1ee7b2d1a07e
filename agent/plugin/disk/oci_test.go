package disk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// ociRegistry is a registry (OCI distribution specification 1.1) with one
// repository, lab/os.
type ociRegistry struct {
	*httptest.Server
	docs     map[string][]byte // manifests by tag or digest
	blobs    map[string][]byte
	bearer   bool   // requires a token
	user     string // requires user:password
	realm    string // URL for tokens; "" means this server
	blobHost string // host that blobs are redirected to
	expires  int32  // number of requests that a token is valid for; 0 means any
	used     atomic.Int32
	tokens   atomic.Int32
	leaked   atomic.Bool // a token was sent to blobHost
	cut      int         // connections for blobs break after so many bytes
}

func newRegistry(t testing.TB) *ociRegistry {
	g := &ociRegistry{docs: map[string][]byte{}, blobs: map[string][]byte{}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *ociRegistry) ref(rest string) string {
	return "oci://" + strings.TrimPrefix(strings.TrimPrefix(g.URL, "http://"), "https://") + "/lab/os" + rest
}

func digestOf(p []byte) string { return "sha256:" + sha256Hex(p) }

// layer adds a blob and a manifest for it, under a tag, and returns the manifest's
// descriptor.
func (g *ociRegistry) layer(t testing.TB, tag, mediaType string, content ...[]byte) descriptor {
	t.Helper()
	m := manifest{MediaType: typeManifest}
	for _, c := range content {
		g.blobs[digestOf(c)] = c
		m.Layers = append(m.Layers, descriptor{MediaType: mediaType, Digest: digestOf(c), Size: int64(len(c))})
	}
	return g.doc(t, tag, m)
}

func (g *ociRegistry) doc(t testing.TB, tag string, m manifest) descriptor {
	t.Helper()
	p, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	g.docs[tag], g.docs[digestOf(p)] = p, p
	return descriptor{MediaType: m.MediaType, Digest: digestOf(p), Size: int64(len(p))}
}

func (g *ociRegistry) allowed(w http.ResponseWriter, r *http.Request) bool {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(g.user))
	switch have := r.Header.Get("Authorization"); {
	case g.bearer:
		token := fmt.Sprintf("Bearer token-%d", g.tokens.Load())
		if have == token && (g.expires == 0 || g.used.Add(1) <= g.expires) {
			return true
		}
		realm := g.realm
		if realm == "" {
			realm = g.URL + "/token"
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="lab",scope="repository:lab/os:pull"`)
	case g.user != "" && have != basic:
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
	default:
		return true
	}
	http.Error(w, "who are you?", http.StatusUnauthorized)
	return false
}

func (g *ociRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/lab/os/"), "/")
	switch {
	case r.URL.Path == "/token":
		user, password, _ := r.BasicAuth()
		if g.user != "" && user+":"+password != g.user || r.URL.Query().Get("scope") != "repository:lab/os:pull" || r.URL.Query().Get("service") != "lab" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		g.used.Store(0)
		fmt.Fprintf(w, `{"token":"token-%d","expires_in":60}`, g.tokens.Add(1))
	case !g.allowed(w, r):
	case kind == "manifests" && g.docs[what] != nil:
		var m manifest
		_ = json.Unmarshal(g.docs[what], &m)
		if m.MediaType != "application/json" && !strings.Contains(r.Header.Get("Accept"), m.MediaType) {
			http.Error(w, "not acceptable", http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", m.MediaType)
		w.Write(g.docs[what])
	case kind == "blobs" && g.blobs[what] != nil && g.blobHost != "":
		http.Redirect(w, r, g.blobHost+"/elsewhere/"+what, http.StatusTemporaryRedirect)
	case kind == "blobs" && g.blobs[what] != nil:
		w.Header().Set("ETag", `"`+what+`"`)
		most := len(g.blobs[what]) + 1
		if g.cut > 0 {
			most = g.cut
		}
		cut(w, r, g.blobs[what], most)
	default:
		http.NotFound(w, r)
	}
}

// tarOf returns a tar of files, by name.
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}
		if strings.HasSuffix(files[i], "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(p []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(p)
	w.Close()
	return b.Bytes()
}

func zstded(t testing.TB, p []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(p, nil)
}

// B-150 B-151: the layer's content is written to the disk, however it is packed,
// and without a checksum of the user.
func TestWriteOCI(t *testing.T) {
	raw := content(3*mib+512, 4)
	raw[0] = 0xeb
	qcow2 := writeQcow2(t, qcow2Spec{version: 3, bits: 16}, raw)
	g := newRegistry(t)
	for _, tt := range []struct {
		tag, mediaType, format string
		layer                  []byte
	}{
		{"raw", "application/vnd.example.disk.raw", "raw", raw},
		{"qcow2", "application/x-qemu-disk", "", qcow2},
		{"octets", "application/octet-stream", "qcow2", qcow2},
		{"tar", "application/vnd.oci.image.layer.v1.tar", "", tarOf(t, "disk/", "", "disk/disk.img", string(qcow2))},
		{"tar-gzip", "application/vnd.oci.image.layer.v1.tar+gzip", "raw", gzipped(tarOf(t, "disk.img", string(raw)))},
		{"docker", "application/vnd.docker.image.rootfs.diff.tar.gzip", "", gzipped(tarOf(t, "disk.img", string(raw)))},
		{"tar-zstd", "application/vnd.oci.image.layer.v1.tar+zstd", "", zstded(t, tarOf(t, "disk.img", string(raw)))},
		{"zstd", "application/zstd", "raw", zstded(t, raw)},
		{"gzip", "application/gzip", "", gzipped(raw)},
	} {
		t.Run(tt.tag, func(t *testing.T) {
			d := g.layer(t, tt.tag, tt.mediaType, tt.layer)
			for _, ref := range []string{":" + tt.tag, "@" + d.Digest, ":other@" + d.Digest} {
				m := used(t, 8*mib)
				got, percents, err := write(t, m, job.WriteSpec{URL: g.ref(ref), Format: tt.format})
				if err != nil {
					t.Fatalf("%s: %v", ref, err)
				}
				if got.Bytes != int64(len(raw)) || got.Sum != sha256Hex(tt.layer) || percents[len(percents)-1] != 100 {
					t.Errorf("%s: Write = %+v, progress %v", ref, got, percents)
				}
				if have := get(t, m, 0, len(raw)); have != string(raw) {
					t.Errorf("%s: the disk differs at byte %d", ref, differ([]byte(have), raw))
				}
			}
		})
	}
}

func TestWriteOCIChoosesByArchitecture(t *testing.T) {
	g := newRegistry(t)
	index := manifest{MediaType: typeIndex}
	for _, x := range []struct{ arch, disk string }{{"arm64", "raw"}, {"amd64", "hyperv"}, {"amd64", "qcow2"}, {"amd64", "raw"}, {"s390x", ""}} {
		d := g.layer(t, x.arch+x.disk, "application/octet-stream", []byte("\x00boot "+x.arch+" "+x.disk))
		d.Annotations = map[string]string{"disktype": x.disk}
		if err := json.Unmarshal([]byte(`{"architecture":"`+x.arch+`"}`), &d.Platform); err != nil {
			t.Fatal(err)
		}
		index.Manifests = append(index.Manifests, d)
	}
	g.doc(t, "latest", index)
	m := systest.NewMemory(mib)
	if _, _, err := write(t, m, job.WriteSpec{URL: g.ref("")}); err != nil {
		t.Fatal(err)
	}
	if have := get(t, m, 0, 16); have != "\x00boot amd64 raw\x00" {
		t.Errorf("the disk holds %q", have)
	}
	index.Manifests = index.Manifests[:1]
	g.doc(t, "latest", index)
	if _, _, err := write(t, m, job.WriteSpec{URL: g.ref("")}); err == nil || !strings.Contains(err.Error(), "none of the index's 1 manifests is of a disk for x86_64") {
		t.Errorf("Write of an image for another architecture = %v", err)
	}
}

// B-154: the agent authenticates, and only to the registry.
func TestWriteOCIWithCredentials(t *testing.T) {
	image := content(2*mib, 9)
	image[0] = 0xeb
	good, bad := &job.RegistryAuth{Username: "lab", Password: "pass:word"}, &job.RegistryAuth{Username: "lab", Password: "other"}
	for _, tt := range []struct {
		name   string
		set    func(g *ociRegistry)
		auth   *job.RegistryAuth
		want   string
		tokens int32
	}{
		{name: "anonymous token", set: func(g *ociRegistry) { g.bearer = true }, tokens: 1},
		{name: "basic", set: func(g *ociRegistry) { g.user = "lab:pass:word" }, auth: good},
		{name: "token for a password", set: func(g *ociRegistry) { g.user, g.bearer = "lab:pass:word", true }, auth: good, tokens: 1},
		{name: "token that is soon too old", set: func(g *ociRegistry) { g.bearer, g.expires, g.cut = true, 2, mib }, tokens: 2},
		{name: "nobody", set: func(g *ociRegistry) { g.user = "lab:pass:word" }, want: "wants a user and a password that it knows"},
		{name: "wrong password", set: func(g *ociRegistry) { g.user = "lab:pass:word" }, auth: bad, want: "wants a user and a password that it knows"},
		{name: "wrong password for a token", set: func(g *ociRegistry) { g.user, g.bearer = "lab:pass:word", true }, auth: bad, want: "registry token: http://127.0.0.1:"},
		{name: "token from elsewhere in clear text", set: func(g *ociRegistry) { g.bearer, g.realm = true, "http://192.0.2.1/token" }, auth: good, want: "hands out tokens at no https URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRegistry(t)
			g.layer(t, "v1", "application/octet-stream", image)
			tt.set(g)
			_, _, err := write(t, systest.NewMemory(4*mib), job.WriteSpec{URL: g.ref(":v1"), Registry: tt.auth})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Write = %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Write = %v, want %q", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "word") && tt.auth == good || strings.Contains(err.Error(), "other")) {
				t.Errorf("the error tells a password: %v", err)
			}
			if g.tokens.Load() != tt.tokens {
				t.Errorf("%d tokens were fetched, want %d", g.tokens.Load(), tt.tokens)
			}
		})
	}
}

func TestOCITokensStayWithTheRegistry(t *testing.T) {
	image := []byte("\x00boot")
	g := newRegistry(t)
	g.layer(t, "v1", "application/octet-stream", image)
	g.user = "lab:word"
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			g.leaked.Store(true)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(image))
	}))
	defer store.Close()
	g.blobHost = strings.Replace(store.URL, "127.0.0.1", "localhost", 1)
	if _, _, err := write(t, systest.NewMemory(mib), job.WriteSpec{URL: g.ref(":v1"), Registry: &job.RegistryAuth{Username: "lab", Password: "word"}}); err != nil {
		t.Fatal(err)
	}
	if g.leaked.Load() {
		t.Error("the blob store was sent the password")
	}
}

func TestWriteOCIOverTLS(t *testing.T) {
	g := newRegistry(t)
	g.layer(t, "v1", "application/octet-stream", []byte("\x00boot"))
	s := httptest.NewTLSServer(g)
	defer s.Close()
	g.Config.Handler = http.NotFoundHandler()
	m := systest.NewMemory(mib)
	system, disks := machine(m)
	url := "oci://" + strings.TrimPrefix(s.URL, "https://") + "/lab/os:v1"
	w := Writer{System: system, HTTP: s.Client()}
	if _, err := w.Write(t.Context(), job.WriteSpec{URL: url, Root: firstDisk}, disks); err != nil {
		t.Fatal(err)
	}
	w.HTTP = http.DefaultClient // which does not know the certificate
	if _, err := w.Write(t.Context(), job.WriteSpec{URL: url, Root: firstDisk}, disks); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Write from a registry that nobody vouches for = %v", err)
	}
}

func TestWriteOCIRefusedBeforeTheDiskIsTouched(t *testing.T) {
	g := newRegistry(t)
	good := g.layer(t, "good", "application/octet-stream", []byte("\x00boot"))
	g.layer(t, "two", "application/octet-stream", []byte("a"), []byte("b"))
	g.layer(t, "json", "application/vnd.cncf.notary.signature+json", []byte("{}"))
	g.layer(t, "no-tar", "application/vnd.oci.image.layer.v1.tar", bytes.Repeat([]byte("x"), 2048))
	g.layer(t, "no-gzip", "application/vnd.oci.image.layer.v1.tar+gzip", []byte("this is not gzip at all"))
	g.layer(t, "empty-tar", "application/vnd.oci.image.layer.v1.tar", tarOf(t, "etc/", ""))
	g.layer(t, "html", "application/octet-stream", []byte("<!DOCTYPE html>"))
	g.layer(t, "huge-file", "application/vnd.oci.image.layer.v1.tar+gzip", gzipped(tarOf(t, "disk.img", string(make([]byte, 9*mib)))))
	g.doc(t, "none", manifest{MediaType: typeManifest})
	g.doc(t, "strange", manifest{MediaType: "application/json"})
	g.doc(t, "nested", manifest{MediaType: typeIndex, Manifests: []descriptor{g.doc(t, "inner", manifest{MediaType: typeList, Manifests: []descriptor{good}})}})
	g.docs["forged"], g.docs[digestOf([]byte("x"))] = g.docs["good"], g.docs["good"]
	g.docs["sha1"] = []byte(`{"mediaType":"` + typeManifest + `","layers":[{"mediaType":"a/b","digest":"sha1:00","size":4}]}`)
	g.docs["path"] = []byte(`{"mediaType":"` + typeManifest + `","layers":[{"mediaType":"a/b","digest":"../../../secret","size":4}]}`)
	g.docs["long"] = append(bytes.Clone(g.docs["good"]), bytes.Repeat([]byte(" "), maxManifest)...)
	for _, tt := range []struct{ ref, want string }{
		{g.ref(":absent"), "/v2/lab/os/manifests/absent: the server answers 404"},
		{g.ref(":two"), "the manifest has 2 layers, want one"},
		{g.ref(":none"), "the manifest has 0 layers"},
		{g.ref(":json"), `"application/vnd.cncf.notary.signature+json" is no disk image`},
		{g.ref(":strange"), `a manifest of type "application/json" is not supported`},
		{g.ref(":nested"), "none of the index's 1 manifests is of a disk"},
		{g.ref(":no-tar"), "disk: oci: layer: archive/tar: invalid tar header"},
		{g.ref(":no-gzip"), "disk: oci: layer: gzip: invalid header"},
		{g.ref(":empty-tar"), "the tar holds no file"},
		{g.ref(":html"), "the image is HTML"},
		{g.ref(":huge-file"), "the image has 9437184 bytes or more, /dev/sda only 8388608"},
		{g.ref("@" + digestOf([]byte("x"))), "checksum mismatch: the manifest of "},
		{g.ref(":sha1"), `"sha1:00" is no sha256 or sha512 digest`},
		{g.ref(":path"), `"../../../secret" is no sha256`},
		{g.ref(":long"), "more than 4194304 bytes"},
		{g.ref("@sha256:00"), "checksum has 2 hex digits"},
		{g.ref(":bad tag"), `"bad tag" is no tag`},
		{g.ref("/../secret"), "is no repository"},
		{"oci://", "is no oci://"},
		{"oci://user:word@host/lab/os", "is no oci://"},
		{"oci://host/lab/os?x=1", "is no oci://"},
		{"oci://host", "is no repository"},
	} {
		m := used(t, 8*mib)
		_, _, err := write(t, m, job.WriteSpec{URL: tt.ref})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "disk: ") {
			t.Errorf("Write(%s) error = %v\nwant %q", tt.ref, err, tt.want)
		}
		if !isUntouched(t, m) {
			t.Errorf("Write(%s): the disk was written to", tt.ref)
		}
	}
	if _, _, err := write(t, systest.NewMemory(mib), job.WriteSpec{URL: g.ref(":good"), Checksum: sha256Sum}); err == nil || !strings.Contains(err.Error(), "checksum must be empty for OCI images") {
		t.Errorf("Write with a checksum = %v (B-151)", err)
	}
}

func TestWriteOCIWithWrongContentCannotBoot(t *testing.T) {
	g := newRegistry(t)
	text := string(content(2*mib, 6))
	two := g.layer(t, "two", "application/vnd.oci.image.layer.v1.tar", tarOf(t, "a", text, "b", text))
	bomb := g.layer(t, "bomb", "application/gzip", gzipped(make([]byte, 64*mib)))
	g.layer(t, "forged", "application/octet-stream", []byte("\x00good"))
	g.blobs[digestOf([]byte("\x00good"))] = []byte("\x00evil")
	g.layer(t, "longer", "application/octet-stream", []byte("\x00short"))
	g.blobs[digestOf([]byte("\x00short"))] = []byte("\x00shorter is longer")
	g.layer(t, "cut", "application/gzip", gzipped([]byte(text))[:mib/2])
	for _, tt := range []struct{ ref, want string }{
		{"@" + two.Digest, "the tar holds more than one file"},
		{"@" + bomb.Digest, "/dev/sda only 8388608"},
		{":forged", "checksum mismatch"},
		{":longer", "the layer is longer than its manifest says"},
		{":cut", "unexpected EOF"},
	} {
		m := used(t, 8*mib)
		_, _, err := write(t, m, job.WriteSpec{URL: g.ref(tt.ref)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Write error = %v, want %q", tt.ref, err, tt.want)
		}
		if !cannotBoot(t, m) && !isUntouched(t, m) {
			t.Errorf("%s: the disk can boot", tt.ref)
		}
	}
}

// FuzzManifest: every manifest leads to a digest in the repository, or to an
// error.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"mediaType":"`+typeManifest+`","layers":[{"mediaType":"a/tar+gzip","digest":"sha256:`+sha256Sum+`","size":4}]}`), "")
	f.Add([]byte(`{"manifests":[{"mediaType":"a","digest":"../x","platform":{"architecture":"amd64"}}]}`), typeIndex)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		m, err := parseManifest(body, contentType)
		if err != nil {
			return
		}
		if len(m.Manifests) > 0 {
			_, _ = choosePlatform(m.Manifests, "x86_64")
		}
		if l, err := oneLayer(m); err == nil {
			if _, err := parseOCIDigest(l.Digest); err == nil && strings.ContainsAny(l.Digest, "/.%") {
				t.Errorf("digest %q is one", l.Digest)
			}
		}
	})
}

func FuzzReference(f *testing.F) {
	for _, s := range []string{"oci://h/a", "oci://h:1/a/b:t@sha256:" + sha256Sum, "oci://[::1]:5000/a-b_c.d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReference(text)
		if err == nil && (r.host == "" || strings.Contains("/"+r.repository+"/", "/../") || r.tag == "" && r.digest == "" || strings.ContainsAny(r.tag, "/?#")) {
			t.Errorf("parseReference(%q) = %+v", text, r)
		}
	})
}

// FuzzLayer: however a layer is packed, reading it ends or fails, and takes no
// more memory than a window.
func FuzzLayer(f *testing.F) {
	f.Add(gzipped(tarOf(f, "a", "text")), "gzip", true)
	f.Add(zstded(f, []byte("text")), "zstd", false)
	f.Add(tarOf(f, "d/", "", "a", "text"), "", true)
	f.Fuzz(func(t *testing.T, layer []byte, packed string, asTar bool) {
		s := serve(t, map[string]string{"/blob": string(layer)})
		defer s.Close()
		w := Writer{HTTP: s.Client(), Pause: 1}
		u, err := parseURL("blob", s.URL+"/blob")
		if err != nil {
			t.Fatal(err)
		}
		d, err := w.open(t.Context(), u, true, nil)
		if err != nil {
			t.Skip()
		}
		defer d.close()
		in, err := openLayer(t.Context(), d, io.Discard, int64(len(layer)), layerFormat{packed: packed, tar: asTar})
		if err != nil {
			return
		}
		buf := make([]byte, 64<<10)
		for range 1 << 12 {
			if _, err := in.read(t.Context(), buf); err != nil {
				return
			}
		}
	})
}
