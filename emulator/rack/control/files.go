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

// File is a file to write.
type File struct {
	Path    string
	Mode    fs.FileMode // permission bits
	Content []byte
}

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

// putFile writes a file. The body of the request is its content.
func (s *Server) putFile(w http.ResponseWriter, r *http.Request) {
	body := http.MaxBytesReader(w, r.Body, maxFile)
	s.serve(w, r, func(c *apiRequest) (any, error) {
		if s.c.PutFile == nil {
			return nil, errNoSystems
		}
		mode, err := strconv.ParseUint(c.URL.Query().Get("mode"), 8, 12)
		if err != nil {
			return nil, fmt.Errorf("mode %q: give permission bits in octal, such as 644", c.URL.Query().Get("mode"))
		}
		content, err := io.ReadAll(body)
		if err != nil {
			return nil, fmt.Errorf("a file may have %d MiB: %w", maxFile>>20, err)
		}
		f := File{c.URL.Query().Get("path"), fs.FileMode(mode), content}
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

// PutFile writes a file of the operating system that a host runs, with the directories
// above it.
func (c *Client) PutFile(ctx context.Context, host string, f File) error {
	query := url.Values{"path": {f.Path}, "mode": {strconv.FormatUint(uint64(f.Mode.Perm()), 8)}}
	r, err := c.openRaw(ctx, http.MethodPut, at(host, "files")+"?"+query.Encode(), f.Content)
	if err != nil {
		return err
	}
	return r.Close()
}
