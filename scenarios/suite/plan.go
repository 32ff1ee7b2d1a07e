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
	path  string // in the module: "emulator/lab"
	links bool   // its tests link the Kubernetes API server
}

// group is packages that are tested by one go command.
type group struct {
	packages []testPackage
	timeout  time.Duration // of each package
	parallel int           // packages at the same time
}

// slow are the packages that are tested alone, one after the other, in this order: they
// take a minute or more, or depend on how much of the machine they get. The time-out of
// each is five times what it takes on two cores of a machine that does nothing else.
var slow = []struct {
	path    string
	timeout time.Duration
}{
	{"agent/sys/sandbox", 10 * time.Minute},
	{"controller/netboot/ramdisk", 10 * time.Minute},
	{"scenarios/containers", 15 * time.Minute},
	{"emulator/lab", 10 * time.Minute},
	{"controller/kube", 10 * time.Minute},
	{"scenarios/conformance", 10 * time.Minute},
	{"features/rack", 10 * time.Minute},
	{"features/conformance", 10 * time.Minute},
	{"scenarios/world", 20 * time.Minute},
	{"cmd/labctl", 20 * time.Minute},
	{"features", 40 * time.Minute},
}

// The time-out of every other package, and how many of them run side by side.
const (
	fastTimeout  = 10 * time.Minute
	fastParallel = 2
)

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
// tell the most in the least time.
func split(all []testPackage) (out []group) {
	fast := group{timeout: fastTimeout, parallel: fastParallel}
	alone := make([]group, len(slow))
	for _, p := range all {
		at := -1
		for i, s := range slow {
			if s.path == p.path {
				at = i
			}
		}
		if at < 0 {
			fast.packages = append(fast.packages, p)
			continue
		}
		alone[at] = group{packages: []testPackage{p}, timeout: slow[at].timeout, parallel: 1}
	}
	for _, g := range append([]group{fast}, alone...) {
		if len(g.packages) > 0 {
			out = append(out, g)
		}
	}
	return out
}
