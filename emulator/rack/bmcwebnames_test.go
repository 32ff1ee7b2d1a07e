package rack_test

import (
	"bufio"
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	bmcwebSource = flag.String("bmcweb", "", "write testdata/bmcweb.txt from this checkout of openbmc/bmcweb")
	bmcwebCommit = flag.String("bmcweb-commit", "", "with -bmcweb: the commit and date of the checkout")
)

// bmcwebNames lists the names in bmcweb's source; writeBmcwebNames makes the list.
//
//go:embed testdata/bmcweb.txt
var bmcwebNames []byte

// bmcwebFile holds the names of one source file of bmcweb.
type bmcwebFile struct {
	types    []string // the types, without version, of the resources that it makes
	includes []string // the files that it includes, or whose namespace it uses
	names    []string // the words in its literals: properties, and values that look like them
}

var (
	bmcwebComment = regexp.MustCompile(`(?s:/\*.*?\*/)|(?m:^\s*//.*$)|(?m:\s//[^"\n]*$)`)
	bmcwebInclude = regexp.MustCompile(`(?m)^#include "([^"]+)"`)
	bmcwebUse     = regexp.MustCompile(`\b([a-z]\w*)::`)
	bmcwebLiteral = regexp.MustCompile(`"((?:[^"\\\n]|\\.)*)"`)
	bmcwebType    = regexp.MustCompile(`^#([A-Z]\w*)\.`)
	bmcwebName    = regexp.MustCompile(`^(?:[A-Z][A-Za-z0-9]*|[A-Z][A-Za-z0-9]*@[A-Za-z]+\.[A-Za-z]+|@[A-Za-z]+\.[A-Za-z]+|#[A-Z][A-Za-z]*\.[A-Z][A-Za-z]*|target)$`)
)

// readBmcweb reads one file of bmcweb. A literal with slashes is a JSON pointer, or the
// path of a property that a PATCH sets: each of its segments is a name.
func readBmcweb(source string) bmcwebFile {
	source = bmcwebComment.ReplaceAllString(source, "")
	types, includes, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range bmcwebInclude.FindAllStringSubmatch(source, -1) {
		includes[path.Base(m[1])] = true
	}
	for _, m := range bmcwebUse.FindAllStringSubmatch(source, -1) {
		includes[m[1]+".hpp"] = true
	}
	for _, m := range bmcwebLiteral.FindAllStringSubmatch(bmcwebInclude.ReplaceAllString(source, ""), -1) {
		if t := bmcwebType.FindStringSubmatch(m[1]); t != nil && strings.Count(m[1], ".") == 2 || t != nil && strings.HasSuffix(t[1], "Collection") {
			types[t[1]] = true
		}
		for name := range strings.SplitSeq(m[1], "/") {
			if bmcwebName.MatchString(name) {
				names[name] = true
			}
		}
	}
	return bmcwebFile{types: slices.Sorted(maps.Keys(types)), includes: slices.Sorted(maps.Keys(includes)), names: slices.Sorted(maps.Keys(names))}
}

// eachBmcwebSource calls do with the name and the text of each file of redfish-core in a checkout that
// makes resources or is included by one.
func eachBmcwebSource(t *testing.T, root string, do func(name, source string)) {
	t.Helper()
	for _, dir := range []string{"redfish-core/lib", "redfish-core/include"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err == nil && entry.IsDir() && (entry.Name() == "registries" || entry.Name() == "generated"):
				return fs.SkipDir
			case err != nil || entry.IsDir() || path.Ext(name) != ".hpp":
				return err
			}
			source, err := fs.ReadFile(os.DirFS(root), name)
			do(name, string(source))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// writeBmcwebNames writes testdata/bmcweb.txt from a checkout: the files that make
// resources, those that they include from redfish-core, and the names in them. It leaves out
// registries, privileges and generated files, whose names no response has.
func writeBmcwebNames(t *testing.T, root, commit string) {
	t.Helper()
	files := map[string]bmcwebFile{}
	eachBmcwebSource(t, root, func(name, source string) { files[path.Base(name)] = readBmcweb(source) })
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Names in the source of openbmc/bmcweb (Apache-2.0), %s.\n", commit)
	fmt.Fprintln(&out, "# go test ./emulator/rack -run TestOpenBMCShowsNothingThatBmcwebLacks -bmcweb CHECKOUT -bmcweb-commit 'COMMIT, DATE' writes this file.")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		includes := slices.DeleteFunc(f.includes, func(i string) bool { return len(files[i].names) == 0 && len(files[i].includes) == 0 })
		if len(f.types) == 0 && len(f.names) == 0 && len(includes) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s\ntypes: %s\nincludes: %s\nnames: %s\n", name, strings.Join(f.types, " "), strings.Join(includes, " "), strings.Join(f.names, " "))
	}
	if err := os.WriteFile("testdata/bmcweb.txt", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	bmcwebNames = out.Bytes()
}

// bmcwebProperties returns the names that bmcweb has for each type of resource: those in
// the files that make the type, and in those that they include.
func bmcwebProperties(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files := map[string]bmcwebFile{}
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(bmcwebNames)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		f := files[last]
		switch {
		case strings.HasPrefix(key, "#"):
			continue
		case key == "types":
			f.types = strings.Fields(value)
		case key == "includes":
			f.includes = strings.Fields(value)
		case key == "names":
			f.names = strings.Fields(value)
		default:
			last = key
			continue
		}
		files[last] = f
	}
	out := map[string]map[string]bool{}
	for name := range files {
		seen := map[string]bool{}
		var add func(name, resourceType string)
		add = func(name, resourceType string) {
			if seen[resourceType+name] {
				return
			}
			seen[resourceType+name] = true
			for _, n := range files[name].names {
				out[resourceType][n] = true
			}
			for _, i := range files[name].includes {
				add(i, resourceType)
			}
		}
		for _, resourceType := range files[name].types {
			if out[resourceType] == nil {
				out[resourceType] = map[string]bool{}
			}
			add(name, resourceType)
		}
	}
	if len(out) < 80 {
		t.Fatalf("testdata/bmcweb.txt has %d types, want more", len(out))
	}
	return out
}
