package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/cmd/usage"
)

// walk calls f with every command of labctl that does something.
func walk(c *cobra.Command, f func(*cobra.Command)) {
	if c.Runnable() {
		f(c)
	}
	for _, sub := range c.Commands() {
		walk(sub, f)
	}
}

// anyArguments are the commands that take any number of arguments.
var anyArguments = []string{
	"labctl features", "labctl fault rm", "labctl fault quirk add", "labctl fault quirk rm", "labctl host bios get", "labctl host bios set", "labctl host bios reset", "labctl host bios schema",
	"labctl host exec", "labctl kubectl", "labctl snapshot reset",
}

// Every command refuses, with exit status 2 and without doing anything, an argument that it does
// not take, one that is missing, a flag that it does not have, a value that is none of a flag's,
// and flags that exclude each other.
func TestEveryCommandRefusesWrongCommandLines(t *testing.T) {
	state := filepath.Join(t.TempDir(), "none")
	refused := func(args []string, why string) {
		t.Helper()
		got := labctl(t, state, args...)
		if got.status != usage.Status || got.out != "" || !strings.HasSuffix(got.err, " (see --help)\n") || strings.ContainsAny(got.err, "[]") {
			t.Errorf("labctl %q, %s = %+v, want status 2 and a text for people", args, why, got)
		}
	}
	walk(newRoot(), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		// Arguments of a command, so that its flags are looked at.
		var args []string
		for range strings.Fields(c.Use)[1:] {
			args = append(args, "x")
		}
		if !c.DisableFlagParsing {
			refused(slices.Concat(path, args, []string{"--no-such-flag"}), "an unknown flag")
		}
		if c.Name() != "help" && !slices.Contains(anyArguments, c.CommandPath()) {
			refused(slices.Concat(path, slices.Repeat([]string{"dwon"}, 9)), "too many arguments")
		}
		if strings.Contains(c.Use, " HOST") || strings.Contains(c.Use, " URL") {
			refused(path, "no argument")
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case strings.Contains(f.Value.Type(), "tring") && f.Name != "output": // any text, which the command judges
			case f.NoOptDefVal == "":
				refused(slices.Concat(path, args, []string{"--" + f.Name + "=:"}), "a wrong value")
			default:
				refused(slices.Concat(path, args, []string{"--" + f.Name + "=maybe"}), "a wrong value")
			}
			for _, group := range f.Annotations["cobra_annotation_mutually_exclusive"] {
				line := slices.Concat(path, args)
				for name := range strings.FieldsSeq(group) {
					if other := c.Flags().Lookup(name); other.NoOptDefVal != "" {
						line = append(line, "--"+name)
					} else {
						line = append(line, "--"+name+"=1")
					}
				}
				refused(line, "flags that exclude each other")
			}
		})
	})
}

// labctl refuses values that the type of a flag lets through with exit status 2, too, and names the
// flag, the value and the allowed ones.
func TestWrongValuesAreWrongCommandLines(t *testing.T) {
	l := startLab(t, 1)
	for line, want := range map[string]string{
		"dwon":                                   `labctl has no command "dwon". Did you mean down?`,
		"host shw node-0":                        `labctl host has no command "shw". Did you mean show?`,
		"host power node-0 Off":                  `RESET "Off" is not one of On, ForceOff, ForceOn, GracefulShutdown, GracefulRestart, ForceRestart, PowerCycle, PushPowerButton, Nmi. Did you mean ForceOff?`,
		"demo dya2":                              `labctl demo has no command "dya2". Did you mean day2?`,
		"demo x":                                 `labctl demo has no command "x": use one of day2, elemental, layering`,
		"demo elemental x":                       `labctl demo elemental takes no argument "x"`,
		"help dmo":                               `labctl has no command "dmo". Did you mean demo?`,
		"mco status":                             "labctl mco status needs POOL",
		"mco logs a b":                           `labctl mco logs takes no argument "b"`,
		"shard":                                  "labctl shard needs --token-file",
		"elemental seed fire":                    "give --iso or --netboot",
		"journal --status good":                  `--status "good": use a form like 404, 5xx or none`,
		"journal --since yesterday":              `--since "yesterday": use a form like 5m or 2031-01-02T03:04:05Z`,
		"journal --path x":                       `--path "x": must begin with /, such as /redfish/v1/Systems/**`,
		"journal --what [":                       `--what "[": is no pattern: close each [`,
		"journal --last -1":                      "--last -1: must not be negative",
		"journal --follow --status good":         `--status "good": use a form like 404, 5xx or none`,
		"record h --insecure --ca f":             "--ca and --insecure exclude each other",
		"record h --password a --password-stdin": "--password and --password-stdin exclude each other",
		"record ftp://h":                         `URL "ftp://h": use a form like https://192.0.2.1`,
		"record h --parallel 9":                  "--parallel 9: use 1 to 4",
		"record h --requests 0":                  "--requests 0: use 1 or more",
		"record h --within 0s":                   "--within 0s: use a time above 0, such as 15m",
		"kube --listen x":                        `--listen "x": use IP:PORT, such as 192.0.2.7:6443`,
		"host boot node-0 Pxe --order Hdd":       "--order sets the order of all boots: give it without TARGET and --clear",
		"host boot node-0 UefiHttp --uri tftp://h/x": `--uri "tftp://h/x": use http://… or https://…`,
		"fault add --status 503 --method GTE":        `--method "GTE" is not one of GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS, IN, OUT. Did you mean GET?`,
		"view --rotate --svg f":                      "--rotate and --svg exclude each other",
	} {
		check(t, l.Dir(), outcome{usage.Status, "", "labctl: " + want + " (see --help)\n"}, strings.Fields(line)...)
	}
}
