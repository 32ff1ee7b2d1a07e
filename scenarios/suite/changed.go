package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/sample"
)

// mostChanged is how many changed packages run complete at most: with more of them a run
// would take as long as a full one, and each runs as a sample.
const mostChanged = 10

// change is what differs from a base commit.
type change struct {
	base     string // "" when there is none: nothing counts as changed
	packages []string
}

// String implements fmt.Stringer.
func (c change) String() string {
	switch {
	case c.base == "":
		return "changed packages: no base commit"
	case len(c.packages) == 0:
		return "changed packages since " + c.base + ": none"
	case len(c.packages) > mostChanged:
		return fmt.Sprintf("changed packages since %s: %d, more than %d: all are sampled", c.base, len(c.packages), mostChanged)
	}
	return fmt.Sprintf("changed packages since %s: %s", c.base, strings.Join(c.packages, ", "))
}

// has reports whether a package has changed.
func (c change) has(p string) bool { return slices.Contains(c.packages, p) }

// complete returns the packages that draw no sample, with commas.
func (c change) complete() string {
	if len(c.packages) > mostChanged {
		return ""
	}
	return strings.Join(c.packages, ",")
}

// among returns the changed ones of some packages: a sample when there are too many.
func (c change) among(all []testPackage) []testPackage {
	out := slices.DeleteFunc(slices.Clone(all), func(p testPackage) bool { return !c.has(p.path) })
	return sample.Draw(seed(), "changed packages", mostChanged, out)
}

// changedPackages returns the packages that differ from the base: of sources, features
// or test data, in commits or in the work tree. A file that was only renamed, or whose
// imports alone differ, does not count.
func changedPackages(ctx context.Context, base string, all []testPackage) (change, error) {
	if base == "" {
		found, err := git(ctx, "rev-list", "-1", "--before=24 hours ago", "HEAD")
		if base = strings.TrimSpace(found); err != nil || base == "" {
			return change{}, nil // no repository, or a young one
		}
	}
	full, err := git(ctx, "rev-parse", "--verify", "--short=12", base+"^{commit}")
	if err != nil {
		return change{}, fmt.Errorf("%s %q: name a commit: %w", baseEnv, base, err)
	}
	c := change{base: strings.TrimSpace(full)}
	names, err := git(ctx, "diff", "-M", "--name-status", "-z", c.base)
	if err != nil {
		return c, err
	}
	fields := strings.Split(names, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		status, name := fields[i], fields[i+1]
		both := []string{name}
		if strings.HasPrefix(status, "R") {
			i++
			if name = fields[i+1]; status == "R100" {
				continue
			}
			both = append(both, name)
		}
		p := owner(name, all)
		if p == "" || c.has(p) {
			continue
		}
		if path.Ext(name) == ".go" && status != "A" && status != "D" {
			diff, err := git(ctx, append([]string{"diff", "-M", "-U0", c.base, "--"}, both...)...)
			if err != nil {
				return c, err
			}
			if importsOnly(diff) {
				continue
			}
		}
		c.packages = append(c.packages, p)
	}
	slices.Sort(c.packages)
	return c, nil
}

// owner returns the package to which a file belongs: that of its directory, or the
// nearest above, which embeds or reads it. It is "" where none of the packages does.
func owner(file string, all []testPackage) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if slices.ContainsFunc(all, func(p testPackage) bool { return p.path == dir }) {
			return dir
		}
		if sources, _ := os.ReadDir(dir); slices.ContainsFunc(sources, func(e os.DirEntry) bool { return path.Ext(e.Name()) == ".go" }) {
			return "" // a package without tests
		}
	}
	return ""
}

// importLine is a changed line of an import declaration, or an empty one.
var importLine = regexp.MustCompile(`^[+-](\s*(import\s+)?([\w.]+\s+)?"[^"\s]+"(\s*//.*)?|\s*import \(|\s*\)|\s*)$`)

// importsOnly reports whether all lines that a diff changes are of imports.
func importsOnly(diff string) bool {
	some := false
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] != '+' && line[0] != '-' || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") {
			continue
		}
		if some = true; !importLine.MatchString(line) {
			return false
		}
	}
	return some
}

// git returns what a git command prints.
func git(ctx context.Context, args ...string) (string, error) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = &errs
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return string(b), nil
}
