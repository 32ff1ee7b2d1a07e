package usage

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// program returns a program whose commands have all that Strict looks at.
func program() *cobra.Command {
	work := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "program", SilenceUsage: true, SilenceErrors: true}
	down := &cobra.Command{Use: "down", RunE: work}
	show := &cobra.Command{Use: "show", RunE: work, Args: Arguments("HOST", "[DISK]")}
	demo := &cobra.Command{Use: "demo", RunE: work}
	demo.AddCommand(&cobra.Command{Use: "day2", RunE: work})
	host := &cobra.Command{Use: "host"}
	host.AddCommand(&cobra.Command{Use: "power", Aliases: []string{"reset"}, RunE: work})
	f := down.Flags()
	f.String("ca", "", "")
	f.Bool("insecure", false, "")
	f.String("pod", "", "")
	f.Int("size", 0, "")
	f.String("file", "", "")
	f.String("url", "", "")
	if err := down.MarkFlagRequired("file"); err != nil {
		panic(err)
	}
	down.MarkFlagsMutuallyExclusive("ca", "insecure")
	down.MarkFlagsRequiredTogether("pod", "size")
	down.MarkFlagsOneRequired("url", "pod")
	root.AddCommand(down, show, demo, host)
	Strict(root)
	return root
}

func TestWrongCommandLinesAreNamedWithWhatIsMeant(t *testing.T) {
	for line, want := range map[string]string{
		"dwon":                         `program has no command "dwon". Did you mean down?`,
		"host pover":                   `program host has no command "pover". Did you mean power?`,
		"host rset":                    `program host has no command "rset". Did you mean reset?`,
		"demo dya2":                    `program demo has no command "dya2". Did you mean day2?`,
		"demo day2 x":                  `program demo day2 takes no argument "x"`,
		"demo x":                       `program demo has no command "x": use one of day2`,
		"help dwon":                    `program has no command "dwon". Did you mean down?`,
		"completion bsah":              `program completion has no command "bsah". Did you mean bash?`,
		"completion bash x":            `program completion bash takes no argument "x"`,
		"show":                         "program show needs HOST",
		"show a b c":                   `program show takes no argument "c"`,
		"down x":                       `program down takes no argument "x"`,
		"down --insecrue":              "unknown flag: --insecrue. Did you mean --insecure?",
		"down --size many":             `--size "many" is not a whole number`,
		"down --url":                   "flag needs an argument: --url",
		"down --url x":                 "program down needs --file",
		"down --file f":                "give --pod or --url",
		"down --file f --pod p":        "--pod needs --size",
		"down --file f --url u --ca c": "",
		"down --file f --url u --ca c --insecure": "--ca and --insecure exclude each other",
		"host":       "",
		"help host":  "",
		"completion": "",
	} {
		c := program()
		c.SetArgs(strings.Fields(line))
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		err := c.Execute()
		if want == "" && err != nil || want != "" && (!Is(err) || err.Error() != want+" (see --help)") {
			t.Errorf("program %s: %v, want %q", line, err, want)
		}
	}
}

func TestIsFindsWrappedErrors(t *testing.T) {
	cause := errors.New("no")
	err := fmt.Errorf("host: %w", New(cause))
	if !Is(err) || !errors.Is(err, cause) || Is(cause) || Is(nil) {
		t.Errorf("Is(%v) = %t, Is(%v) = %t", err, Is(err), cause, Is(cause))
	}
}
