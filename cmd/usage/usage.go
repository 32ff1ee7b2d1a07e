// Package usage makes the commands of a program answer a wrong command line alike: with an
// error that names the argument or the flag and suggests the nearest one, and with the exit status
// 2. It knows no program and no command.
package usage

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/emulator/suggest"
)

// Status is the exit status of a program that was called by a wrong command line.
const Status = 2

// Error is an error in the command line.
type Error struct{ err error }

// New returns the error for a wrong command line, with its cause.
func New(cause error) error { return &Error{cause} }

// Error implements error.
func (e *Error) Error() string { return e.err.Error() + " (see --help)" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether an error is one in the command line.
func Is(err error) bool { return errors.As(err, new(*Error)) }

// Strict makes every command of a program refuse arguments that it does not take, commands
// that it has not, unknown flags and flags that exclude or need each other. Commands with an
// Args of their own keep it.
func Strict(root *cobra.Command) {
	root.SetFlagErrorFunc(FlagError)
	root.SetHelpCommand(help())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // cobra's Args return errors that are none of usage
			for _, shell := range append(c.Commands(), c) {
				shell.Args = nil
			}
			c.RunE = nil
		}
	}
	strict(root)
}

func strict(c *cobra.Command) {
	switch {
	case !c.Runnable() && c.HasSubCommands():
		c.Args, c.RunE = cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		}
	case c.Args == nil:
		c.Args = NoArguments
	}
	if c.PreRunE == nil {
		c.PreRunE = func(c *cobra.Command, _ []string) error { return checkFlags(c) }
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// help is cobra's command help, which fails when there is no such command.
func help() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]...", Short: "Show the help of a command", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			of := c.Root()
			for _, name := range args {
				i := slices.IndexFunc(of.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name || sub.HasAlias(name) })
				if i < 0 {
					return unknownCommand(of, name)
				}
				of = of.Commands()[i]
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// few is how many commands an error lists.
const few = 12

// unknownCommand returns the error for a command that another has not.
func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, append(sub.Aliases, sub.Name())...)
		}
	}
	near := suggest.DidYouMean(name, names)
	if near == "" && len(names) <= few {
		near = ": use one of " + strings.Join(names, ", ")
	}
	return New(fmt.Errorf("%s has no command %q%s", c.CommandPath(), name, near))
}

// NoArguments refuses arguments. Those of a command that has commands may be misspelled ones.
func NoArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.HasAvailableSubCommands():
		return unknownCommand(c, args[0])
	}
	return New(fmt.Errorf("%s takes no argument %q", c.CommandPath(), args[0]))
}

// Arguments makes a command accept the named arguments. Those in brackets are optional.
func Arguments(names ...string) cobra.PositionalArgs {
	least := 0
	for _, n := range names {
		if n[0] != '[' {
			least++
		}
	}
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return New(fmt.Errorf("%s takes no argument %q", c.CommandPath(), args[len(names)]))
		case len(args) < least:
			return New(fmt.Errorf("%s needs %s", c.CommandPath(), names[len(args)]))
		}
		return nil
	}
}

// unknownFlag matches pflag's error for a flag that a command has not.
var unknownFlag = regexp.MustCompile(`^unknown flag: --([^=]+)`)

// valueForms are the forms of the values of a flag, by pflag's type.
var valueForms = map[string]string{
	"int": "a whole number", "uint": "a whole number", "uint8": "a number from 0 to 255, such as 0xc0", "uint64": "a whole number",
	"float32": "a number", "float64": "a number", "bool": "true or false", "duration": "a duration, such as 30s or 5m",
}

// FlagError returns the error for a flag, with the flag that may be meant.
func FlagError(c *cobra.Command, err error) error {
	if bad := new(pflag.InvalidValueError); errors.As(err, &bad) {
		if strings.HasPrefix(bad.Unwrap().Error(), "--") {
			return New(bad.Unwrap()) // it names the flag already
		}
		if form := valueForms[bad.GetFlag().Value.Type()]; form != "" {
			return New(fmt.Errorf("--%s %q is not %s", bad.GetFlag().Name, bad.GetValue(), form))
		}
	}
	near := ""
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if all := suggest.Near(m[1], names); len(all) > 0 {
			near = ". Did you mean --" + strings.Join(all, " or --") + "?"
		}
	}
	return New(fmt.Errorf("%w%s", err, near))
}

// Names of the annotations in which cobra keeps groups of flags (flag_groups.go there).
const (
	exclusive = "cobra_annotation_mutually_exclusive"
	together  = "cobra_annotation_required_if_others_set"
	oneOf     = "cobra_annotation_one_required"
)

// checkFlags returns the error for flags that are missing, or exclude each other.
func checkFlags(c *cobra.Command) error {
	if err := c.ValidateRequiredFlags(); err != nil {
		var missing []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 && !f.Changed {
				missing = append(missing, "--"+f.Name)
			}
		})
		return New(fmt.Errorf("%s needs %s", c.CommandPath(), strings.Join(missing, " and ")))
	}
	err := c.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		for _, kind := range []string{exclusive, together, oneOf} {
			for _, group := range f.Annotations[kind] {
				if text := wrongGroup(c.Flags(), kind, strings.Fields(group)); text != "" {
					err = errors.New(text)
				}
			}
		}
	})
	return New(err)
}

// wrongGroup returns the problem of a group of flags; "" when it has none.
func wrongGroup(f *pflag.FlagSet, kind string, group []string) string {
	var given, missing, all []string
	for _, name := range slices.Sorted(slices.Values(group)) {
		all = append(all, "--"+name)
		if f.Changed(name) {
			given = append(given, "--"+name)
		} else {
			missing = append(missing, "--"+name)
		}
	}
	switch {
	case kind == exclusive && len(given) > 1:
		return strings.Join(given, " and ") + " exclude each other"
	case kind == together && len(given) > 0 && len(missing) > 0:
		return strings.Join(given, " and ") + " needs " + strings.Join(missing, " and ")
	case kind == oneOf && len(given) == 0:
		return "give " + strings.Join(all, " or ")
	}
	return ""
}
