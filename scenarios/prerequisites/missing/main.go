// Missing prints the prerequisites of tests that this machine does not have, and the tests
// and scenarios that are skipped for them. `make test` runs it first and last.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func main() {
	if err := run(os.Stdout, slices.Contains(os.Args[1:], "-short")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, short bool) error {
	root, err := prerequisites.Root()
	if err != nil {
		return err
	}
	uses, err := prerequisites.Uses(os.DirFS(root))
	if err != nil {
		return err
	}
	report(out, prerequisites.Missing(), uses, short)
	return nil
}

// report prints a line for each missing prerequisite, and unless short one for each test or
// scenario that is skipped for it.
func report(out io.Writer, missing []prerequisites.Prerequisite, uses map[string][]string, short bool) {
	verb := "are skipped"
	if prerequisites.Required() {
		verb = "fail"
	}
	for _, p := range missing {
		_, _ = fmt.Fprintf(out, "missing: %s (%s): %d tests and scenarios %s\n", p.Name, p.Get, len(uses[p.Name]), verb)
		for _, use := range uses[p.Name] {
			if !short {
				_, _ = fmt.Fprintf(out, "  %s\n", use)
			}
		}
	}
}
