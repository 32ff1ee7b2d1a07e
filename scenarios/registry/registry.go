// Package registry is the OCI registry of a lab: go-containerregistry's, with accounts that may
// push or pull, a directory that outlives a restart, faults of real registries, and no blobs of
// images that were deleted. It knows no cluster and builds no image.
package registry

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	upstream "github.com/google/go-containerregistry/pkg/registry"
)

// Accounts of a registry.
const (
	Pusher = "push" // may read and write
	Puller = "pull" // may read
)

// Bounds of a request's body, in bytes.
const (
	maxManifest = 4 << 20
	maxBlob     = 512 << 20
)

// Fault is a defect of a registry.
type Fault string

// Faults of a registry.
const (
	None Fault = ""
	Down Fault = "down" // it closes each connection
	Full Fault = "full" // it refuses to store anything
	// Damaged means that it sends other bytes than those of a blob's digest.
	Damaged Fault = "damaged"
	// Stalled means that it answers no request until it has another fault, or none.
	Stalled Fault = "stalled"
)

// Config configures a Server.
type Config struct {
	Dir string // directory of blobs, manifests and passwords
	Log *slog.Logger
	// Enter, when set, is called around each request; see the lab's clock.
	Enter func() (leave func())
}

// Server is a registry. It is an http.Handler and safe for concurrent use.
type Server struct {
	Config
	passwords map[string]string // by account

	mu        sync.Mutex
	registry  http.Handler
	manifests map[string]manifest // by file name
	pending   map[string]bool     // digests of blobs whose manifest may come
	fault     Fault
	changed   chan struct{} // closed when the fault changes
}

// manifest is a manifest under one reference, a tag or a digest.
type manifest struct {
	Repository, Reference, ContentType string
	Body                               []byte
}

func (m manifest) file() string {
	sum := sha256.Sum256([]byte(m.Repository + "\n" + m.Reference))
	return hex.EncodeToString(sum[:]) + ".json"
}

func (m manifest) digest() string {
	sum := sha256.Sum256(m.Body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

const (
	blobsDir      = "blobs"
	manifestsDir  = "manifests"
	passwordsFile = "passwords.json"
)

// New returns a registry with the images of its directory.
func New(c Config) (*Server, error) {
	if c.Dir == "" {
		return nil, errors.New("registry: Config.Dir is empty")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Server{Config: c, changed: make(chan struct{})}
	if err := s.makeDirs(); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	if err := s.loadPasswords(); err != nil {
		return nil, fmt.Errorf("registry: passwords: %w", err)
	}
	s.reset()
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := errors.Join(s.collect(), s.removeUploads()); err != nil {
		return nil, fmt.Errorf("registry: blobs of no image: %w", err)
	}
	return s, nil
}

// reset begins without manifests.
func (s *Server) reset() {
	s.manifests, s.pending = map[string]manifest{}, map[string]bool{}
	s.registry = upstream.New(upstream.WithBlobHandler(upstream.NewDiskBlobHandler(filepath.Join(s.Dir, blobsDir))),
		upstream.Logger(slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)))
}

// loadPasswords reads the passwords of the accounts, and makes them when there are none.
func (s *Server) loadPasswords() error {
	name := filepath.Join(s.Dir, passwordsFile)
	b, err := os.ReadFile(name)
	if err == nil {
		return json.Unmarshal(b, &s.passwords)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.passwords = map[string]string{Pusher: rand.Text(), Puller: rand.Text()}
	if b, err = json.Marshal(s.passwords); err != nil {
		return err
	}
	return write(name, b)
}

// write writes a file at once: a crash leaves the old one or the new one.
func write(name string, b []byte) error {
	if err := os.WriteFile(name+".tmp", b, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

// load serves the manifests of the directory.
func (s *Server) load() error {
	dir := filepath.Join(s.Dir, manifestsDir)
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".json" {
			continue // a write that a crash has cut off
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return fmt.Errorf("registry: %w", err)
		}
		var m manifest
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("registry: %s: %w: remove it", f.Name(), err)
		}
		if code := s.put(m).Code; code != http.StatusCreated {
			return fmt.Errorf("registry: %s: the manifest of %s:%s is refused with status %d", f.Name(), m.Repository, m.Reference, code)
		}
		s.manifests[f.Name()] = m
	}
	return nil
}

// put gives the registry a manifest.
func (s *Server) put(m manifest) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPut, "/v2/"+m.Repository+"/manifests/"+m.Reference, bytes.NewReader(m.Body))
	r.Header.Set("Content-Type", m.ContentType)
	w := httptest.NewRecorder()
	s.registry.ServeHTTP(w, r)
	return w
}

// SetFault sets the registry's defect from now on.
func (s *Server) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns the fault, once it is not Stalled; false when the client has gone before.
func (s *Server) await(r *http.Request) (Fault, bool) {
	for {
		s.mu.Lock()
		fault, changed := s.fault, s.changed
		s.mu.Unlock()
		if fault != Stalled {
			return fault, true
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return fault, false
		}
	}
}

// damaging is a response with other bytes than the registry has.
type damaging struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (d damaging) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	for i := range b {
		b[i] ^= 1
	}
	return d.ResponseWriter.Write(b)
}

// Empty removes all images.
func (s *Server) Empty() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
	return errors.Join(
		os.RemoveAll(filepath.Join(s.Dir, blobsDir)), os.RemoveAll(filepath.Join(s.Dir, manifestsDir)),
		s.makeDirs(),
	)
}

func (s *Server) makeDirs() error {
	return errors.Join(os.MkdirAll(filepath.Join(s.Dir, blobsDir), 0o700), os.MkdirAll(filepath.Join(s.Dir, manifestsDir), 0o700))
}

// DockerConfig returns the value of a dockerconfigjson with an account of the registry at a
// host.
func (s *Server) DockerConfig(account, host string) []byte {
	auth := base64.StdEncoding.EncodeToString([]byte(account + ":" + s.passwords[account]))
	b, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"auth": auth}}})
	if err != nil {
		panic(err) // they are strings
	}
	return b
}

// allowed reports whether a request has an account that may do it.
func (s *Server) allowed(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	want, known := s.passwords[user]
	if !known || subtle.ConstantTimeCompare([]byte(password), []byte(want)) != 1 {
		return false
	}
	return user == Pusher || r.Method == http.MethodGet || r.Method == http.MethodHead
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Enter != nil {
		defer s.Enter()()
	}
	fault, here := s.await(r)
	if !here {
		return
	}
	stores := r.Method == http.MethodPut || r.Method == http.MethodPost || r.Method == http.MethodPatch
	switch {
	case fault == Down:
		panic(http.ErrAbortHandler)
	case !s.allowed(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "the account or its password is wrong, or it may only pull")
		return
	case fault == Full && stores:
		refuse(w, http.StatusInsufficientStorage, "DENIED", "no space left on device")
		return
	}
	if fault == Damaged && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
		w = damaging{w}
	}
	repository, reference, is := manifestOf(r.URL.Path)
	switch {
	case is && r.Method == http.MethodPut:
		s.putManifest(w, r, repository, reference)
	case is && r.Method == http.MethodDelete:
		s.deleteManifest(w, r, repository, reference)
	default:
		if user, _, _ := r.BasicAuth(); user == Pusher {
			s.touch(r)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBlob)
		s.handler().ServeHTTP(w, r)
	}
}

func (s *Server) handler() http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registry
}

// refuse answers with an error of the protocol (OCI Distribution Specification, "Error codes").
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}}) // the client may have gone
}

// manifestOf returns the repository and reference of the path of a manifest.
func manifestOf(p string) (repository, reference string, is bool) {
	rest, is := strings.CutPrefix(p, "/v2/")
	i := strings.LastIndex(rest, "/manifests/")
	if !is || i <= 0 {
		return "", "", false
	}
	return rest[:i], rest[i+len("/manifests/"):], true
}

// putManifest stores a manifest before the registry answers that it has it.
func (s *Server) putManifest(w http.ResponseWriter, r *http.Request, repository, reference string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "SIZE_INVALID", fmt.Sprintf("a manifest has at most %d bytes", maxManifest))
		return
	}
	m := manifest{Repository: repository, Reference: reference, ContentType: r.Header.Get("Content-Type"), Body: body}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.put(m)
	if answer.Code == http.StatusCreated {
		byDigest := m
		byDigest.Reference = m.digest()
		if err := errors.Join(s.store(m), s.store(byDigest)); err != nil {
			refuse(w, http.StatusInsufficientStorage, "DENIED", err.Error())
			return
		}
		for _, digest := range m.references() {
			delete(s.pending, digest)
		}
	}
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may have gone
}

// store writes a manifest to the directory. The caller holds s.mu.
func (s *Server) store(m manifest) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(s.Dir, manifestsDir, m.file()), b); err != nil {
		return err
	}
	s.manifests[m.file()] = m
	return nil
}

// deleteManifest deletes a manifest. With a digest go the tags that refer to it, and the blobs
// that no other image has.
func (s *Server) deleteManifest(w http.ResponseWriter, r *http.Request, repository, reference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for file, m := range s.manifests {
		tag := m.Repository == repository && m.digest() == reference && m.Reference != reference
		if m.Repository != repository || m.Reference != reference && !tag {
			continue
		}
		if err := os.Remove(filepath.Join(s.Dir, manifestsDir, file)); err != nil {
			refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
			return
		}
		delete(s.manifests, file)
		if tag {
			s.registry.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/v2/"+repository+"/manifests/"+m.Reference, nil))
		}
	}
	if err := s.collect(); err != nil {
		s.Log.Warn("blobs of no image are left", "error", err)
	}
	s.registry.ServeHTTP(w, r)
}

// References returns the tags and digests of a repository, sorted.
func (s *Server) References(repository string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.manifests {
		if m.Repository == repository {
			out = append(out, m.Reference)
		}
	}
	slices.Sort(out)
	return out
}
