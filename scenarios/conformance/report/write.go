package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

// Files of a report's folder.
const (
	JSONFile   = "report.json"
	HARFile    = "evidence.har"
	QuirksFile = "quirks.yaml"
	// ResultsFile and ModelDir are in the folder, and no reports.
	ResultsFile = "results.jsonl"
	ModelDir    = "model"
)

// Files writes a report in all formats into a folder and returns their names. The
// profile is the model of a capture for quirks.yaml, or empty.
func Files(dir string, d *Document, evidence []conformance.Exchange, profile string) ([]string, error) {
	var names []string
	files := map[string][]byte{}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{JSONFile, func(w io.Writer) error { return JSON(w, d) }},
		{"report.html", func(w io.Writer) error { return HTML(w, d, evidence) }},
		{"report.md", func(w io.Writer) error { return Markdown(w, d) }},
		{"junit.xml", func(w io.Writer) error { return JUnit(w, d) }},
		{HARFile, func(w io.Writer) error { return HAR(w, d.Tool, evidence) }},
		{"ocp.jsonl", func(w io.Writer) error { return OCP(w, d) }},
		{QuirksFile, func(w io.Writer) error { return Quirks(w, d, profile) }},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return nil, err
		}
		files[f.name], names = b.Bytes(), append(names, filepath.Join(dir, f.name))
	}
	// The folder is that of a run: its reports replace those of the run before.
	return names, outfile.Tree{Dir: dir, Files: files, Force: true}.Write(0o700, 0o600)
}

// CheckFolder returns an error when a folder has files of the names that a run writes, and no run
// has written them.
func CheckFolder(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, conformance.JournalFile)); err == nil {
		return nil
	}
	if d, err := Load(filepath.Join(dir, JSONFile)); err == nil && d.Tool != "" {
		return nil
	}
	files := map[string][]byte{}
	for _, name := range []string{JSONFile, HARFile, QuirksFile, ResultsFile, ModelDir, "report.html", "report.md", "junit.xml", "ocp.jsonl"} {
		files[name] = nil
	}
	return outfile.Tree{Dir: dir, Files: files, Made: func(string) bool { return false }, Fix: "name another folder with --out"}.Check()
}

// JSON writes report.json.
func JSON(w io.Writer, d *Document) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return err
	}
	return nil
}

// Schema is the JSON schema of report.json.
//
//go:embed schema.json
var Schema []byte
