package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// module is the path of this module.
const module = "github.com/metalab-dev/metalab"

// kubernetes is the package whose importers link the Kubernetes API server.
const kubernetes = module + "/controller/kube"

// testPackage is a package that has tests.
type testPackage struct {
	path  string // in the module: "emulator/rack"
	links bool   // its tests link the Kubernetes API server
}

// group is packages that are tested by one go command.
type group struct {
	packages []testPackage
	timeout  time.Duration // time-out of each package
	parallel int           // packages at the same time
	uncached bool          // results of an earlier run do not count
}

// slow are the packages that are tested after all others, in this order: they take most of a
// minute or more, or depend on how much of the machine they get. Those of one row run side
// by side, since each leaves a processor idle for most of its time. The time-out is of each, some
// five times what it takes on two cores of a machine that does nothing else.
var slow = []struct {
	paths   []string
	timeout time.Duration
}{
	{[]string{"guest/sandbox"}, 10 * time.Minute},
	{[]string{"scenarios/containers", "controller/netboot/ramdisk"}, 15 * time.Minute},
	{[]string{"emulator/rack", "controller/kube", "features/rack", "scenarios/view"}, 10 * time.Minute},
	{[]string{"lab", "cmd/labctl"}, 20 * time.Minute},
	{[]string{"features"}, 40 * time.Minute},
}

// The time-out of every other package, and how many packages run side by side.
const (
	fastTimeout = 10 * time.Minute
	sideBySide  = 2
)

// raceSlowdown multiplies the time-outs under the race detector, with which programs take 2 to 20
// times as long (Go, "Data Race Detector", "Runtime Overhead").
const raceSlowdown = 6

// list returns the packages with tests that match the patterns, sorted.
func list(ctx context.Context, patterns []string) ([]testPackage, error) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-test", "-json=ImportPath,ForTest,Deps"}, patterns...)...)
	cmd.Stderr = &errs
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	var out []testPackage
	for in := json.NewDecoder(bytes.NewReader(b)); ; {
		var p struct {
			ImportPath string
			ForTest    string
			Deps       []string
		}
		if err := in.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		path, ok := strings.CutSuffix(p.ImportPath, ".test")
		if !ok || p.ForTest != "" { // not the program of a package's tests
			continue
		}
		links := path == kubernetes || slices.ContainsFunc(p.Deps, func(d string) bool {
			d, _, _ = strings.Cut(d, " ")
			return d == kubernetes
		})
		out = append(out, testPackage{path: strings.TrimPrefix(path, module+"/"), links: links})
	}
	slices.SortFunc(out, func(a, b testPackage) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// withoutKubernetes returns the packages that do not link the API server: under the race
// detector it takes minutes to build, and its tests take many times as long.
func withoutKubernetes(all []testPackage) []testPackage {
	return slices.DeleteFunc(slices.Clone(all), func(p testPackage) bool { return p.links })
}

// split returns the groups in which packages are tested: the fast ones first, since they
// tell the most in the least time. Those that depend on the kernel or on installed programs run
// always: the go command does not see when these change, and would take an earlier result.
func split(all []testPackage) (out []group) {
	fast := group{timeout: fastTimeout, parallel: sideBySide}
	machine := group{timeout: fastTimeout, parallel: sideBySide, uncached: true}
	late := make([]group, len(slow))
	for _, p := range all {
		at := -1
		for i, s := range slow {
			if slices.Contains(s.paths, p.path) {
				at = i
			}
		}
		if at < 0 && slices.Contains(unskippable, p.path) {
			machine.packages = append(machine.packages, p)
			continue
		}
		if at < 0 {
			fast.packages = append(fast.packages, p)
			continue
		}
		late[at].packages = append(late[at].packages, p)
		late[at].timeout, late[at].parallel, late[at].uncached = slow[at].timeout, sideBySide, true
	}
	for _, g := range append([]group{fast, machine}, late...) {
		if len(g.packages) > 0 {
			out = append(out, g)
		}
	}
	return out
}
