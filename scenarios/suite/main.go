// Suite runs the repository's tests, for `make test` and CI: fast packages first, slow ones
// after them, alone or beside those that leave a processor idle, each with a time-out. It runs a test that has failed
// once more by itself, says what is a failure and what a flake, and shows where the time
// went. It owns the order of packages and the judgement of a run; it knows no test.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// The environment variables of a run, beside those of package sample.
const (
	baseEnv   = "METALAB_BASE"   // commit since which a package counts as changed
	budgetEnv = "METALAB_BUDGET" // seconds after which samples get smaller
)

// everything is the pattern of all packages.
const everything = "./..."

// settings are the choices of a run.
type settings struct {
	patterns []string      // packages as `go list` takes them
	race     bool          // under the race detector, without those that link Kubernetes
	changed  bool          // the changed packages alone
	budget   time.Duration // 0 is none
	base     string        // "" is the commit 24 hours back
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := parse(os.Args[1:], os.Getenv)
	if err == nil {
		err = run(ctx, s, os.Stdout)
	}
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func parse(args []string, env func(string) string) (settings, error) {
	s := settings{base: env(baseEnv)}
	f := flag.NewFlagSet("suite", flag.ContinueOnError)
	f.BoolVar(&s.race, "race", false, "run the packages that do not link Kubernetes under the race detector")
	f.BoolVar(&s.changed, "changed", false, "run the changed packages alone")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.patterns = f.Args(); len(s.patterns) == 0 {
		s.patterns = []string{everything}
	}
	if text := env(budgetEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return s, fmt.Errorf("%s %q: use a number of seconds", budgetEnv, text)
		}
		s.budget = time.Duration(n) * time.Second
	}
	return s, nil
}

// run runs the tests, and returns an error when the run is not good.
func run(ctx context.Context, s settings, out io.Writer) error {
	began := time.Now()
	all, err := list(ctx, []string{everything})
	if err != nil {
		return err
	}
	// Among all packages: those that are not tested count, too.
	c, err := changedPackages(ctx, s.base, all)
	if err != nil {
		return err
	}
	chosen := all
	if !slices.Contains(s.patterns, everything) {
		if chosen, err = list(ctx, s.patterns); err != nil {
			return err
		}
	}
	if s.race {
		chosen = withoutKubernetes(chosen)
	}
	if s.changed {
		chosen = c.among(chosen)
	}
	_, _ = fmt.Fprintln(out, c)
	if len(chosen) == 0 {
		_, _ = fmt.Fprintln(out, "no package to test")
		return nil
	}
	r := &runner{settings: s, out: out, env: os.Environ()}
	if complete := c.complete(); len(complete) > 0 {
		r.env = append(r.env, sample.CompleteEnv+"="+complete)
	}
	for _, g := range split(chosen) {
		if s.budget > 0 && time.Since(began) > s.budget && !r.small {
			r.small = true
			r.env = append(r.env, sample.CompleteEnv+"=", sample.ShareEnv+"="+strconv.Itoa(smallShare))
			_, _ = fmt.Fprintf(out, "%s=%.0f s are spent: from here on samples are a quarter, and no package runs complete\n", budgetEnv, s.budget.Seconds())
		}
		if err := r.group(ctx, g); err != nil {
			return err
		}
	}
	j := r.judge(c)
	j.required = prerequisites.Required() && !s.race && !s.changed && slices.Contains(s.patterns, everything)
	if j.known, err = knownFlakes(ctx, c.base); err != nil {
		return err
	}
	j.print(out)
	return j.err()
}

// smallShare is the share of samples when the budget is spent: a quarter of what
// sample.ShareEnv=3 draws.
const smallShare = 12

// seed returns the seed of the run.
func seed() string { return cmp.Or(os.Getenv(sample.SeedEnv), sample.Seed()) }
