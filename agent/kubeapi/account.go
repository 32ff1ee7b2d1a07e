package kubeapi

import (
	"errors"
	"fmt"
	"net/url"
	"path"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Account is where the API is, and how an agent identifies itself: the part of a configuration
// file that all agents have. Files are paths in the agent's system.
type Account struct {
	Server    string `yaml:"server"`    // https URL of the Kubernetes API
	CAFile    string `yaml:"caFile"`    // certificates, in PEM, that sign the server's
	TokenFile string `yaml:"tokenFile"` // token of the service account
}

// Validate reports all mistakes.
func (a Account) Validate() error {
	var errs []error
	if u, err := url.Parse(a.Server); err != nil || u.Scheme != "https" || u.Host == "" {
		errs = append(errs, fmt.Errorf("server %q: give the https URL of the Kubernetes API", a.Server))
	}
	for _, file := range []struct{ field, name string }{{"caFile", a.CAFile}, {"tokenFile", a.TokenFile}} {
		if !path.IsAbs(file.name) {
			errs = append(errs, fmt.Errorf("%s %q: give an absolute path", file.field, file.name))
		}
	}
	return errors.Join(errs...)
}

// Command is the command line of an agent that has its configuration in a file.
type Command struct {
	Name   string // "lab-agent node"
	File   string // default path of the configuration file
	Fields string // fields of the file, for the usage text
}

// Read decodes the configuration file of a command's arguments into a value, and returns the
// file's name. It does not validate the value.
func (c Command) Read(args []string, files Files, into any) (name string, err error) {
	f := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	f.StringVar(&name, "config", c.File, "file with "+c.Fields+", in YAML")
	if err := f.Parse(args); err != nil {
		return "", err
	}
	if f.NArg() > 0 {
		return "", fmt.Errorf("argument %q: %s takes flags only", f.Arg(0), c.Name)
	}
	text, err := files.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return name, nil
}
