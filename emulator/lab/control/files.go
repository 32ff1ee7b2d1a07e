package control

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Files is a directory of the operating system that a server runs, or a file of it.
type Files struct {
	Path    string      `json:"path"`
	File    bool        `json:"file"`
	Entries []FileEntry `json:"entries,omitempty"` // of a directory, by name
	Content []byte      `json:"content,omitempty"` // of a file
}

// FileEntry is an entry of a directory. A directory has a name alone.
type FileEntry struct {
	Name  string `json:"name"`
	Dir   bool   `json:"dir,omitempty"`
	Mode  string `json:"mode,omitempty"` // -rw-r--r--
	Owner string `json:"owner,omitempty"`
	Group string `json:"group,omitempty"`
	Size  int    `json:"size"` // bytes
}

func files(c *apiRequest) (any, error) {
	if c.s.c.Files == nil {
		return nil, errors.New("this lab runs no operating systems")
	}
	return c.s.c.Files(c.Context(), c.host, c.URL.Query().Get("path"))
}

// Files lists a directory of the operating system that a host runs, or returns a file.
func (c *Client) Files(ctx context.Context, host, path string) (Files, error) {
	var f Files
	err := c.do(ctx, http.MethodGet, at(host, "files")+"?path="+url.QueryEscape(path), nil, &f)
	return f, err
}
