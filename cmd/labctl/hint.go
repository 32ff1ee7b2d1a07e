package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/scenarios/cluster"
)

// command matches a command of labctl in a text, up to where a sentence goes on.
var command = regexp.MustCompile(`\blabctl ([a-z]+)((?: [^\s,:;()]+)*)`)

// withoutLab are the commands that are about no lab: their hints name none.
var withoutLab = []string{"completion", "conformance", "dialect", "docs", "features", "help", "image", "ls", "module", "profile", "quirk", "record", "shard", "version"}

// hints makes each command of labctl in a text name the lab that this command is about, unless
// that is the lab that labctl takes without a flag. A command that names a lab stays.
func (o *options) hints(text string) string {
	flags := o.labFlags()
	if flags == "" || o.root == nil {
		return text
	}
	return command.ReplaceAllStringFunc(text, func(hint string) string {
		m := command.FindStringSubmatch(hint)
		is := func(c *cobra.Command) bool { return c.Name() == m[1] }
		if !slices.ContainsFunc(o.root.Commands(), is) || slices.Contains(withoutLab, m[1]) && !strings.HasPrefix(m[2], " run ") || strings.Contains(m[2], " --state") {
			return hint
		}
		return "labctl" + flags + " " + m[1] + m[2]
	})
}

// labFlags returns the flags that choose the lab, after a space; "" for the default.
func (o *options) labFlags() string {
	if c := o.cluster; c.name != "" {
		flags := " --cluster=" + c.name
		if c.namespace != cluster.Namespace {
			flags += " --cluster-namespace " + quoted(c.namespace)
		}
		if c.kubeconfig != "" {
			flags += " --cluster-kubeconfig " + quoted(c.kubeconfig)
		}
		return flags
	}
	if def, err := defaultState(); o.state == "" || err == nil && def == o.state {
		return ""
	}
	return " --state " + quoted(o.state)
}

// quoted quotes a word for a shell where that needs it.
func quoted(word string) string {
	if strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%=", r))
	}) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// say prints a text whose hints name the lab.
func (o *options) say(w io.Writer, format string, args ...any) {
	fmt.Fprint(w, o.hints(fmt.Sprintf(format, args...)))
}

// hintedError is an error whose hints name the lab.
type hintedError struct {
	err  error
	text string
}

func (e *hintedError) Error() string { return e.text }
func (e *hintedError) Unwrap() error { return e.err }

// nameLab makes the errors of all commands name the lab in their hints.
func (o *options) nameLab(c *cobra.Command) {
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			err := do(c, args)
			if err == nil {
				return nil
			}
			if strings.HasPrefix(err.Error(), "labctl ") { // it is of the command itself
				return err
			}
			if text := o.hints(err.Error()); text != err.Error() {
				return &hintedError{err, text}
			}
			return err
		}
	}
	for _, sub := range c.Commands() {
		o.nameLab(sub)
	}
}
