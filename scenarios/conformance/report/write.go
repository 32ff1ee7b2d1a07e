package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// Files of a report's folder.
const (
	JSONFile   = "report.json"
	HARFile    = "evidence.har"
	QuirksFile = "quirks.yaml"
)

// Files writes a report in all formats into a folder and returns their names. The
// profile is the model of a capture for quirks.yaml, or empty.
func Files(dir string, d *Document, evidence []conformance.Exchange, profile string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var names []string
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
		path := filepath.Join(dir, f.name)
		// A reader sees the old file or the new one.
		if err := os.WriteFile(path+".new", b.Bytes(), 0o600); err != nil {
			return nil, err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return nil, err
		}
		names = append(names, path)
	}
	return names, nil
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
