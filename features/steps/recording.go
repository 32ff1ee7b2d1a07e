package steps

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// recording records a scenario's lab while the scenario runs.
type recording struct {
	dir   string   // temporary, with all of it
	file  *os.File // in dir
	stop  context.CancelFunc
	ended chan error
}

// endSnapshot is the snapshot of the end of a scenario, as the recording and its zip file name
// it.
const endSnapshot = "snapshots/end.tar"

// startRecording begins to record the lab, when the labs are to be recorded.
func (s *scenario) startRecording(ctx context.Context) error {
	if s.labs == nil || s.labs.Recordings == "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "metalab-recording-")
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, view.RecordingName))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	r := &recording{dir: dir, file: f, ended: make(chan error, 1)}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() { r.ended <- s.lab.Record(ctx, view.Recording{To: f, Beside: dir}) }()
	s.recording = r
	return nil
}

// endRecording ends the recording. That of a scenario which has failed is stored; the error
// then says where, and how to look at it.
func (s *scenario) endRecording(well bool) error {
	r := s.recording
	if r == nil {
		return nil
	}
	s.recording = nil
	until := s.lab.Clock().Now().UTC()
	var saved error
	if !well && s.labs.Snapshots {
		saved = r.save(s.lab.Rack())
	}
	r.stop()
	err := <-r.ended
	defer func() {
		r.file.Close()
		_ = os.RemoveAll(r.dir) // nothing can be done about a file that stays
	}()
	if err = errors.Join(err, saved); err != nil || well {
		return err
	}
	name, err := storeRecording(s.labs.Recordings, recordingName(s.uri, s.name), r.dir)
	if err != nil {
		return err
	}
	done := Recorded{File: name, View: "labctl view " + name, Fragment: view.ReplayFragment(s.server.Rack, s.server.Name, until)}
	if s.labs.Pages {
		done.Page = strings.TrimSuffix(name, ".zip") + ".html"
		if err := writePage(done.Page, name); err != nil {
			return err
		}
	}
	s.labs.mu.Lock()
	s.labs.recorded = append(s.labs.recorded, done)
	s.labs.mu.Unlock()
	text := fmt.Sprintf("recorded until %s: %s", until.Format(time.RFC3339), done.View)
	if s.labs.Snapshots {
		text += fmt.Sprintf("\nlabctl up --from %s --state NEW goes on from there", name)
	}
	return errors.New(text)
}

// writePage writes the page of a recording to a new file.
func writePage(to, file string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(view.WriteReplay(f, file), f.Close())
}

// save saves a snapshot of a lab for the recording.
func (r *recording) save(l *rack.Rack) error {
	to := filepath.Join(r.dir, filepath.FromSlash(endSnapshot))
	err := os.Mkdir(filepath.Dir(to), 0o700)
	if err == nil {
		_, err = l.SaveSnapshot(context.Background(), to, nil)
	}
	if err != nil {
		return fmt.Errorf("the snapshot of the recording: %w", err)
	}
	return nil
}

// notInNames matches the characters that the name of a recording must not have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// recordingName returns the name of the recording of a scenario, without an extension.
func recordingName(uri, name string) string {
	words := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(path.Base(uri), ".feature")+" "+name), "-"), "-")
	return words[:min(len(words), 100)]
}

// storeRecording writes a recording, which is a directory, to a zip file in another one, and
// returns its name.
func storeRecording(dir, name, from string) (_ string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var f *os.File
	for n, suffix := 1, ""; f == nil; n, suffix = n+1, fmt.Sprint("-", n+1) {
		if _, err := os.Lstat(filepath.Join(dir, name+suffix+".html")); !errors.Is(err, fs.ErrNotExist) {
			continue // the page of the recording has this name
		}
		f, err = os.OpenFile(filepath.Join(dir, name+suffix+".zip"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	z := zip.NewWriter(f)
	return f.Name(), errors.Join(z.AddFS(os.DirFS(from)), z.Close(), f.Close())
}
