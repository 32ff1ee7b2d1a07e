package view_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/scenarios/view"
)

// A recording in one HTML file opens from a file, at the moment of its link, and loads nothing.
func TestBrowserOpensARecordingFromAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lab.json")
	if err := os.WriteFile(file, record(t, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := view.WriteReplay(&b, file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lab.html"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC) // node-1 is still off
	page := openURL(t, "file://"+filepath.Join(dir, "lab.html")+view.ReplayFragment("", "node-1", at), 1200, 800)
	page.wait("the moment is shown", `document.querySelector("#moment").textContent === "2031-01-02 03:04:05"`)
	page.wait("the server of the link is shown as it was", `document.querySelector("#server h2")?.textContent === "node-1" && document.querySelector("#server .badges").innerText.includes("Off")`)
	page.do("move to the end", evaluate(`{ const at = document.querySelector("#at"); at.value = 1000; at.dispatchEvent(new Event("input")); }`))
	page.wait("it is on at the end", `document.querySelector("#server .badges").innerText.includes("On")`)
	page.wait("the time is in the link", `location.hash.includes("at=2031-01-02T03%3A11")`)
	if got := value[string](page, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:")).join(" ")`); got != "" {
		t.Errorf("the page has loaded %s", got)
	}
	if policy := value[string](page, `document.querySelector("meta[http-equiv]").content`); !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") {
		t.Errorf("the page has the policy %s", policy)
	}
}

func TestReplayIsWrittenOfARecordingAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := view.WriteReplay(&bytes.Buffer{}, file); err == nil || !strings.Contains(err.Error(), "is no recording") {
		t.Errorf("WriteReplay() = %v, want an error that says that it is no recording", err)
	}
}
