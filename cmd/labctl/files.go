package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

func newHostFiles(o *options) *cobra.Command {
	diff := false
	c := &cobra.Command{
		Use:   "files HOST [PATH]",
		Short: "List or print the files of the system that a server runs",
		Long: `List a directory of the operating system that a server has booted from a disk, or
print a file. The files are those of a small Debian with this machine's /usr, as its
first boot has configured it from the data source on the disk (an OpenStack config
drive or NoCloud), and as commands have changed it since. They are stored with the
disk: a new image, cleaning and erasing remove them.`,
		Example: "  labctl host files node-0\n  labctl host files node-0 /etc/hostname\n  labctl host files node-0 --diff\n  labctl host files 'node-*' /etc/hostname -o json",
		Args:    usage.Arguments("HOST", "[PATH]"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			if diff {
				if len(args) == 2 {
					return usage.New(errors.New("--diff compares all files: leave out PATH"))
				}
				return forHosts(c, o, args[0], func(lab *control.Client, host string) ([]control.FileChange, error) {
					return lab.FileChanges(c.Context(), host)
				}, changeRows)
			}
			name := "/"
			if len(args) == 2 {
				name = args[1]
			}
			if !isPattern(args[0]) && o.output.text() {
				f, err := control.NewClient(o.state).Files(c.Context(), args[0], name)
				if err != nil {
					return err
				}
				if f.File {
					_, err := c.OutOrStdout().Write(f.Content)
					return err
				}
			}
			return forHosts(c, o, args[0], func(lab *control.Client, host string) (control.Files, error) {
				return lab.Files(c.Context(), host, name)
			}, fileRows)
		},
	}
	c.Flags().BoolVar(&diff, "diff", false, "list the files that differ from those of the boot image")
	return c
}

func fileRows(f control.Files) [][]string {
	if f.File {
		return [][]string{{"CONTENT"}, {string(f.Content)}}
	}
	rows := [][]string{{"MODE", "OWNER", "GROUP", "SIZE", "NAME"}}
	for _, e := range f.Entries {
		name := e.Name
		switch {
		case e.Dir:
			name += "/"
		case e.Link != "":
			name += " -> " + e.Link
		}
		rows = append(rows, []string{e.Mode, e.Owner, e.Group, strconv.FormatInt(e.Size, 10), name})
	}
	return rows
}

func changeRows(changes []control.FileChange) [][]string {
	rows := [][]string{{"CHANGE", "PATH"}}
	for _, c := range changes {
		rows = append(rows, []string{c.Change, c.Path})
	}
	return rows
}

func newHostExec(o *options) *cobra.Command {
	terminal, dir := false, ""
	var env []string
	c := &cobra.Command{
		Use:   "exec HOST [-t] -- COMMAND [ARGUMENT...]",
		Short: "Run a command in the system that a server runs",
		Long: `Run a command as root in the operating system that a server has booted from a disk.
It runs on this machine, in namespaces of its own: it sees the server's files and this
machine's /usr, has no network but loopback, and can harm nothing but that server's
system. labctl passes on its input and exits with the command's code; with 126 when the
kernel refuses namespaces. What it has changed is stored with the disk.`,
		Example: "  labctl host exec node-0 -- cat /etc/os-release\n  labctl host exec node-0 -t -- bash\n  echo hello | labctl host exec node-0 -- tee /etc/motd",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage.New(errors.New("give HOST and a command: labctl host exec node-0 -- cat /etc/hostname"))
			}
			return nil
		},
		ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			host, err := one(c.Context(), lab, args[0])
			if err != nil {
				return err
			}
			command := control.Command{Args: args[1:], Env: env, Dir: dir, Terminal: terminal, Stdout: c.OutOrStdout(), Stderr: c.ErrOrStderr()}
			in := c.InOrStdin()
			if keyboard, ok := in.(*os.File); !ok || !term.IsTerminal(int(keyboard.Fd())) {
				command.Stdin = in
			} else if terminal {
				restore, size, sizes, err := rawTerminal(c.Context(), keyboard)
				if err != nil {
					return err
				}
				defer restore()
				command.Stdin, command.Size, command.Resize = keyboard, size, sizes
			}
			code, err := lab.Exec(c.Context(), host, command)
			if err == nil && code != 0 {
				return exitCode(code)
			}
			return err
		},
	}
	c.Flags().SetInterspersed(true)
	c.Flags().BoolVarP(&terminal, "tty", "t", false, "give the command a terminal")
	c.Flags().StringVar(&dir, "dir", "", "run it in this `directory` (default /root)")
	c.Flags().StringArrayVarP(&env, "env", "e", nil, "`NAME=VALUE` for its environment; may be repeated")
	return c
}

// rawTerminal passes keys on unchanged, and returns the size of the window and its later sizes.
func rawTerminal(ctx context.Context, keyboard *os.File) (restore func(), size control.Size, sizes <-chan control.Size, err error) {
	fd := int(keyboard.Fd())
	was, err := term.MakeRaw(fd)
	if err != nil {
		return nil, control.Size{}, nil, fmt.Errorf("terminal: %w", err)
	}
	changed, out := make(chan os.Signal, 1), make(chan control.Size, 1)
	signal.Notify(changed, syscall.SIGWINCH) // before the size is read: no change is missed
	size, _ = windowSize(fd)                 // else the command's terminal has none
	go func() {
		defer close(out)
		defer signal.Stop(changed)
		for {
			select {
			case <-changed:
				if size, ok := windowSize(fd); ok {
					out <- size
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { _ = term.Restore(fd, was) }, size, out, nil // the program exits in any case
}

func windowSize(fd int) (size control.Size, ok bool) {
	columns, rows, err := term.GetSize(fd)
	return control.Size{Rows: uint16(rows), Columns: uint16(columns)}, err == nil
}

func newHostCp(o *options) *cobra.Command {
	recursive, force := false, false
	c := &cobra.Command{
		Use:   "cp FROM TO",
		Short: "Copy files to or from the system that a server runs",
		Long: `Copy a file between this machine and the operating system that a server has booted
from a disk. One of FROM and TO is HOST:PATH, the other a file of this machine, or - for
standard input or output. A file may have 64 MiB. With -r FROM is a directory: it is copied with all
that is in it, with permissions, and links as they are. A directory that TO names gets it under its
name, as cp has it. A file of this machine that has another content is replaced with --force alone.`,
		Example: "  labctl host cp agent.yaml node-0:/etc/agent.yaml\n  labctl host cp node-0:/var/log/cloud-init-output.log -\n  labctl host cp motd 'node-*:/etc/motd'\n  labctl host cp -r ./roles node-0:/root/",
		Args:    usage.Arguments("FROM", "TO"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			fromHost, fromPath, remote := strings.Cut(args[0], ":/")
			toHost, toPath, put := strings.Cut(args[1], ":/")
			lab := control.NewClient(o.state)
			switch {
			case remote == put:
				return usage.New(fmt.Errorf("%s %s: one of both is HOST:PATH, with an absolute path", args[0], args[1]))
			case recursive && (args[0] == "-" || args[1] == "-"):
				return usage.New(errors.New("-r copies directories, and - is a file: leave out one of both"))
			case remote:
				host, err := one(c.Context(), lab, fromHost)
				if err != nil {
					return err
				}
				return copyFromHost(c, lab, host, "/"+fromPath, args[1], recursive, force)
			}
			if st, err := os.Stat(args[0]); recursive && err == nil && st.IsDir() {
				trees := newTreeCopy(lab, c.ErrOrStderr())
				_, err = forEach(c.Context(), lab, toHost, c.ErrOrStderr(), func(host string) (struct{}, error) {
					return struct{}{}, trees.to(c.Context(), args[0], host, "/"+toPath)
				})
				return err
			}
			content, mode, err := readLocal(c, args[0])
			if err != nil {
				return err
			}
			if toPath == "" || strings.HasSuffix(toPath, "/") {
				toPath = path.Join(toPath, filepath.Base(args[0]))
			}
			f := control.File{Path: "/" + toPath, Mode: mode, Content: content}
			_, err = forEach(c.Context(), lab, toHost, c.ErrOrStderr(), func(host string) (struct{}, error) {
				return struct{}{}, lab.PutFile(c.Context(), host, f)
			})
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace files of this machine that have another content")
	c.Flags().BoolVarP(&recursive, "recursive", "r", false, "copy a directory with all that is in it")
	return c
}

// copyFromHost writes a file of a host to a file of this machine; - is standard output. It copies a
// directory if recursive permits that.
func copyFromHost(c *cobra.Command, lab *control.Client, host, name, to string, recursive, force bool) error {
	f, err := lab.Files(c.Context(), host, name)
	if err != nil {
		return err
	}
	if !f.File && recursive {
		return newTreeCopy(lab, c.ErrOrStderr()).from(c.Context(), host, name, to, force)
	}
	if !f.File {
		return fmt.Errorf("%s:%s is a directory: add -r to copy it with all that is in it", host, name)
	}
	if to == "-" {
		_, err := c.OutOrStdout().Write(f.Content)
		return err
	}
	if st, err := os.Stat(to); err == nil && st.IsDir() {
		to = filepath.Join(to, path.Base(name))
	}
	return outfile.File{Path: to, Made: same(f.Content), Force: force}.Write(0o644, outfile.Bytes(f.Content))
}

// same reports whether a file has a content already: to copy it again loses nothing.
func same(content []byte) func(string) bool {
	return func(name string) bool {
		if st, err := os.Stat(name); err != nil || st.Size() != int64(len(content)) {
			return false
		}
		b, err := os.ReadFile(name)
		return err == nil && bytes.Equal(b, content)
	}
}

// readLocal reads a file of this machine; - is standard input.
func readLocal(c *cobra.Command, name string) ([]byte, os.FileMode, error) {
	if name == "-" {
		b, err := io.ReadAll(c.InOrStdin())
		return b, 0o644, err
	}
	st, err := os.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if st.IsDir() {
		return nil, 0, fmt.Errorf("%s is a directory: add -r to copy it with all that is in it", name)
	}
	b, err := os.ReadFile(name)
	return b, st.Mode().Perm(), err
}
