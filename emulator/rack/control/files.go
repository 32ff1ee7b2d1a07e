package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
)

// Files is a directory of the operating system that a server runs, or a file of it.
type Files struct {
	Path    string      `json:"path"`
	File    bool        `json:"file"`
	Entries []FileEntry `json:"entries,omitempty"` // entries of a directory, by name
	Content []byte      `json:"content,omitempty"` // content of a file
}

// FileEntry is an entry of a directory.
type FileEntry struct {
	Name  string `json:"name"`
	Dir   bool   `json:"dir,omitempty"`
	Link  string `json:"link,omitempty"` // target of a symbolic link
	Mode  string `json:"mode,omitempty"` // -rw-r--r--
	Owner string `json:"owner,omitempty"`
	Group string `json:"group,omitempty"`
	Size  int64  `json:"size"` // bytes
}

// FileChange is a file that differs from that of the boot image.
type FileChange struct {
	Path   string `json:"path"`
	Change string `json:"change"` // added, changed, removed
}

// File is a file, a directory or a symbolic link to write.
type File struct {
	Path    string
	Mode    fs.FileMode // type and permission bits
	Content []byte      // content of a regular file
	Link    string      // target of a symbolic link
}

// fileTypes are the types of files in requests.
var fileTypes = map[string]fs.FileMode{"": 0, "directory": fs.ModeDir, "link": fs.ModeSymlink}

// maxLink is how many bytes the target of a link may have, as in Linux (PATH_MAX).
const maxLink = 4096

// maxFile is how many bytes a file that is copied to a server may have.
const maxFile = 64 << 20

var errNoSystems = errors.New("this lab runs no operating systems")

func files(c *apiRequest) (any, error) {
	if c.s.c.Files == nil {
		return nil, errNoSystems
	}
	return c.s.c.Files(c.Context(), c.host, c.URL.Query().Get("path"))
}

func fileChanges(c *apiRequest) (any, error) {
	if c.s.c.FileChanges == nil {
		return nil, errNoSystems
	}
	return c.s.c.FileChanges(c.Context(), c.host)
}

// putFile writes a file. The body of the request is its content, or the target of a link.
func (s *Server) putFile(w http.ResponseWriter, r *http.Request) {
	body := http.MaxBytesReader(w, r.Body, maxFile)
	s.serve(w, r, func(c *apiRequest) (any, error) {
		if s.c.PutFile == nil {
			return nil, errNoSystems
		}
		query := c.URL.Query()
		mode, err := strconv.ParseUint(query.Get("mode"), 8, 12)
		if err != nil {
			return nil, fmt.Errorf("mode %q: give permission bits in octal, such as 644", query.Get("mode"))
		}
		kind, known := fileTypes[query.Get("type")]
		if !known {
			return nil, fmt.Errorf("type %q: give directory or link, or none for a file", query.Get("type"))
		}
		content, err := io.ReadAll(body)
		if err != nil {
			return nil, fmt.Errorf("a file may have %d MiB: %w", maxFile>>20, err)
		}
		f := File{Path: query.Get("path"), Mode: kind | fs.FileMode(mode).Perm()}
		switch {
		case kind == 0:
			f.Content = content
		case kind == fs.ModeDir && len(content) > 0:
			return nil, errors.New("a directory has no content")
		case kind == fs.ModeSymlink && (len(content) == 0 || len(content) > maxLink):
			return nil, fmt.Errorf("the target of a link has 1 to %d bytes, not %d", maxLink, len(content))
		case kind == fs.ModeSymlink:
			f.Link = string(content)
		}
		return struct{}{}, s.c.PutFile(c.Context(), c.host, f)
	})
}

// Files lists a directory of the operating system that a host runs, or returns a file.
func (c *Client) Files(ctx context.Context, host, path string) (Files, error) {
	var f Files
	err := c.do(ctx, http.MethodGet, at(host, "files")+"?path="+url.QueryEscape(path), nil, &f)
	return f, err
}

// FileChanges returns the files of the operating system that a host runs that differ from
// those of its boot image, by path.
func (c *Client) FileChanges(ctx context.Context, host string) ([]FileChange, error) {
	var out []FileChange
	err := c.do(ctx, http.MethodGet, at(host, "files", "changes"), nil, &out)
	return out, err
}

// PutFile writes a file, directory or link of the operating system that a host runs, with the
// directories above it.
func (c *Client) PutFile(ctx context.Context, host string, f File) error {
	query := url.Values{"path": {f.Path}, "mode": {strconv.FormatUint(uint64(f.Mode.Perm()), 8)}}
	body := f.Content
	switch f.Mode.Type() {
	case 0:
	case fs.ModeDir:
		query.Set("type", "directory")
	case fs.ModeSymlink:
		query.Set("type", "link")
		body = []byte(f.Link)
	default:
		return fmt.Errorf("%s: it is no file, directory or link", f.Path)
	}
	r, err := c.openRaw(ctx, http.MethodPut, at(host, "files")+"?"+query.Encode(), body)
	if err != nil {
		return err
	}
	return r.Close()
}
