// Package sample draws a few rows of a slow test matrix, such as every server
// model with every client. `make test` runs a sample that another seed changes;
// `make check` runs every row. The package owns the choice and how a run reports
// it. It does not know what a row is.
//
// METALAB_SEED is the seed, any text; without it the seed is today's date in
// UTC, so that samples rotate from day to day. METALAB_FULL=1 draws every row. So
// does a `go test -run` pattern that names a subtest, unless a seed is given: somebody asks
// for that row, while a run with a seed that tests a row again must draw what it drew before.
//
// METALAB_SHARE=3 draws a third of the scenarios and scripts, too, which are not
// rows of a matrix; more than 3 makes matrices smaller as well. METALAB_COMPLETE names
// packages, with commas, that draw everything all the same.
package sample

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The environment variables that choose a sample.
const (
	SeedEnv     = "METALAB_SEED"
	FullEnv     = "METALAB_FULL"
	ShareEnv    = "METALAB_SHARE"
	CompleteEnv = "METALAB_COMPLETE"
)

// plainShare is the share up to which matrices have the rows that their tests ask for.
const plainShare = 3

// Seed returns the seed of this run.
func Seed() string {
	if s := os.Getenv(SeedEnv); s != "" {
		return s
	}
	return time.Now().UTC().Format(time.DateOnly)
}

// Full reports whether this run tests every row.
func Full() bool {
	if os.Getenv(FullEnv) != "" {
		return true
	}
	if slices.Contains(strings.Split(os.Getenv(CompleteEnv), ","), testedPackage()) {
		return true
	}
	run := flag.Lookup("test.run")
	return os.Getenv(SeedEnv) == "" && run != nil && strings.Contains(run.Value.String(), "/")
}

// testedPackage returns the package whose tests run, by its path in the module: go test runs
// them in its directory. It is "." outside of a module.
func testedPackage() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			rel, _ := filepath.Rel(root, dir) // both are absolute
			return filepath.ToSlash(rel)
		}
		if root == filepath.Dir(root) {
			return "."
		}
	}
}

// share returns one part of how many is drawn of what is no matrix: 1 is all.
func share() int {
	n, err := strconv.Atoi(os.Getenv(ShareEnv))
	if err != nil || n < 1 || Full() {
		return 1
	}
	return n
}

// Part returns how many of n repetitions this run does: all, or the share of METALAB_SHARE, at
// least one.
func Part(n int) int { return (n + share() - 1) / share() }

// Share returns the names that this run tests of a list which is no matrix, such as scripts:
// all of them, or the share of METALAB_SHARE, at least one. It logs what it draws.
func Share(t testing.TB, list string, names []string) []string {
	t.Helper()
	n := Part(len(names))
	if n >= len(names) {
		return names
	}
	out := Draw(Seed(), list, n, names)
	t.Logf("sample: %d of %d of %s with %s=%s and %s=%d: %s", len(out), len(names), list, SeedEnv, Seed(), ShareEnv, share(), strings.Join(out, ", "))
	return out
}

// Rows returns the rows of a matrix that this run tests, in their order: all of
// them in a full run, else n of them. It logs the names of the rows drawn and the
// seed, which draws them again.
func Rows(t testing.TB, matrix string, n int, names []string) []string {
	t.Helper()
	if s := share(); s > plainShare {
		n = max(1, n*plainShare/s)
	}
	if Full() || n >= len(names) {
		return names
	}
	out := Draw(Seed(), matrix, n, names)
	t.Logf("sample: %d of %d rows of %s with %s=%s: %s", len(out), len(names), matrix, SeedEnv, Seed(), strings.Join(out, ", "))
	return out
}

// Draw returns n of the rows, in their order. The same seed, matrix and rows give
// the same sample; over many seeds every row is drawn equally often.
func Draw[T any](seed, matrix string, n int, rows []T) []T {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed + "\x00" + matrix)) // a hash never fails
	drawn := rand.New(rand.NewPCG(h.Sum64(), 0)).Perm(len(rows))
	drawn = drawn[:min(n, len(rows))]
	slices.Sort(drawn)
	out := make([]T, 0, len(drawn))
	for _, i := range drawn {
		out = append(out, rows[i])
	}
	return out
}
