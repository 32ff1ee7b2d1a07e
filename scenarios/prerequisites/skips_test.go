package prerequisites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// skips are the files of tests that skip other than by Need, with the reason. CI fails when
// a test of agent/sys, agent/plugin/mdraid, emulator/rack, emulator/rack/ssdp or
// scenarios/loopdisk is skipped (.ci/run, checked).
var skips = map[string]string{
	"agent/plugin/mdraid/assemble_test.go":      "the kernel has no md driver, which no package brings",
	"agent/sys/block_linux_test.go":             "loop devices: CI fails when it is skipped",
	"agent/sys/frames_linux_test.go":            "packet sockets: CI fails when it is skipped",
	"controller/bmc/bmctest/behaviour.go":       "the suite of all drivers: one that does not offer a verb answers ErrUnsupported, which is checked",
	"controller/bmc/bmctest/firmwaresuite.go":   "the suite of all drivers: IPMI has no firmware",
	"controller/bmc/bmctest/subscriber.go":      "the suite of all drivers: IPMI has no subscriptions",
	"controller/bmc/bmctest/suite.go":           "the suite of all drivers: one that does not offer a verb answers ErrUnsupported, which is checked",
	"controller/netboot/ramdisk/qemu_test.go":   "-short",
	"emulator/rack/discovery_test.go":           "port 1900 and multicast: CI fails when it is skipped",
	"emulator/rack/racktest/port_test.go":       "port 1900: CI fails when it is skipped",
	"emulator/rack/statedir/statedir_test.go":   "root may write in any directory",
	"emulator/rack/ssdp/ssdp_test.go":           "multicast: CI fails when it is skipped",
	"emulator/machine/storage/rapid_test.go":    "actions of a random walk that are impossible in its state",
	"emulator/redfish/schema_test.go":           "the race detector; CI fails when it is skipped without",
	"scenarios/conformance/ipmi/lab_test.go":    "a dialect without SEL reservations",
	"scenarios/conformance/ipmi/target_test.go": "no -target",
	"scenarios/images/qemu_test.go":             "-short",
	"scenarios/loopdisk/loopdisk_linux_test.go": "loop devices: CI fails when it is skipped",
}

// TestTestsSkipByNeed fails when a test skips by itself: neither `make test` nor
// METALAB_NEED_PROGRAMS would notice that it never runs. The functions of fuzz targets may
// skip values.
func TestTestsSkipByNeed(t *testing.T) {
	dir := root(t)
	unused := maps.Clone(skips)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name == "bin" || len(name) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "scenarios/prerequisites/"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range skipsOf(f) {
			if delete(unused, name); skips[name] == "" {
				t.Errorf("%s: a test that needs something calls prerequisites.Need", files.Position(at))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("%s skips nothing: delete its line", name)
	}
}

// skipsOf returns the calls of a file that skip a test.
func skipsOf(f *ast.File) (out []token.Pos) {
	if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }) {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, plain := callee.X.(*ast.Ident)
		switch callee.Sel.Name {
		case "Fuzz":
			return false
		case "Skip", "Skipf", "SkipNow":
			if plain && slices.Contains([]string{"t", "b", "tb"}, of.Name) {
				out = append(out, call.Pos())
			}
		}
		return true
	})
	return out
}
