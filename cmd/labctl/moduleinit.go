package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

// newModuleFiles are the files of a new module, in newmodule. They name it nameOfNew.
//
//go:embed newmodule
var newModuleFiles embed.FS

const nameOfNew = "MODULE-NAME"

func newModuleInit(o *options) *cobra.Command {
	to := ""
	c := &cobra.Command{
		Use:   "init NAME",
		Short: "Make the directory of a new module",
		Long: `Make a directory with the files of a new module: metadata.yaml, a playbook that writes
/etc/motd, the JSON Schema of its values, and a README. It verifies and builds as it is; the comments
in metadata.yaml show the other fields. A directory that has files is refused.`,
		Example: "  labctl module init motd\n  labctl module init motd --to ./modules",
		Args:    usage.Arguments("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := filesOfNewModule(args[0])
			if err != nil {
				return usage.New(err)
			}
			dir := filepath.Join(to, args[0])
			if err := checkEmpty(dir); err != nil {
				return err
			}
			if err := (outfile.Tree{Dir: dir, Files: files, Fix: "name another module, or another directory with --to"}).Write(0o755, 0o644); err != nil {
				return err
			}
			_, m, err := module.Build(os.DirFS(dir))
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			if err := describeModule(m, dir).print(c.OutOrStdout(), o); err != nil {
				return err
			}
			at := quoted(dir)
			fmt.Fprintf(c.ErrOrStderr(), "Change the playbook and the schema, then: labctl module verify %s, labctl module build %s.\n", at, at)
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", ".", "directory that gets the module's directory")
	must(c.MarkFlagDirname("to"))
	return c
}

// filesOfNewModule returns the files of a new module by their names.
func filesOfNewModule(name string) (map[string][]byte, error) {
	if dir, base := filepath.Split(strings.TrimRight(name, "/")); dir != "" && base != "" {
		return nil, fmt.Errorf("%s is a path: labctl module init %s --to %s", name, quoted(base), quoted(filepath.Clean(dir)))
	}
	key, err := yaml.Marshal(map[string]string{"name": name}) // which quotes names such as 1.0
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	entries, err := fs.ReadDir(newModuleFiles, "newmodule")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(newModuleFiles, path.Join("newmodule", e.Name()))
		if err != nil {
			return nil, err
		}
		if e.Name() == module.MetadataFile {
			text = []byte(strings.Replace(string(text), "name: "+nameOfNew+"\n", string(key), 1))
		}
		out[e.Name()] = []byte(strings.ReplaceAll(string(text), nameOfNew, name))
	}
	_, err = module.ParseMetadata(out[module.MetadataFile])
	return out, err
}

// checkEmpty returns an error when a directory has files.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is there already, and has %s: name another module, or another directory with --to", dir, entries[0].Name())
}
