package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// choice returns the allowed value that equals a text, in any case. The error is a
// usage error that lists the allowed values and names the nearest.
func choice(name, text string, allowed []string) (string, error) {
	for _, a := range allowed {
		if strings.EqualFold(a, text) {
			return a, nil
		}
	}
	return text, usage.New(notAllowed(name, text, allowed))
}

func notAllowed(name, text string, allowed []string) error {
	return fmt.Errorf("%s %q is not one of %s%s", name, text, strings.Join(allowed, ", "), suggest.DidYouMean(text, allowed))
}

// choiceValue is a flag that takes one of several values.
type choiceValue struct {
	to      *string
	name    string
	allowed []string
}

// String implements pflag.Value.
func (v choiceValue) String() string { return *v.to }

// Type implements pflag.Value.
func (v choiceValue) Type() string { return "string" }

// Set implements pflag.Value.
func (v choiceValue) Set(text string) error {
	chosen, err := choice(v.name, text, v.allowed)
	if err != nil {
		return notAllowed("--"+v.name, text, v.allowed)
	}
	*v.to = chosen
	return nil
}

// choiceFlag adds a flag that takes one of several values, and completes them.
func choiceFlag(c *cobra.Command, to *string, name string, allowed []string, usage string) {
	c.Flags().Var(choiceValue{to, name, allowed}, name, usage)
	must(c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)))
}
