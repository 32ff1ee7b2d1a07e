// Mutants tests the tests: it negates a condition or leaves out a statement of the
// product, or a rule of its manifests, one at a time, runs the tests that should see it, and reports the mutations
// that none of them saw. `make mutants` runs it. It owns the choice of mutations and of the
// tests for each; the sources stay as they are, for the mutated file reaches the
// compiler as an overlay (go help build, -overlay).
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/tools/cover"
)

// minimum is the shortest time-out of a package: a mutation may make a loop
// endless, and most packages take seconds.
const minimum = time.Minute

// The tests are good enough when at most `allowed` of `outOf` mutations survive:
// some change nothing that can be seen, such as the size of a buffer.
const (
	allowed = 2
	outOf   = 40
)

// config selects the mutations of a run.
type config struct {
	families []Family
	seed     string
	count    int
	at       string // the only place to mutate, as FILE or FILE:LINE; "" for any
}

func main() {
	var c config
	names := flag.String("family", "", "comma-separated `families` of packages to mutate; all without it")
	flag.StringVar(&c.seed, "seed", cmp.Or(os.Getenv("METALAB_SEED"), "1"), "`text` that chooses the mutations")
	flag.IntVar(&c.count, "count", outOf, "number of mutations")
	flag.StringVar(&c.at, "at", "", "mutate only `FILE[:LINE]`, as the report names it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if c.families, err = choose(families, *names); err == nil {
		err = run(ctx, ".", c, minimum, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tries mutations of the module in a directory and reports each on a line. Its
// error says that too many survive, or why nothing can be said.
func run(ctx context.Context, dir string, c config, minimum time.Duration, out io.Writer) error {
	t, err := newTester(ctx, dir, c.seed, minimum)
	if err != nil {
		return err
	}
	defer os.RemoveAll(t.work)
	var code, rules []candidate
	for _, f := range c.families {
		found, err := t.candidates(ctx, f, c.at)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "family %s: %d mutations of covered code\n", f.Name, len(found))
		code = append(code, found...)
		if found, err = t.rules(f, c.at); err != nil {
			return err
		}
		if len(f.Rules) > 0 {
			_, _ = fmt.Fprintf(out, "family %s: %d rules\n", f.Name, len(found))
		}
		rules = append(rules, found...)
	}
	if t.unfenced > 0 {
		_, _ = fmt.Fprintf(out, "%d mutations below %s are left out: they run in .ci/fence alone, where it has all fences\n", t.unfenced, strings.Join(guards, " and "))
	}
	r := report{out: out}
	for _, drawn := range mix(shuffle(c.seed, code), shuffle(c.seed, rules)) {
		if r.seen+len(r.survivors) == c.count {
			break
		}
		if err := t.try(ctx, drawn, &r); err != nil {
			return err
		}
	}
	return r.end(c.seed)
}

// searchable is the mode of the directories of temporary files: a test starts programs in
// them as another user.
const searchable = 0o711

// shortDir makes a directory for temporary files. Tests put sockets below it, whose paths have at most
// 103 bytes with the names of the tests.
func shortDir() (string, error) {
	for i := os.Getpid(); ; i++ {
		dir := filepath.Join(os.TempDir(), fmt.Sprint("m", i))
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return dir, errors.Join(err, os.Chmod(dir, searchable))
	}
}

func newTester(ctx context.Context, dir, seed string, minimum time.Duration) (*tester, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}}\n{{.Dir}}")
	list.Dir = dir
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	module, root, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	work, err := shortDir()
	if err != nil {
		return nil, err
	}
	return &tester{
		root: root, module: module, work: work, minimum: minimum, clean: map[string]time.Duration{},
		// Mutated and unmutated, a package runs the same sample of its slow matrices.
		env: []string{"METALAB_SEED=" + seed},
	}, nil
}

// guards are the folders of the code that keeps what emulated servers run from hurting this
// machine: with a guard left out, a test may fill it with processes.
var guards = []string{"agent/sys", "guest/sandbox"}

func guard(file string) bool {
	return slices.ContainsFunc(guards, func(folder string) bool { return strings.HasPrefix(file, folder+"/") })
}

// fencedEnv is set to "complete" by .ci/fence when nothing that runs in it can hurt this
// machine. Elsewhere guards are not mutated.
const fencedEnv = "METALAB_FENCED"

// candidate is a mutation with the packages whose tests should see it, nearest first.
type candidate struct {
	Mutation
	suites []string
}

// candidates lists the mutations of the code that the tests of a family cover.
func (t *tester) candidates(ctx context.Context, f Family, only string) (all []candidate, err error) {
	fenced := os.Getenv(fencedEnv) == "complete"
	file, err := t.cover(ctx, f)
	if err != nil {
		return nil, err
	}
	profiles, err := cover.ParseProfiles(file) // sorted by the names of files
	if err != nil {
		return nil, err
	}
	suites, err := t.suites(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, p := range profiles {
		if slices.Contains(suites, path.Dir(p.FileName)) {
			continue
		}
		name := strings.TrimPrefix(p.FileName, t.module+"/")
		src, err := os.ReadFile(filepath.Join(t.root, name))
		if err != nil {
			return nil, err
		}
		found, err := Find(name, src, func(line, column int) bool { return covers(p.Blocks, line, column) })
		if err != nil {
			return nil, err
		}
		if !fenced && guard(name) {
			t.unfenced += len(found)
			continue
		}
		for _, m := range found {
			if m.is(only) {
				all = append(all, candidate{m, append([]string{path.Dir(name)}, f.Suites...)})
			}
		}
	}
	return all, nil
}

// suites lists the packages of a family that only tests use: those that import testing.
// Hardly a test fails when a check of theirs is left out.
func (t *tester) suites(ctx context.Context, f Family) ([]string, error) {
	const each = `{{$p := .ImportPath}}{{range .Imports}}{{if eq . "testing"}}{{$p}} {{end}}{{end}}`
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", each}, f.Packages...)...)
	list.Dir = t.root
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(f.Packages, " "), err)
	}
	return strings.Fields(string(text)), nil
}

// covers tells whether the block at a place has run. Blocks do not overlap.
func covers(blocks []cover.ProfileBlock, line, column int) bool {
	for _, b := range blocks {
		after := line > b.StartLine || line == b.StartLine && column >= b.StartCol
		before := line < b.EndLine || line == b.EndLine && column < b.EndCol
		if after && before {
			return b.Count > 0
		}
	}
	return false
}

// shuffle draws an order of candidates by the seed.
func shuffle(seed string, all []candidate) []candidate {
	h := fnv.New64a()
	h.Write([]byte(seed))
	rand.New(rand.NewPCG(h.Sum64(), 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// try runs the suites of a mutation until one sees it.
func (t *tester) try(ctx context.Context, c candidate, r *report) error {
	tried := map[string]bool{}
	for _, pkg := range c.suites {
		pkg = path.Join(t.module, strings.TrimPrefix(strings.TrimPrefix(pkg, t.module), "/"))
		if tried[pkg] {
			continue
		}
		tried[pkg] = true
		v, err := t.judge(ctx, pkg, c.Mutation)
		switch {
		case err != nil:
			return err
		case v.Broken:
			r.skip(c.Mutation)
			return nil
		case v.Failed != "":
			r.see(c.Mutation, strings.TrimPrefix(pkg, t.module+"/")+": "+v.Failed)
			return nil
		}
	}
	r.survive(c.Mutation)
	return nil
}

// report counts mutations and prints a line for each.
type report struct {
	out       io.Writer
	seen      int
	survivors []Mutation
}

func (r *report) see(m Mutation, by string) {
	r.seen++
	_, _ = fmt.Fprintf(r.out, "seen      %v (by %s)\n", m, by)
}

func (r *report) skip(m Mutation) {
	_, _ = fmt.Fprintf(r.out, "skipped   %v (it does not compile)\n", m)
}

func (r *report) survive(m Mutation) {
	r.survivors = append(r.survivors, m)
	_, _ = fmt.Fprintf(r.out, "survived  %v\n", m)
}

func (r *report) end(seed string) error {
	tried := r.seen + len(r.survivors)
	if tried == 0 {
		return errors.New("there is nothing to mutate: no test covers a condition or statement there")
	}
	_, _ = fmt.Fprintf(r.out, "seed %s: tests saw %d of %d mutations\n", seed, r.seen, tried)
	if len(r.survivors)*outOf > allowed*tried {
		return fmt.Errorf("%d of %d mutations survived; %d of %d may", len(r.survivors), tried, allowed, outOf)
	}
	return nil
}
