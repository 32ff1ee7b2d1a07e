// Package sample draws a few rows of a slow test matrix, such as every server
// model with every client. `make test` runs a sample that another seed changes;
// `make check` runs every row. The package owns the choice and how a run reports
// it. It does not know what a row is.
//
// METALAB_SEED is the seed, any text; without it the seed is today's date in
// UTC, so that samples rotate from day to day. METALAB_FULL=1 draws every row. So
// does a `go test -run` pattern that names a subtest: somebody asks for that row.
package sample

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The environment variables that choose a sample.
const (
	SeedEnv = "METALAB_SEED"
	FullEnv = "METALAB_FULL"
)

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
	run := flag.Lookup("test.run")
	return run != nil && strings.Contains(run.Value.String(), "/")
}

// Rows returns the rows of a matrix that this run tests, in their order: all of
// them in a full run, else n of them. It logs the names of the rows drawn and the
// seed, which draws them again.
func Rows(t testing.TB, matrix string, n int, names []string) []string {
	t.Helper()
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
