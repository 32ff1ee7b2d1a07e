package layering

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// root is the module's, from this package.
const root = "../.."

func TestSourcesFollowTheTable(t *testing.T) {
	if _, err := os.Stat(root + "/go.mod"); err != nil {
		t.Fatalf("%s is not the root of the module: %v", root, err)
	}
	found, err := Check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestEmulatorNeedsNoKubernetes looks at what imports bring along, in tests
// too: a border says the same of direct imports only.
func TestEmulatorNeedsNoKubernetes(t *testing.T) {
	// -e: packages that do not compile are the compiler's to report.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-test", "./emulator/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	listed := 0
	for pkg := range strings.Lines(string(out)) {
		listed++
		if strings.HasPrefix(pkg, "k8s.io/") || strings.HasPrefix(pkg, "sigs.k8s.io/") {
			t.Errorf("emulator/... depends on %s", pkg)
		}
	}
	if listed == 0 {
		t.Errorf("%s lists nothing", cmd)
	}
}

// The boot image has lab-agent: it links no client of Kubernetes, and no Helm. Helm's SDK is
// linked by one package, and by what wires the controllers.
func TestProgramsLinkWhatTheyNeed(t *testing.T) {
	links := func(pkg string, tests bool) (out []string) {
		t.Helper()
		args := []string{"list", "-e", "-deps"}
		if tests {
			args = append(args, "-test")
		}
		cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
		cmd.Dir = root
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		return strings.Fields(string(text))
	}
	has := func(list []string, prefix string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(p, prefix) })
	}
	agent := links("./cmd/lab-agent", false)
	for _, never := range []string{"helm.sh/", "k8s.io/client-go/", "sigs.k8s.io/controller-runtime"} {
		if has(agent, never) {
			t.Errorf("cmd/lab-agent links %s", never)
		}
	}
	if !has(agent, Module+"/agent/lcm") || !has(links("./controller/manager", false), "helm.sh/") {
		t.Error("go list does not list what cmd/lab-agent and controller/manager need")
	}
	for _, pkg := range []string{"./agent/...", "./emulator/...", "./controller/metal3/host/...", "./controller/mosk/provider/...", "./controller/kube"} {
		if has(links(pkg, true), "helm.sh/") {
			t.Errorf("%s needs Helm's SDK", pkg)
		}
	}
}

// TestSeededViolations has one file break each rule, or nearly.
func TestSeededViolations(t *testing.T) {
	const ours = Module + "/"
	for _, tt := range []struct {
		name string
		file string
		src  string
		want []string // findings; none when the file is right
	}{
		{
			name: "listed", file: "controller/metal3/host/a.go",
			src: `package host; import ("time"; "` + ours + `controller/bmc"; "k8s.io/client-go/rest")`,
		}, {
			name: "not listed", file: "controller/inband/a.go",
			src:  "package inband\nimport \"" + ours + "controller/bmc\"",
			want: []string{"controller/inband/a.go:2: controller/inband may not import controller/bmc: its row does not list it"},
		}, {
			name: "listed package, not the one below", file: "controller/metal3/host/a.go",
			src:  `package host; import "` + ours + `controller/bmc/redfish"`,
			want: []string{"controller/metal3/host/a.go:1: controller/metal3/host may not import controller/bmc/redfish: its row does not list it"},
		}, {
			name: "the module's root", file: "cmd/labctl/a.go",
			src:  `package main; import "` + Module + `"`,
			want: []string{"cmd/labctl/a.go:1: cmd/labctl may not import .: its row does not list it"},
		}, {
			name: "no row", file: "controller/new/a.go",
			src:  `package new`,
			want: []string{"controller/new/a.go:1: package controller/new has no row in scenarios/layering"},
		}, {
			name: "no row, test file", file: "emulator/new/a_test.go",
			src:  `package new`,
			want: []string{"emulator/new/a_test.go:1: package emulator/new has no row in scenarios/layering"},
		}, {
			name: "row of a pattern", file: "agent/plugin/raid/lsi/a.go",
			src: `package lsi; import "` + ours + `agent/sys"`,
		}, {
			name: "emulator from controller", file: "controller/metal3/host/a.go",
			src:  `package host; import sim "` + ours + `emulator/machine"`,
			want: []string{"controller/metal3/host/a.go:1: controller/metal3/host must not import emulator/machine: controllers must work on real servers"},
		}, {
			name: "emulator from a controller's test", file: "controller/bmc/redfish/a_test.go",
			src:  `package redfish; import "` + ours + `emulator/rack/racktest"`,
			want: []string{"controller/bmc/redfish/a_test.go:1: controller/bmc/redfish must not import emulator/rack/racktest: controllers must work on real servers"},
		}, {
			name: "emulator from the agent", file: "agent/sys/a.go",
			src:  `package sys; import "` + ours + `emulator/machine"`,
			want: []string{"agent/sys/a.go:1: agent/sys must not import emulator/machine: the agent must work on real servers"},
		}, {
			name: "controller from the emulator", file: "emulator/rack/a.go",
			src:  `package rack; import "` + ours + `controller/bmc"`,
			want: []string{"emulator/rack/a.go:1: emulator/rack must not import controller/bmc: the two sides meet only on the wire"},
		}, {
			name: "Kubernetes from the emulator's tests", file: "emulator/clock/a_test.go",
			src:  `package clock; import "k8s.io/utils/clock"`,
			want: []string{"emulator/clock/a_test.go:1: emulator/clock must not import k8s.io/utils/clock: the emulator is used without Kubernetes"},
		}, {
			name: "driver's codec in the emulator", file: "emulator/redfish/a.go",
			src:  `package redfish; import "github.com/stmcginnis/gofish/schemas"`,
			want: []string{"emulator/redfish/a.go:1: emulator/redfish must not import github.com/stmcginnis/gofish/schemas: emulator and drivers share no codec"},
		}, {
			name: "driver's codec in the emulator's tests", file: "emulator/redfish/a_test.go",
			src: `package redfish; import "github.com/stmcginnis/gofish"`,
		}, {
			name: "sockets and files in the model", file: "emulator/machine/a.go",
			src: `package machine; import ("net/netip"; "net/url"; "net"; "os/exec"; "` + ours + `emulator/clock")`,
			want: []string{
				"emulator/machine/a.go:1: emulator/machine must never import net",
				"emulator/machine/a.go:1: emulator/machine must never import os/exec",
				"emulator/machine/a.go:1: emulator/machine must never import emulator/clock",
			},
		}, {
			name: "files in the model's tests", file: "emulator/machine/a_test.go",
			src: `package machine_test; import ("os"; "` + ours + `emulator/machine")`,
		}, {
			name: "one vendor from another", file: "emulator/dialect/ilo/a.go",
			src:  `package ilo; import "` + ours + `emulator/dialect/idrac"`,
			want: []string{"emulator/dialect/ilo/a.go:1: emulator/dialect/ilo may not import emulator/dialect/idrac: its row does not list it"},
		}, {
			name: "Never is stronger than May", file: "emulator/rack/a.go",
			src:  `package rack; import "` + ours + `emulator/rack/control"`,
			want: []string{"emulator/rack/a.go:1: emulator/rack must never import emulator/rack/control"},
		}, {
			name: "But is stronger than Never", file: "controller/bmc/a.go",
			src:  `package bmc; import ("k8s.io/utils/clock"; "k8s.io/utils/ptr")`,
			want: []string{"controller/bmc/a.go:1: controller/bmc must never import k8s.io/utils/ptr"},
		}, {
			name: "Only", file: "controller/api/lab/v1/a.go",
			src:  `package v1; import ("fmt"; "k8s.io/apimachinery/pkg/runtime"; "k8s.io/client-go/rest")`,
			want: []string{"controller/api/lab/v1/a.go:1: controller/api/lab/v1 may not import k8s.io/client-go/rest: its row allows k8s.io/apimachinery/... only"},
		}, {
			name: "test kit in a test", file: "controller/inband/a_test.go",
			src: `package inband; import ("` + ours + `controller/bmc/bmctest"; "` + ours + `agent/sys/systest")`,
		}, {
			name: "test kit in other code", file: "cmd/labctl/a.go",
			src:  `package main; import "` + ours + `agent/sys/systest"`,
			want: []string{"cmd/labctl/a.go:1: cmd/labctl may not import agent/sys/systest: its row does not list it"},
		}, {
			name: "test kit by name", file: "lab/a.go",
			src: `package lab; import "` + ours + `agent/sys/systest"`,
		}, {
			name: "what tests may", file: "scenarios/images/a_test.go",
			src: `package images; import "` + ours + `controller/netboot"`,
		}, {
			name: "what only tests may", file: "scenarios/images/a.go",
			src:  `package images; import "` + ours + `controller/netboot"`,
			want: []string{"scenarios/images/a.go:1: scenarios/images may not import controller/netboot: its row does not list it"},
		}, {
			name: "name of a folder", file: "agent/plugin/common/disk/a.go",
			src:  `package disk`,
			want: []string{"agent/plugin/common/disk/a.go:1: a package named common says nothing of what it owns"},
		}, {
			name: "name of a package", file: "agent/sys/a_test.go",
			src:  `package util_test`,
			want: []string{"agent/sys/a_test.go:1: a package named util says nothing of what it owns"},
		}, {
			name: "syntax", file: "agent/sys/a.go",
			src:  `package`,
			want: []string{"agent/sys/a.go:0: does not parse: agent/sys/a.go:1:8: expected 'IDENT', found 'EOF'"},
		},
		{name: "testdata", file: "agent/sys/testdata/a.go", src: `package util`},
		{name: "hidden", file: "agent/.cache/a.go", src: `package util`},
		{name: "underscore", file: "agent/_a.go", src: `package util`},
		{name: "not Go", file: "agent/sys/a.txt", src: `package util`},
	} {
		t.Run(tt.name, func(t *testing.T) { checkOne(t, tt.file, tt.src, tt.want) })
	}
}

func TestSeededClocks(t *testing.T) {
	const clocked = "emulator/rack/a.go:2: time.Now: under emulator/ only emulator/clock reads the real clock"
	for _, tt := range []struct {
		name string
		file string
		src  string
		want []string
	}{
		{"call", "emulator/rack/a.go", "package rack; import \"time\"\nvar now = time.Now()", []string{clocked}},
		{"value", "emulator/rack/a.go", "package rack; import \"time\"\nvar now = time.Now", []string{clocked}},
		{"renamed", "emulator/rack/a.go", "package rack; import t \"time\"\nvar now = t.Now()", []string{clocked}},
		{"in a function", "emulator/rack/a.go", "package rack; import \"time\"\nfunc f() { go func() { _ = time.Now() }() }", []string{clocked}},
		{"dot", "emulator/rack/a.go", "package rack; import . \"time\"", []string{
			"emulator/rack/a.go:1: time must be imported under a name: under emulator/ only emulator/clock reads the real clock",
		}},
		{"others", "emulator/rack/a.go", "package rack; import \"time\"\nvar a, b = time.After(1), time.NewTicker(time.Second)", []string{
			"emulator/rack/a.go:2: time.After: under emulator/ only emulator/clock reads the real clock",
			"emulator/rack/a.go:2: time.NewTicker: under emulator/ only emulator/clock reads the real clock",
		}},
		{"values of time", "emulator/rack/a.go", "package rack; import \"time\"\nvar a = time.Unix(0, 0).Add(time.Second)", nil},
		{"another package called time", "emulator/rack/a.go", "package rack; import \"example.org/time\"\nvar a = time.Now()", nil},
		{"method", "emulator/rack/a.go", "package rack; import \"time\"\nfunc f(c interface{ Now() time.Time }) { c.Now() }", nil},
		{"the clock itself", "emulator/clock/a.go", "package clock; import \"time\"\nvar now = time.Now()", nil},
		{"sleep in a test", "controller/kube/a_test.go", "package kube; import \"time\"\nfunc f() { time.Sleep(1) }", []string{
			"controller/kube/a_test.go:2: time.Sleep: a test waits for a condition, or sleeps in a bubble of testing/synctest",
		}},
		{"sleep in a bubble", "controller/kube/a_test.go", "package kube; import (\"testing/synctest\"; \"time\")\nfunc f() { synctest.Test(t, func() { time.Sleep(1) }) }", nil},
		{"test", "emulator/rack/a_test.go", "package rack; import \"time\"\nvar now = time.Now()", nil},
		{"elsewhere", "controller/kube/a.go", "package kube; import \"time\"\nvar now = time.Now()", nil},
	} {
		t.Run(tt.name, func(t *testing.T) { checkOne(t, tt.file, tt.src, tt.want) })
	}
}

// checkOne checks a module of one file.
func checkOne(t *testing.T, file, src string, want []string) {
	t.Helper()
	found, err := Check(fstest.MapFS{file: {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Check(%s), want to got:\n%s", file, diff)
	}
}

// A house stands on those before it.
func TestHousesStandOnThoseBelow(t *testing.T) {
	for i, h := range Houses {
		for _, m := range h.May {
			if !slices.ContainsFunc(Houses[:i], func(b House) bool { return b.Name == m }) {
				t.Errorf("house %s may import %s, which is not before it", h.Name, m)
			}
		}
		if _, err := os.Stat(root + "/" + h.Name); err != nil {
			t.Errorf("house %s: %v", h.Name, err)
		}
	}
}

func TestSeededViolationsOfHouses(t *testing.T) {
	const ours = Module + "/"
	for _, tt := range []struct {
		name, from, to string
		want           bool // a finding
	}{
		{"family from a family", "controller/mosk/lcm/a.go", "controller/metal3/host/phase", true},
		{"family from what controllers share", "controller/drain/a.go", "controller/mosk/lcm", true},
		{"agent from an agent", "agent/machineconfig/a.go", "agent/lcm", true},
		{"agent from another family's controller", "agent/lcm/a.go", "controller/machineconfig", true},
		{"agent from the guest", "agent/elemental/a.go", "guest/cloudinit", true},
		{"agent from the guest, test", "agent/elemental/a_test.go", "guest/sandbox", false},
		{"agent from its controllers", "agent/lcm/a.go", "controller/mosk/lcm/item", false},
		{"what controllers share", "controller/mosk/lcm/a.go", "controller/drain", false},
		{"manager from a family", "controller/manager/a.go", "controller/mosk/lcm", false},
		{"scenarios from the lab", "scenarios/view/a.go", "lab", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Check(fstest.MapFS{tt.from: {Data: []byte("package a\nimport \"" + ours + tt.to + "\"")}})
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.Text, "the house ") })
			if got != tt.want {
				t.Errorf("%s imports %s: a finding on houses: %v, want %v: %v", tt.from, tt.to, got, tt.want, found)
			}
		})
	}
}

// TestTableIsSound finds rows and patterns that have no effect.
func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table {
		if seen[r.Package] {
			t.Errorf("%s has two rows", r.Package)
		}
		seen[r.Package] = true
		if _, err := os.Stat(root + "/" + strings.TrimSuffix(r.Package, "/...")); err != nil {
			t.Errorf("row %s: %v", r.Package, err)
		}
	}
	// meansRow tells whether a pattern means a package that has a row.
	meansRow := func(pattern string) bool {
		for _, r := range Table {
			if matches(pattern, strings.TrimSuffix(r.Package, "/...")) {
				return true
			}
		}
		return false
	}
	for _, r := range Table {
		for _, list := range [][]string{r.May, r.Tests} {
			for _, pattern := range list {
				if !meansRow(pattern) {
					t.Errorf("row %s lists %s, which has no row", r.Package, pattern)
				}
			}
		}
		for _, pattern := range r.But {
			if !matchesAny(r.Never, strings.TrimSuffix(pattern, "/...")) {
				t.Errorf("row %s excepts %s, which it does not forbid", r.Package, pattern)
			}
		}
	}
	for _, kit := range kits {
		if RowOf(kit) == nil {
			t.Errorf("test kit %s has no row", kit)
		}
	}
}
