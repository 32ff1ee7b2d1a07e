package images

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"
)

// PathPrefix is the URL path of a Server's files: /images/NAME.
const PathPrefix = "/images/"

// sumsName is the file that lists the checksums of all files, as image publishers
// have it. The directory is the same list.
const sumsName = "SHA256SUMS"

// Server serves the regular files of one directory, except subdirectories and files
// whose name begins with a dot. For each file NAME it also serves NAME.sha256,
// NAME.sha512 and NAME.md5 with its checksum, unless the directory has a file of
// that name. Files outside Dir cannot be reached, not even through symbolic links.
//
// It is an http.Handler and safe for concurrent use; its fields must not change
// once it serves.
type Server struct {
	Dir string
	// Enter, when set, is called around each request; see the lab's clock.
	Enter func() (leave func())

	sums sums
}

// ServeHTTP implements http.Handler: GET and HEAD, with ranges and validators.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Enter != nil {
		defer s.Enter()()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, PathPrefix)
	if !ok {
		http.NotFound(w, r)
		return
	}
	root, err := os.OpenRoot(s.Dir) // for each request: the directory may be replaced
	if err != nil {
		writeError(w, err)
		return
	}
	defer root.Close()
	if name == "" {
		s.list(w, r, root)
		return
	}
	f, info, err := open(root, name)
	if err == nil {
		defer f.Close()
		w.Header().Set("Content-Type", contentType(name))
		w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())))
		http.ServeContent(w, r, "", info.ModTime(), f)
		return
	}
	base, suffix, isSum := cutSum(name)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && name == sumsName:
		s.list(w, r, root)
	case missing && isSum:
		s.serveSum(w, r, root, base, suffix)
	default:
		writeError(w, err)
	}
}

// serveSum answers with the checksum of a file.
func (s *Server) serveSum(w http.ResponseWriter, r *http.Request, root *os.Root, name, suffix string) {
	f, info, err := open(root, name)
	if err != nil {
		writeError(w, err)
		return
	}
	defer f.Close()
	e, err := s.sums.checksum(f, name, suffix)
	if err != nil {
		writeError(w, fmt.Errorf("%s: %w", name, err))
		return
	}
	serveText(w, r, e.line(name), e.hex, info.ModTime())
}

// list answers with the checksums of all files, without checksum files and files
// that disappear or change meanwhile.
func (s *Server) list(w http.ResponseWriter, r *http.Request, root *os.Root) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		writeError(w, err)
		return
	}
	var text strings.Builder
	for _, entry := range entries {
		name := entry.Name()
		if _, _, isSum := cutSum(name); isSum || name == sumsName {
			continue
		}
		if r.Context().Err() != nil {
			return // the client is gone, and the rest may take long
		}
		line, err := s.lineOf(root, name)
		if err != nil {
			writeError(w, fmt.Errorf("%s: %w", name, err))
			return
		}
		text.WriteString(line)
	}
	serveText(w, r, text.String(), "", time.Time{})
}

// lineOf returns the line of the list for a file; "" when the file is not listed.
func (s *Server) lineOf(root *os.Root, name string) (string, error) {
	f, _, err := open(root, name)
	if err != nil {
		return "", nil // it is not served either
	}
	defer f.Close()
	e, err := s.sums.checksum(f, name, listSuffix)
	if errors.Is(err, errChanged) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return e.line(name), nil
}

// open opens a regular file of the directory. It checks the type before it opens the
// file, since opening a pipe blocks until its other end is opened. The error is
// fs.ErrNotExist for everything that clients must not learn about.
func open(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\n") {
		return nil, nil, fs.ErrNotExist
	}
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil, fs.ErrNotExist
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func contentType(name string) string {
	if _, _, isSum := cutSum(name); isSum || name == sumsName {
		return textType
	}
	return "application/octet-stream"
}

const textType = "text/plain; charset=utf-8"

func serveText(w http.ResponseWriter, r *http.Request, text, tag string, changed time.Time) {
	w.Header().Set("Content-Type", textType)
	if tag != "" {
		w.Header().Set("ETag", fmt.Sprintf("%q", tag))
	}
	http.ServeContent(w, r, "", changed, strings.NewReader(text))
}

// writeError answers with the status of an error.
func writeError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = http.StatusNotFound
	case errors.Is(err, fs.ErrPermission):
		code = http.StatusForbidden
	case errors.Is(err, errChanged):
		w.Header().Set("Retry-After", "1")
		code = http.StatusServiceUnavailable
	}
	http.Error(w, err.Error(), code)
}
