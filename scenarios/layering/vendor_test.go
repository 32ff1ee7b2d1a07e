package layering

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// makers are the names of vendors and of their BMCs that no package of emulator/dialect has.
var makers = []string{"dell", "hpe", "lenovo", "bmcweb", "fujitsu", "huawei", "ami"}

// vendors are the names of vendors and of their BMCs.
var vendors = append(dialectPackages(), makers...)

// dialectPackages returns the names of the packages below emulator/dialect that have a
// vendor's records.
func dialectPackages() (names []string) {
	for _, r := range Table {
		name, below := strings.CutPrefix(r.Package, "emulator/dialect/")
		if below && !slices.Contains([]string{"file", "generic", "quirk", "template"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// oneForAll are the packages that are the same for all vendors: what differs is
// data, under emulator/dialect.
var oneForAll = []string{"emulator/redfish", "emulator/ipmi", "emulator/bmc", "emulator/machine", "emulator/rack"}

// naming are lines that may name one.
type naming struct {
	file string
	line *regexp.Regexp
	why  string
}

var named = []naming{
	{"emulator/rack/model.go", regexp.MustCompile(`^\t"[a-z./-]+/emulator/dialect/[a-z]+"$|^\t[a-z]+\.[A-Za-z0-9]+\.Name:\s+&[a-z]+\.[A-Za-z0-9]+,$`), "the line that wires the dialects"},
}

// words are the words of a line, of identifiers as well, in small letters.
func words(line string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if unicode.IsDigit(rune(w[0])) { // a number
			continue
		}
		w = strings.TrimRight(w, "0123456789")
		from := 0
		rs := []rune(w)
		for i := 1; i <= len(rs); i++ {
			if i == len(rs) || unicode.IsUpper(rs[i]) && !unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsUpper(rs[i]) && unicode.IsLower(rs[i+1]) {
				out = append(out, strings.ToLower(string(rs[from:i])))
				from = i
			}
		}
		out = append(out, strings.ToLower(w)) // iDRAC
	}
	return out
}

// vendorsIn lists the vendors that a line names.
func vendorsIn(line string) []string {
	var out []string
	for _, w := range words(line) {
		if slices.Contains(vendors, w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func TestOneCodeIsForAllVendors(t *testing.T) {
	read, used := 0, map[string]bool{}
	tree := os.DirFS(root)
	for _, dir := range oneForAll {
		err := fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			src, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			read++
			for i, line := range strings.Split(string(src), "\n") {
				all := vendorsIn(line)
				if len(all) == 0 {
					continue
				}
				if slices.ContainsFunc(named, func(e naming) bool { return e.file == name && e.line.MatchString(line) }) {
					used[name] = true
					continue
				}
				t.Errorf("%s:%d: names %v: what a vendor does otherwise is data, in emulator/dialect", name, i+1, all)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Errorf("%d files were read", read)
	}
	for _, e := range named {
		if !used[e.file] {
			t.Errorf("%s: no line is %s any longer", e.file, e.why)
		}
	}
}

// TestServiceReadsNoDialectFields holds the packages above vendor to the methods of
// vendor.Vendor. They may pass a record on, and do not look into it.
func TestServiceReadsNoDialectFields(t *testing.T) {
	field := regexp.MustCompile(`\bDialect(\(\))?\.`)
	var files []string
	for _, dir := range []string{"emulator/redfish", "emulator/redfish/render", "emulator/redfish/event"} {
		in, err := fs.Glob(os.DirFS(root), dir+"/*.go")
		if err != nil || len(in) == 0 {
			t.Fatalf("%s has %d files, error %v", dir, len(in), err)
		}
		files = append(files, in...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(root + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			if field.MatchString(line) {
				t.Errorf("%s:%d: reads a field of a dialect.Record: ask vendor.Vendor", name, i+1)
			}
		}
	}
}

func TestVendorsAreFoundInWords(t *testing.T) {
	for line, want := range map[string]int{
		`if v.d.Name == "dell" {`: 1, "func isDellJob()": 1, "// as iDRAC does": 1, "var HPEPost, ILO = 1, 2": 2, `"Oem/Hpe/PostState"`: 1,
		"case iLO5:": 1, "0xCC": 0, "// a family of amicable pilots": 0, "modelled": 0, "dellorto": 0,
	} {
		if got := vendorsIn(line); len(got) != want {
			t.Errorf("%s: found %v, want %d", line, got, want)
		}
	}
}
