package pxe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/job"
)

// ReadISO reads the agent's configuration from an ISO.
func ReadISO(r io.ReaderAt, size int64) (job.Media, error) {
	iso, err := iso9660.Read(file.New(isoFile{io.NewSectionReader(r, 0, size)}, true), size, 0, 0)
	if err != nil {
		return job.Media{}, fmt.Errorf("no ISO 9660: %w", err)
	}
	f, err := iso.OpenFile(job.MediaConfigPath, os.O_RDONLY)
	if err != nil {
		return job.Media{}, fmt.Errorf("no agent: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, job.MaxBody))
	if err != nil {
		return job.Media{}, fmt.Errorf("%s: %w", job.MediaConfigPath, err)
	}
	return parseMedia(b)
}

// isoFile is an ISO as fs.File, which the ISO 9660 reader needs.
type isoFile struct{ *io.SectionReader }

// Stat implements fs.File.
func (isoFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Close implements fs.File.
func (isoFile) Close() error { return nil }

func parseMedia(b []byte) (job.Media, error) {
	var m job.Media
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w", job.MediaConfigPath, err)
	}
	if m.Server == "" || m.Token == "" {
		return m, fmt.Errorf("%s: names no server, or no token", job.MediaConfigPath)
	}
	return m, nil
}
