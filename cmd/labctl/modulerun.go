package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/agent/lcm/play"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newModuleRun(o *options) *cobra.Command {
	var host, values string
	check := false
	c := &cobra.Command{
		Use:   "run MODULE --host HOST",
		Short: "Run a module's playbook on a server of the lab",
		Long: `Run the playbook of a module on a server of the lab as its LCM agent would: with the same
command, environment and file of variables. It needs no Cluster and no HostOSConfiguration: the server
must run an operating system. MODULE and --values are verified as labctl module verify does. The output is
shown as it comes, and labctl exits with the play's code. With --check Ansible reports what would
change, and changes nothing. The module's files are in a directory below /run of the server, which is
removed afterwards.`,
		Example: `  labctl module run ./sysctl --host node-0 --values values.yaml
  labctl module run builtin:sysctl --host node-0 --values values.yaml --check`,
		Args: usage.Arguments("MODULE"),
		RunE: func(c *cobra.Command, args []string) error {
			if host == "" {
				return usage.New(errors.New("name the server: --host HOST"))
			}
			archive, err := readModule(c.Context(), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			m, err := module.Load(archive)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			given := map[string]any{}
			if values != "" {
				if given, err = readValues(values); err != nil {
					return fmt.Errorf("%s: %w", values, err)
				}
			}
			if err := m.Validate(given); err != nil {
				return fmt.Errorf("%s: %w", cmp.Or(values, "without --values"), err)
			}
			lab := control.NewClient(o.state)
			server, err := one(c.Context(), lab, host)
			if err != nil {
				return err
			}
			code, err := runModule(c.Context(), lab, server, m, given, check, c.OutOrStdout(), c.ErrOrStderr())
			if err == nil && code != 0 {
				return exitCode(code)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&host, "host", "", "server of the lab")
	f.StringVar(&values, "values", "", "file with values for the module, as YAML or JSON")
	f.BoolVar(&check, "check", false, "report what would change, and change nothing")
	must(c.RegisterFlagCompletionFunc("host", func(c *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
		return completeHosts(o)(c, nil, part)
	}))
	return c
}

// moduleServer is the part of a lab that a module is run by.
type moduleServer interface {
	PutFile(ctx context.Context, host string, f control.File) error
	Exec(ctx context.Context, host string, command control.Command) (code int, err error)
}

// cleanUp bounds the removal of a module's files, which goes on after Ctrl-C.
const cleanUp = 30 * time.Second

// runModule runs the playbook of a module on a server, and returns its exit code. The files are
// removed in any case. They are in memory: a server that is switched off meanwhile has none left.
func runModule(ctx context.Context, lab moduleServer, host string, m *module.Module, values map[string]any, check bool, out, errOut io.Writer) (code int, err error) {
	dir := "/run/labctl-module-" + strings.ToLower(rand.Text()[:10])
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		code, rerr := lab.Exec(ctx, host, control.Command{Args: []string{"rm", "-rf", "--", dir}})
		if rerr == nil && code != 0 {
			rerr = fmt.Errorf("rm ended with code %d", code)
		}
		if rerr != nil {
			err = errors.Join(err, fmt.Errorf("files are left in %s of %s: %w", dir, host, rerr))
		}
	}()
	put := func(f sys.File) error {
		return lab.PutFile(ctx, host, control.File{Path: f.Name, Mode: f.Mode, Content: f.Content, Link: f.Link})
	}
	if err := put(sys.File{Name: dir, Mode: fs.ModeDir | 0o700}); err != nil {
		return 0, err
	}
	moduleDir, temporary := path.Join(dir, m.Name+"-"+m.Version), path.Join(dir, "play")
	err = m.Archive.Each(func(f module.File) error {
		file := sys.File{Name: path.Join(moduleDir, f.Name), Mode: f.Mode, Link: f.Link}
		if f.Content != nil {
			content, err := io.ReadAll(f.Content)
			if err != nil {
				return err
			}
			file.Content = content
		}
		return put(file)
	})
	if err != nil {
		return 0, err
	}
	p := play.Play{Program: item.AnsiblePlaybook, Dir: moduleDir, Playbook: m.Playbook, Values: values, Check: check}
	for _, f := range append([]sys.File{{Mode: fs.ModeDir | 0o700}}, p.Files()...) {
		f.Name = path.Join(temporary, f.Name)
		if err := put(f); err != nil {
			return 0, err
		}
	}
	c := p.Command(temporary)
	code, err = lab.Exec(ctx, host, control.Command{Args: c.Args, Env: c.Env, Dir: c.Dir, Stdout: out, Stderr: errOut})
	if err == nil && code == sys.CodeNotFound {
		return code, fmt.Errorf("%s is not on %s: install the package ansible on this machine, or in the image", item.AnsiblePlaybook, host)
	}
	return code, err
}
