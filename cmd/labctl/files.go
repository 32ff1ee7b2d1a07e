package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/emulator/lab/control"
)

func newHostFiles(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "files HOST [PATH]",
		Short: "List or print the files of the system that a server runs",
		Long: `List a directory of the operating system that a server has booted from a disk, or
print a file. The files are those of a small Debian, as its first boot has configured
it from the data source on the disk (an OpenStack config drive or NoCloud): host name,
users and keys, write_files, network. Commands of the user data are not executed; the
console lists them.`,
		Example: "  labctl host files node-0\n  labctl host files node-0 /etc/hostname\n  labctl host files 'node-*' /etc/hostname -o json",
		Args:    arguments("HOST", "[PATH]"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			path := "/"
			if len(args) == 2 {
				path = args[1]
			}
			if !isPattern(args[0]) && o.output.text() {
				f, err := control.NewClient(o.state).Files(c.Context(), args[0], path)
				if err != nil {
					return err
				}
				if f.File {
					_, err := c.OutOrStdout().Write(f.Content)
					return err
				}
			}
			return forHosts(c, o, args[0], func(lab *control.Client, host string) (control.Files, error) {
				return lab.Files(c.Context(), host, path)
			}, fileRows)
		},
	}
}

func fileRows(f control.Files) [][]string {
	if f.File {
		return [][]string{{"CONTENT"}, {string(f.Content)}}
	}
	rows := [][]string{{"MODE", "OWNER", "GROUP", "SIZE", "NAME"}}
	for _, e := range f.Entries {
		if e.Dir {
			rows = append(rows, []string{"", "", "", "", e.Name + "/"})
			continue
		}
		rows = append(rows, []string{e.Mode, e.Owner, e.Group, strconv.Itoa(e.Size), e.Name})
	}
	return rows
}
