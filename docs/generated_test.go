package docs

import (
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
	"github.com/metalab-dev/metalab/scenarios/layering"
)

//go:generate go test . -run TestGeneratedPartsAreCurrent -update

var update = flag.Bool("update", false, "write the generated parts of the pages")

// generators make the parts of pages that stand between "<!-- begin NAME -->"
// and "<!-- end NAME -->".
var generators = map[string]func(*testing.T) string{
	"houses":   houses,
	"packages": packages,
	"writers":  writers,
	"rack-file": func(t *testing.T) string {
		return (&fields{t: t, key: yamlfile.Key}).tables(reflect.TypeFor[rackfile.Lab]())
	},
	"dialect-file": func(t *testing.T) string {
		return (&fields{t: t, key: yamlfile.Key}).tables(reflect.TypeFor[dialect.Record]())
	},
	"profile-file": func(t *testing.T) string {
		return (&fields{t: t, key: yamlfile.Key}).tables(reflect.TypeFor[machine.Profile]())
	},
	"dialects":        dialects,
	"quirks":          quirks,
	"ipmi-conformity": ipmiChecks,
	"conformance":     conformanceChecks,
}

var part = regexp.MustCompile(`(?s)(<!-- begin ([a-z-]+) -->\n)(.*?)(<!-- end ([a-z-]+) -->\n)`)

func TestGeneratedPartsAreCurrent(t *testing.T) {
	used := map[string]bool{}
	for _, page := range pages(t) {
		name := page[len("docs/"):]
		is := read(t, page)
		want := part.ReplaceAllStringFunc(is, func(s string) string {
			m := part.FindStringSubmatch(s)
			generate := generators[m[2]]
			if generate == nil || m[2] != m[5] {
				t.Errorf("%s: a part begins as %s and ends as %s: want one of %v", page, m[2], m[5], slices.Sorted(maps.Keys(generators)))
				return s
			}
			used[m[2]] = true
			return m[1] + "\n" + strings.TrimSpace(generate(t)) + "\n\n" + m[4]
		})
		if *update {
			if err := os.WriteFile(filepath.FromSlash(name), []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(is, "\n")); diff != "" {
			t.Errorf("%s is not current: run go generate ./docs (-want +is):\n%s", page, diff)
		}
	}
	for name := range generators {
		if !used[name] {
			t.Errorf("no page has the part %q", name)
		}
	}
}

// pages lists the pages of docs/, from the root of the module.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			out = append(out, path.Join("docs", name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// houses is the table of the houses of scenarios/layering.
func houses(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| house | has | may import |\n|---|---|---|\n")
	var above []string
	for _, h := range layering.Houses {
		if !exists(h.Name) {
			t.Errorf("there is no house %s", h.Name)
		}
		may := "itself"
		if len(h.May) > 0 {
			may = "`" + strings.Join(h.May, "`, `") + "`"
		}
		if len(above) > 0 && slices.Equal(slices.Sorted(slices.Values(h.May)), slices.Sorted(slices.Values(above))) {
			may = "all above"
		}
		above = append(above, h.Name)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", h.Name, h.Has, may)
	}
	return b.String()
}

// writers is the table of who writes which fields of a status.
func writers(*testing.T) string {
	var b strings.Builder
	b.WriteString("| status of | fields | written by |\n|---|---|---|\n")
	for _, w := range layering.Writers {
		var fields []string
		for _, f := range w.Fields {
			fields = append(fields, "`"+strings.ToLower(f[:1])+f[1:]+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", strings.TrimSuffix(w.Status, "Status"), strings.Join(fields, ", "), w.Package)
	}
	return b.String()
}

// packages is the table of the packages that exist, from the table of
// scenarios/layering and the packages' comments.
func packages(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| package | owns | may import of ours |\n|---|---|---|\n")
	for _, dir := range goDirs(t) {
		row := layering.RowOf(dir)
		if row == nil {
			t.Errorf("%s has no row in scenarios/layering", dir)
			continue
		}
		may := "none"
		if len(row.May) > 0 {
			may = "`" + strings.Join(row.May, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", dir, cell(synopsis(t, dir)), may)
	}
	return b.String()
}

// goDirs lists the directories with Go files that are not tests.
func goDirs(t *testing.T) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.ContainsAny(d.Name()[:1], "._")):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			if dir := path.Dir(name); !slices.Contains(out, dir) {
				out = append(out, dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// synopsis is the first sentence of a package's comment, without its name.
func synopsis(t *testing.T, dir string) string {
	t.Helper()
	for _, f := range parsed(t, dir, parser.PackageClauseOnly) {
		if f.Doc != nil {
			text := new(doc.Package).Synopsis(f.Doc.Text())
			return strings.TrimPrefix(strings.TrimPrefix(text, "Package "+f.Name.Name+" "), "Command "+path.Base(dir)+" ")
		}
	}
	t.Errorf("%s has no package comment", dir)
	return ""
}

var evidence = regexp.MustCompile(`\[(V|K)\b`)

// dialects is the table of the built-in dialects.
func dialects(t *testing.T) string {
	users := map[string][]string{}
	profiles, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range profiles {
		name := strings.TrimSuffix(path.Base(p), ".yaml")
		profile, record, err := rack.ReadProfile(nil, name)
		if err != nil {
			t.Fatal(err)
		}
		users[record.Name] = append(users[record.Name], fmt.Sprintf("`%s` (%s)", name, profile.Model))
	}
	var b strings.Builder
	b.WriteString("| dialect | vendor, product | Redfish | system, manager, chassis | manager's model | sessions | IPMI suites | OEM resources, actions, hooks | deviations from the standard | profiles |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range rack.Dialects() {
		r := rack.Dialect(name)
		suites := fmt.Sprintf("%d", r.IPMI.CipherSuites)
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s`, `%s`, `%s` | %s | %d | %s | %d, %d, %d | %d | %s |\n", name, cell(strings.TrimPrefix(r.Vendor+", "+r.Product, ", ")), r.RedfishVersion,
			r.SystemID, r.ManagerID, r.ChassisID, cell(r.ManagerModel), r.BMC.Sessions, strings.Trim(suites, "[]"), len(r.OEM.Resources), len(r.OEM.Actions), r.Hooks(), len(r.Deviations), strings.Join(users[name], "<br>"))
	}
	b.WriteString("\nThe evidence stands beside each datum in the code:\n\n| package | marked [V] | marked [K] |\n|---|---|---|\n")
	for _, dir := range goDirs(t) {
		if path.Dir(dir) != "emulator/dialect" {
			continue
		}
		count := map[string]int{}
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range evidence.FindAllStringSubmatch(string(text), -1) {
				count[m[1]]++
			}
		}
		if len(count) > 0 {
			fmt.Fprintf(&b, "| `%s` | %d | %d |\n", dir, count["V"], count["K"])
		}
	}
	return b.String()
}

// quirks is the table of all switches.
func quirks(*testing.T) string {
	var b strings.Builder
	b.WriteString("| switch | does | parameters | seen on | source |\n|---|---|---|---|---|\n")
	for _, q := range quirk.All {
		var params []string
		for _, p := range q.Params {
			params = append(params, fmt.Sprintf("`%s=%s`: %s, %s", p.Name, p.Default, p.Kind, p.Means))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", q.ID, cell(q.Does), cell(strings.Join(params, "<br>")), cell(q.Seen), cell(strings.Join(q.Source, " ; ")))
	}
	return b.String()
}

// ipmiChecks is the table of the checks of IPMI over LAN.
func ipmiChecks(*testing.T) string {
	var b strings.Builder
	b.WriteString("| check | what holds | IPMI v2.0 rev 1.1 | severity |\n|---|---|---|---|\n")
	for _, c := range ipmi.Checks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, cell(c.Title), cell(c.Reference), c.Severity)
	}
	return b.String()
}

// conformanceChecks is the table of the checks of labctl conformance.
func conformanceChecks(*testing.T) string {
	var b strings.Builder
	b.WriteString("| check | what holds | level | a failure predicts | step | after, needs |\n|---|---|---|---|---|---|\n")
	for _, c := range conformance.Checks() {
		needs := slices.Clone(c.After)
		for _, f := range c.Needs {
			needs = append(needs, "`"+string(f)+"`")
		}
		what := c.Title
		if c.Run == nil {
			what += " (" + conformance.NotBuilt + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.ID, cell(what), c.Level, cell(c.Predicts), c.Step, strings.Join(needs, ", "))
	}
	return b.String()
}

// TestDialectKeysAreTheParsers compares the keys that the page lists with those
// that a file may have.
func TestDialectKeysAreTheParsers(t *testing.T) {
	_, err := file.Parse("x.yaml", []byte("name: x\nbase: generic\nnoSuchKey: 1\nprotocol: {noSuchKey: 1}\n"), builtInDialects())
	if err == nil {
		t.Fatal("an unknown key was accepted")
	}
	for _, of := range []reflect.Type{reflect.TypeFor[dialect.Record](), reflect.TypeFor[dialect.Protocol]()} {
		var keys []string
		for i := range of.NumField() {
			if key := yamlfile.Key(of.Field(i)); key != "" {
				keys = append(keys, key)
			}
		}
		if want := strings.Join(keys, ", "); !strings.Contains(err.Error(), want) {
			t.Errorf("the error for an unknown key of %s is\n%v\nwithout the list\n%s", of, err, want)
		}
	}
}
