//go:generate go test . -run TestDocumentIsCurrent -update

package phase

import (
	"fmt"
	"slices"
	"strings"
)

// Document returns the state machine as Markdown: a diagram of the transitions and
// a table of the rules.
func Document() string {
	var b strings.Builder
	b.WriteString("# The states of a BareMetalHost\n\nGenerated from `rules.go` by `go generate`; do not edit.\n\n```mermaid\nstateDiagram-v2\n")
	for _, s := range States {
		fmt.Fprintf(&b, "    state %q as %s\n", display(s), node(s))
	}
	fmt.Fprintf(&b, "    [*] --> %s\n", node(stateNone))
	for _, r := range rules {
		if r.to == nil {
			continue
		}
		for _, s := range r.in {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", node(s), node(*r.to), r.name)
		}
	}
	fmt.Fprintf(&b, "    %s --> [*]\n```\n\nIn each state the first rule that applies decides. Two things can stay any decision:\n"+
		"a host that boots its agent by the network waits, `delayed`, for a place among those that\n"+
		"are inspected, provisioned and deprovisioned at a time (B-73), and a change of power that\n"+
		"does not come about is an error (B-124).\n", node(deleting))
	for _, s := range States {
		fmt.Fprintf(&b, "\n## %s\n\n| when the host | then | and is | statements |\n|---|---|---|---|\n", display(s))
		for _, r := range rules {
			if !r.in.has(s) {
				continue
			}
			then := string(r.do)
			switch {
			case r.fail != nil:
				then = "record the error, back off"
			case then == "" && r.to == nil && r.clear != "":
				then = "clear the error"
			case then == "" && r.to == nil:
				then = "wait"
			}
			next := ""
			if r.to != nil {
				next = display(*r.to)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, then, next, r.ref)
		}
	}
	return b.String()
}

func display(s State) string {
	if s == stateNone {
		return "(none)"
	}
	return string(s)
}

func node(s State) string { return fmt.Sprintf("s%d", slices.Index(States, s)) }
