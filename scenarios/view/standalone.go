package view

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// WriteReplay writes the page of a recording, with the recording in it, as one HTML file. It
// opens in a browser from a file, without labctl and without a network.
func WriteReplay(out io.Writer, file string) error {
	p, err := NewReplay(file, nil)
	if err != nil {
		return err
	}
	in, err := openRecording(file)
	if err != nil {
		return err
	}
	defer in.Close()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(copyLines(z, in), z.Close()); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return err
	}
	icon, err := assets.ReadFile("assets/icon.svg")
	if err != nil {
		return err
	}
	script, err := bundle("app.mjs")
	if err != nil {
		return err
	}
	err = pageTemplate.Execute(out, pageData(p.name, filepath.Base(file), &embedded{
		Style: template.CSS(style), Script: template.JS(script), Icon: template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(icon)),
		Policy:    fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; form-action 'none'; base-uri 'none'", source(script), source(string(style))),
		Recording: base64.StdEncoding.EncodeToString(packed.Bytes()),
	}))
	if err != nil {
		return err
	}
	return nil
}

// ReplayFragment is the part of a link, from the #, that opens the page of a recording at a
// time. server may be "": the page then shows the racks.
func ReplayFragment(rack, server string, at time.Time) string {
	where := "#/"
	if server != "" {
		if rack == "" {
			rack = noRack
		}
		where += "rack/" + url.PathEscape(rack) + "/" + url.PathEscape(server)
	}
	return where + "?at=" + url.QueryEscape(at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// noRack is the rack, in links, of servers that stand in none.
const noRack = "-"

// embedded holds the assets of a page that opens from a file.
type embedded struct {
	Style     template.CSS
	Script    template.JS
	Icon      template.URL
	Policy    string // Content-Security-Policy
	Recording string // gzip in base64
}

// source returns the source expression of an inline script or style (Content Security Policy,
// "hash-source").
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// The forms of imports and exports that the modules use.
var (
	importForm = regexp.MustCompile(`(?m)^import (?:\* as (\w+)|(\{[^}]*\})) from "\./(\w+)\.mjs";$`)
	exportForm = regexp.MustCompile(`(?m)^export ((?:async )?(?:function|class|const) (\w+))`)
	anyForm    = regexp.MustCompile(`(?m)^\s*(?:import|export)\b.*$`)
)

// bundle returns a module and all that it imports as one script: each module is a function
// that returns its exports. Browsers load no modules for a page that is a file.
func bundle(name string) (string, error) {
	var out strings.Builder
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		b, err := assets.ReadFile(path.Join("assets", name))
		if err != nil {
			return err
		}
		text := string(b)
		for _, m := range importForm.FindAllStringSubmatch(text, -1) {
			if err := add(m[3] + ".mjs"); err != nil {
				return err
			}
		}
		text = importForm.ReplaceAllString(text, "const $1$2 = module_$3;")
		var exports []string
		for _, m := range exportForm.FindAllStringSubmatch(text, -1) {
			exports = append(exports, m[2])
		}
		text = exportForm.ReplaceAllString(text, "$1")
		if left := anyForm.FindString(text); left != "" {
			return fmt.Errorf("%s: %q has another form than the bundle knows", name, left)
		}
		fmt.Fprintf(&out, "const module_%s = (() => {\n%s\nreturn { %s };\n})();\n", strings.TrimSuffix(name, ".mjs"), text, strings.Join(exports, ", "))
		return nil
	}
	err := add(name)
	return out.String(), err
}
