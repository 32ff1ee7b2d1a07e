package elemental

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Files of the agent.
const (
	// DefaultConfigFile is the default of --config.
	DefaultConfigFile = "/etc/elemental/agent/config.yaml"
	// DefaultWorkDir is the default of agent.workDir.
	DefaultWorkDir = "/var/lib/elemental/agent"
	// SentinelFile is written by the bootstrap configuration when it was applied (Cluster API,
	// "Bootstrap provider contract").
	SentinelFile = "/run/cluster-api/bootstrap-success.complete"

	configName = "config.yaml"
	keyName    = "private.key"
	nameName   = "hostname"   // the name of the ElementalHost, as long as it is registered
	stateName  = "agent.json" // the agent's own state
)

// File is the configuration file of the agent, in YAML. The registration of a server has the
// same fields in JSON.
type File struct {
	Registration Registration `yaml:"registration" json:"registration"`
	Agent        Options      `yaml:"agent" json:"agent"`
}

// Registration is where the server registers itself, and with which token.
type Registration struct {
	URI           string   `yaml:"uri" json:"uri"`
	CACert        string   `yaml:"caCert,omitempty" json:"caCert"` // PEM, or the path of a file with it
	TokenDuration Duration `yaml:"tokenDuration,omitempty" json:"tokenDuration"`
	Token         string   `yaml:"token" json:"token"`
}

// Options are the options of the agent.
type Options struct {
	WorkDir               string     `yaml:"workDir" json:"workDir"`
	Hostname              Hostname   `yaml:"hostname" json:"hostname"`
	NoSMBIOS              bool       `yaml:"noSmbios" json:"noSmbios"` // accepted; the agent sends no SMBIOS data
	Debug                 bool       `yaml:"debug" json:"debug"`
	OSPlugin              string     `yaml:"osPlugin" json:"osPlugin"`
	Reconciliation        Duration   `yaml:"reconciliation" json:"reconciliation"` // between two attempts, or polls
	InsecureAllowHTTP     bool       `yaml:"insecureAllowHttp" json:"insecureAllowHttp"`
	InsecureSkipTLSVerify bool       `yaml:"insecureSkipTlsVerify" json:"insecureSkipTlsVerify"`
	UseSystemCertPool     bool       `yaml:"useSystemCertPool" json:"useSystemCertPool"`
	PostInstall           PostAction `yaml:"postInstall" json:"postInstall"`
	PostReset             PostAction `yaml:"postReset" json:"postReset"`
}

// Hostname is how the name of the server is chosen.
type Hostname struct {
	UseExisting bool   `yaml:"useExisting" json:"useExisting"` // else a UUID
	Prefix      string `yaml:"prefix" json:"prefix"`
}

// PostAction is what follows an installation or a reset. PowerOff wins.
type PostAction struct {
	PowerOff bool `yaml:"powerOff" json:"powerOff"`
	Reboot   bool `yaml:"reboot" json:"reboot"`
}

// Duration is a duration that files write as "10s" or in nanoseconds, and the API in
// nanoseconds.
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	var ns int64
	if n.Decode(&ns) == nil {
		*d = Duration(ns)
		return nil
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: duration %q: give it as 10s or in nanoseconds", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		v, err := time.ParseDuration(text)
		*d = Duration(v)
		return err
	}
	return json.Unmarshal(b, (*int64)(d))
}

// defaults fills in the fields that are empty.
func (f *File) defaults() {
	if f.Agent.WorkDir == "" {
		f.Agent.WorkDir = DefaultWorkDir
	}
	if f.Agent.OSPlugin == "" {
		f.Agent.OSPlugin = "/usr/lib/elemental/plugins/elemental.so"
	}
	if f.Agent.Reconciliation <= 0 {
		f.Agent.Reconciliation = Duration(10 * time.Second)
	}
}

// ParseFile reads a configuration file, and fills in the defaults.
func ParseFile(text []byte) (File, error) {
	var f File
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return File{}, err
	}
	f.defaults()
	return f, f.Validate()
}

// Validate reports all mistakes.
func (f File) Validate() error {
	var errs []error
	u, err := url.Parse(f.Registration.URI)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		errs = append(errs, fmt.Errorf("registration.uri %q: give the https URL of a registration", f.Registration.URI))
	case u.Scheme == "http" && !f.Agent.InsecureAllowHTTP:
		errs = append(errs, fmt.Errorf("registration.uri %q: use https, or set agent.insecureAllowHttp", f.Registration.URI))
	}
	if !path.IsAbs(f.Agent.WorkDir) {
		errs = append(errs, fmt.Errorf("agent.workDir %q: give an absolute path", f.Agent.WorkDir))
	}
	return errors.Join(errs...)
}

// Marshal returns the file in YAML.
func (f File) Marshal() ([]byte, error) {
	b, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("elemental: configuration: %w", err)
	}
	return b, nil
}

// loadFile reads the configuration file of a system: at the path that is given, else where a
// registration has written it.
func loadFile(s System, name string) (File, error) {
	b, err := s.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && name == DefaultConfigFile {
		if second, serr := s.ReadFile(path.Join(DefaultWorkDir, configName)); serr == nil {
			b, err = second, nil
		}
	}
	if err != nil {
		return File{}, fmt.Errorf("elemental: configuration: %w", err)
	}
	f, err := ParseFile(b)
	if err != nil {
		return File{}, fmt.Errorf("elemental: %s: %w", name, err)
	}
	return f, nil
}

// caCert returns the certificates of registration.caCert: the field has them, or names a file.
func (f File) caCert(s System) ([]byte, error) {
	text := strings.TrimSpace(f.Registration.CACert)
	if text == "" || strings.HasPrefix(text, "-----BEGIN") {
		return []byte(text), nil
	}
	b, err := s.ReadFile(text)
	if err != nil {
		return nil, fmt.Errorf("registration.caCert: it is no PEM, and no file can be read by that name: %w", err)
	}
	return b, nil
}
