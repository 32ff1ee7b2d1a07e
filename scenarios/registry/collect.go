package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// This file deletes the blobs that no manifest refers to. A client pushes the blobs of an image
// before its manifest, and none of those that the registry says it has: until a manifest refers
// to them, such blobs stay. Those of a push that was given up stay until the registry starts
// again.

// touch keeps the blob that a request of an account that may push asks for or uploads.
func (s *Server) touch(r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		return
	}
	digest := r.URL.Query().Get("digest") // digest of an upload (OCI Distribution Specification, "Pushing blobs")
	if i := strings.LastIndex(r.URL.Path, "/blobs/"); r.Method == http.MethodHead && i >= 0 {
		digest = r.URL.Path[i+len("/blobs/"):]
	}
	if digest == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[digest] = true
}

// references returns the digests of the blobs that a manifest refers to.
func (m manifest) references() (out []string) {
	type descriptor struct{ Digest string }
	var of struct {
		Config descriptor
		Layers []descriptor
	}
	if json.Unmarshal(m.Body, &of) != nil {
		return nil // it is none of an image
	}
	out = append(out, of.Config.Digest)
	for _, l := range of.Layers {
		out = append(out, l.Digest)
	}
	return out
}

// collect deletes the blobs that no manifest refers to. The caller holds s.mu.
func (s *Server) collect() error {
	used := map[string]bool{}
	for _, m := range s.manifests {
		for _, digest := range m.references() {
			used[digest] = true
		}
	}
	all, err := s.blobs()
	errs := []error{err}
	for _, digest := range all {
		if !used[digest] && !s.pending[digest] {
			algorithm, hex, _ := strings.Cut(digest, ":")
			errs = append(errs, os.Remove(filepath.Join(s.Dir, blobsDir, algorithm, hex)))
		}
	}
	return errors.Join(errs...)
}

// blobs returns the digests of all blobs, sorted.
func (s *Server) blobs() (out []string, err error) {
	const algorithm = "sha256"
	files, err := os.ReadDir(filepath.Join(s.Dir, blobsDir, algorithm))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("registry: %w", err)
	}
	for _, f := range files {
		out = append(out, algorithm+":"+f.Name())
	}
	return out, nil
}

// Blobs returns the digests of all blobs that the registry stores, sorted.
func (s *Server) Blobs() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs()
}

// removeUploads removes the uploads that a crash has cut off.
func (s *Server) removeUploads() error {
	left, err := filepath.Glob(filepath.Join(s.Dir, blobsDir, "upload-*"))
	errs := []error{err}
	for _, name := range left {
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}
