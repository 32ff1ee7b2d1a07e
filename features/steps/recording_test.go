package steps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/view"
)

func TestRecordingsHaveTheNamesOfScenarios(t *testing.T) {
	for _, tt := range [][3]string{
		{"state/available.feature", "A host becomes available", "available-a-host-becomes-available"},
		{"x.feature", "What of ÄÖ, \"this\"?", "x-what-of-this"},
		{"x.feature", strings.Repeat("ab ", 90), "x-" + strings.Repeat("ab-", 32) + "ab"},
	} {
		if got := recordingName(tt[0], tt[1]); got != tt[2] {
			t.Errorf("recordingName(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestStoredRecordingsDoNotReplaceOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	line := `{"at":"2031-01-02T03:04:05Z","kind":"lab","data":{"name":"lab"}}` + "\n"
	for _, want := range []string{"a.zip", "a-2.zip", "a-3.zip"} {
		from := t.TempDir()
		if err := os.WriteFile(filepath.Join(from, view.RecordingName), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := storeRecording(dir, "a", from)
		if err != nil || filepath.Base(got) != want {
			t.Fatalf("storeRecording() = %s, %v, want %s", got, err, want)
		}
		if _, err := view.NewReplay(got, nil); err != nil {
			t.Errorf("NewReplay(%s) = %v", got, err)
		}
	}
}
