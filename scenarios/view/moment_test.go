package view_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// recordingOf is a recording of 10 minutes with snapshots after 1 and after 5.
const recordingOf = `{"at":"2031-01-02T03:00:00.5Z","kind":"lab","data":{"name":"lab"}}
{"at":"2031-01-02T03:05:00.25Z","kind":"snapshot","data":{"file":"b.tar","hosts":3}}
{"at":"2031-01-02T03:01:00.75Z","kind":"snapshot","data":{"file":"a.tar","hosts":3}}
{"at":"2031-01-02T03:10:00Z","kind":"tiles","data":[]}
{"at":"2031-01`

func TestMomentIsTheLatestSnapshotAtOrBeforeATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(recordingOf), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := view.FindMoments(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, file, wrong string }{
		{text: "", file: "b.tar"},
		{text: "2031-01-02T03:01:00Z", file: "a.tar"}, // the slider shows no parts of a second
		{text: "2031-01-02 03:01:00", file: "a.tar"},
		{text: "2031-01-02T03:01:00.750Z", file: "a.tar"},
		{text: "2031-01-02T03:01:00.749Z", wrong: "nearest are of 2031-01-02T03:01:00Z (+1m0s), 2031-01-02T03:05:00Z (+5m0s)"},
		{text: "2031-01-02T05:04:59+02:00", file: "a.tar"},
		{text: "2031-01-02T03:05:00Z", file: "b.tar"},
		{text: "2031-01-03T00:00:00Z", file: "b.tar"},
		{text: "+4m", file: "a.tar"},
		{text: "+1h", file: "b.tar"},
		{text: "+30s", wrong: "no snapshot at or before +30s: the nearest are of 2031-01-02T03:01:00Z"},
		{text: "noon", wrong: `time "noon": use the lab's time as the slider of labctl view shows it, such as 2031-01-02T03:10:00Z`},
		{text: "+5", wrong: `time "+5": `},
	} {
		got, err := m.At(tt.text)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("At(%q) = %+v, %v, want an error with %s", tt.text, got, err, tt.wrong)
			}
			continue
		}
		if err != nil || got.File != tt.file {
			t.Errorf("At(%q) = %+v, %v, want %s", tt.text, got, err, tt.file)
		}
	}
	if _, _, err := m.Open(m.All[0], t.TempDir()); err == nil || !strings.Contains(err.Error(), "a.tar") {
		t.Errorf("Open() of a snapshot that is not there = %v, want an error that names it", err)
	}
}

func TestRecordingWithoutSnapshotsSaysHowToMakeThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"at":"2031-01-02T03:00:00Z","kind":"lab","data":{"name":"lab"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := view.FindMoments(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.At(""); err == nil || !strings.Contains(err.Error(), "labctl snapshot save") {
		t.Errorf("At() = %v, want an error that names labctl snapshot save", err)
	}
	for _, text := range []string{"", "hello\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := view.FindMoments(file); err == nil || !strings.Contains(err.Error(), "is no recording") {
			t.Errorf("FindMoments(%q) = %v, want an error", text, err)
		}
	}
}

func TestMomentInAZipFileIsUnpacked(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{view.RecordingName: strings.ReplaceAll(recordingOf, `"a.tar"`, `"snapshots/a.tar"`), "snapshots/a.tar": "a snapshot"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	z.Close()
	file := filepath.Join(dir, "x.zip")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := view.FindMoments(file)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	name, done, err := m.Open(m.All[0], to)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "a snapshot" || filepath.Dir(name) != to {
		t.Errorf("Open() = %s with %q, %v", name, got, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// A recording names the snapshots that are saved meanwhile, and saves its beginning and its end.
func TestRecordingSavesItsBeginningAndItsEnd(t *testing.T) {
	dir := t.TempDir()
	beside := filepath.Join(dir, "beside")
	if err := os.MkdirAll(filepath.Join(beside, "end.tar"), 0o700); err != nil { // an older recording's
		t.Fatal(err)
	}
	file := filepath.Join(dir, "lab.json")
	if err := os.WriteFile(file, record(t, beside), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := view.FindMoments(file)
	if err != nil {
		t.Fatal(err)
	}
	var after []time.Duration
	for _, x := range m.All {
		after = append(after, x.At.Sub(m.First).Round(time.Minute))
		name, _, err := m.Open(x, dir)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := snapshot.Open(name); err != nil || !info.Time.Equal(x.At) || info.Hosts != 3 {
			t.Errorf("snapshot.Open(%s) = %+v, %v, want 3 hosts at %s", name, info, err, x.At)
		}
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", name, st.Mode(), err)
		}
	}
	if len(after) != 3 || after[0] != 0 || after[1] != 6*time.Minute || after[2] != 7*time.Minute {
		t.Errorf("snapshots at %v, want one at the beginning, one after 6 and one after 7 minutes", after)
	}
}

func TestObjectsOfAMomentAreNotLaterThanTheSnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	const text = `{"at":"2031-01-02T03:00:00Z","kind":"lab","data":{"name":"lab","images":"http://127.0.0.1:1/images/"}}
{"at":"2031-01-02T03:01:00Z","kind":"objects","host":"node-1","data":[{"kind":"BareMetalHost","name":"default/node-1","yaml":"a"}]}
{"at":"2031-01-02T03:02:00Z","kind":"objects","host":"node-1","data":[{"kind":"BareMetalHost","name":"default/node-1","yaml":"b"}]}
{"at":"2031-01-02T03:02:00Z","kind":"objects","host":"node-0","data":[{"kind":"BareMetalHost","name":"default/node-0","yaml":"c"}]}
{"at":"2031-01-02T03:03:00Z","kind":"objects","host":"node-0","data":[]}
{"at":"2031-01-02T03:03:00Z","kind":"objects","host":"node-1","data":[{"kind":"BareMetalHost","name":"default/node-1","yaml":"d"}]}
{"at":"2031-01-02T03:02:30Z","kind":"snapshot","data":{"file":"a.tar","hosts":3}}
{"at":"2031-01-02T03:04:00Z","kind":"snapshot","data":{"file":"b.tar","hosts":3}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := view.FindMoments(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"node-0 c node-1 b", "node-1 d"} {
		got, err := m.Objects(m.All[i])
		var all []string
		for _, h := range got.Hosts {
			all = append(all, h.Host, h.Objects[0].YAML)
		}
		if is := strings.Join(all, " "); err != nil || is != want || got.Images != "http://127.0.0.1:1/images/" {
			t.Errorf("Objects(%s) = %s with images at %q, %v, want %s", m.All[i].File, is, got.Images, err, want)
		}
	}
}
