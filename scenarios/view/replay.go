package view

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/metalab-dev/metalab/emulator/rack/network"
)

// RecordingName is the name of the recording in the zip file of a failed feature.
const RecordingName = "recording.jsonl"

// Replay serves the page of a recording. It needs no lab.
type Replay struct {
	file    string
	name    string // name of the lab
	token   string
	log     *slog.Logger
	handler http.Handler
}

// NewReplay returns the page of a recording in a file: lines of JSON, plain or in gzip, or a
// zip file with them. Its error says why the file is no recording.
func NewReplay(file string, log *slog.Logger) (*Replay, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Replay{file: file, token: rand.Text(), log: log}
	in, err := openRecording(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var first Line
	var state labState
	if err := json.NewDecoder(in).Decode(&first); err != nil || first.Kind != "lab" || json.Unmarshal(first.Data, &state) != nil {
		return nil, fmt.Errorf("%s is no recording of a lab: labctl up --recording FILE writes one", file)
	}
	p.name = state.Name
	inside, a := http.NewServeMux(), access{token: func() (string, error) { return p.token, nil }, log: log}
	inside.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { render(w, p.name, p.file, log) })
	inside.HandleFunc("GET /recording", p.recording)
	inside.Handle("GET /assets/", http.HandlerFunc(asset))
	p.handler = a.handler(inside, http.NewServeMux())
	return p, nil
}

// Link returns the link of the page at an address.
func (p *Replay) Link(address string) string { return "http://" + address + "/login?token=" + p.token }

// Serve answers on a listener until ctx ends, and closes it.
func (p *Replay) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, p.handler, network.BodyPace{}, p.log)
}

// recording answers with the lines.
func (p *Replay) recording(w http.ResponseWriter, _ *http.Request) {
	in, err := openRecording(p.file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer in.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := copyLines(w, in); err != nil {
		p.log.Debug("page gone", "err", err)
	}
}

// copyLines copies the lines of a recording. The end of one that was cut off is missing.
func copyLines(to io.Writer, from io.Reader) error {
	lines := bufio.NewReader(io.LimitReader(from, 2*maxRecording))
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // half a line is none
			return nil //nolint:nilerr // the lines before it are shown
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err
		}
	}
}

// recordingFile is an open recording.
type recordingFile struct {
	io.Reader
	closers []io.Closer
}

// Close implements io.Closer.
func (f *recordingFile) Close() (err error) {
	for _, c := range f.closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// openRecording opens the lines of a recording.
func openRecording(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	switch head := string(head[:n]); {
	case strings.HasPrefix(head, "PK\x03\x04"):
		if err := f.Close(); err != nil {
			return nil, err
		}
		return openZip(name)
	case strings.HasPrefix(head, "\x1f\x8b"):
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
		}
		return &recordingFile{z, []io.Closer{z, f}}, nil
	}
	return f, nil
}

// openZip opens the recording in a zip file.
func openZip(name string) (io.ReadCloser, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, m := range z.File {
		if path.Base(m.Name) != RecordingName {
			continue
		}
		in, err := m.Open()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), z.Close())
		}
		return &recordingFile{in, []io.Closer{in, z}}, nil
	}
	return nil, errors.Join(fmt.Errorf("%s has no %s", name, RecordingName), z.Close())
}
