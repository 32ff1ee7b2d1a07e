package world

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/integrity"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/fixtures"
)

const settingsFile = "settings.json"

// Settings are what `labctl up` creates a lab with. They are stored in its state
// directory; a lab that is started again has the same.
type Settings struct {
	Hosts int    `json:"hosts"`
	Speed string `json:"speed"` // as rack.Speed
	Kube  bool   `json:"kube"`  // with a Kubernetes API and the controllers
	// Kubeconfig is a file name. The lab then uses the API of that cluster instead
	// of an embedded one.
	Kubeconfig   string `json:"kubeconfig,omitempty"`
	NoController bool   `json:"noController,omitempty"` // start no controllers
	// With are families of kinds beside those of hosts: see config.Families. Those of Rack
	// are there, too.
	With []string `json:"with,omitempty"`
	// ModuleIndex is the URL or file of the vendor's index of host OS modules; "" is none.
	ModuleIndex string `json:"moduleIndex,omitempty"`

	Profile string `json:"profile,omitempty"` // of the hosts; "" is the default
	Seed    uint64 `json:"seed,omitempty"`    // 0 is the default
	Listen  string `json:"listen,omitempty"`  // as rack.Listen
	// CustomProfiles are the names of the profiles that are not built in. The lab stores them
	// with its state.
	CustomProfiles []string `json:"own,omitempty"`
	// Models are profile files, with the files that they name.
	Models lab.Files `json:"-"`
	// Rack is the definition from a file; nil is a rack of Hosts hosts. Speed,
	// Seed and Listen, where set, override the definition.
	Rack *rack.Lab `json:"rack,omitempty"`
}

// DefaultSettings returns the settings of `labctl up` without flags.
func DefaultSettings() Settings {
	return Settings{Hosts: 4, Speed: string(rack.DefaultSpeed), Kube: true}
}

// AddModels adds profiles that are not built in.
func (s *Settings) AddModels(models lab.Files) {
	s.Models = models
	for _, name := range models.Profiles() {
		if !slices.Contains(s.CustomProfiles, name) {
			s.CustomProfiles = append(s.CustomProfiles, name)
		}
	}
}

// Define sets the rack to a definition.
func (s *Settings) Define(r rack.Lab) {
	s.Rack, s.Hosts, s.Speed, s.Seed, s.Listen, s.Profile = &r, r.Len(), string(r.Speed), 0, "", ""
}

// Validate returns an error that names each wrong flag, its value and what is
// allowed.
func (s Settings) Validate() error {
	var errs []error
	if s.Hosts < 1 || s.Hosts > rack.MaxHosts {
		errs = append(errs, fmt.Errorf("--hosts %d: use 1 to %d", s.Hosts, rack.MaxHosts))
	}
	if _, _, err := rack.Speed(s.Speed).Factor(); err != nil {
		errs = append(errs, fmt.Errorf("--speed: %w", err))
	}
	if _, err := rack.Listen(s.Listen).Parse(); err != nil {
		errs = append(errs, fmt.Errorf("--listen %w", err))
	}
	if s.Profile != "" && !slices.Contains(s.CustomProfiles, s.Profile) {
		if _, err := fs.Stat(fixtures.Profiles, "profiles/"+s.Profile+".yaml"); err != nil {
			errs = append(errs, fmt.Errorf("--profile %s: there is no such profile: use one of %s", s.Profile, strings.Join(Profiles(), ", ")))
		}
	}
	if s.Kubeconfig != "" && !s.Kube {
		errs = append(errs, errors.New("--kubeconfig and --no-kube exclude each other"))
	}
	if err := config.CheckFamilies(s.Families()); err != nil {
		errs = append(errs, fmt.Errorf("--with, or with of the rack file: %w", err))
	}
	if len(s.Families()) > 0 && !s.Kube {
		errs = append(errs, errors.New("--with and --no-kube exclude each other"))
	}
	if s.ModuleIndex != "" && !slices.Contains(s.Families(), config.HOC) {
		errs = append(errs, errors.New("--module-index needs --with hoc, whose controllers read it"))
	}
	return errors.Join(errs...)
}

// Families returns the families of the flags and of the rack file.
func (s Settings) Families() []string {
	out := slices.Clone(s.With)
	if s.Rack != nil {
		out = append(out, s.Rack.With...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Profiles returns the names of the built-in server models.
func Profiles() []string {
	entries, err := fs.ReadDir(fixtures.Profiles, "profiles")
	if err != nil {
		panic(err) // they are built in
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}

// Differences returns an error that names the flags in which asked differs from the
// settings that the lab was created with; nil when there are none.
func (s Settings) Differences(asked Settings) error {
	var diff []string
	differ := func(flag string, have, want any) {
		if have, want := fmt.Sprint(have), fmt.Sprint(want); have != want {
			diff = append(diff, fmt.Sprintf("%s is %v there, not %v", flag, have, want))
		}
	}
	if s.Rack == nil && asked.Rack == nil { // else rack.Diff compares them
		differ("--hosts", s.Hosts, asked.Hosts)
		differ("--profile", cmp.Or(s.Profile, defaultProfile), cmp.Or(asked.Profile, defaultProfile))
		differ("--seed", cmp.Or(s.Seed, 1), cmp.Or(asked.Seed, 1))
	} else {
		diff = rack.Diff(s.Definition(), asked.Definition())
	}
	if s.Rack == nil && asked.Rack == nil { // a file can say another speed each time
		differ("--speed", s.Speed, asked.Speed)
		differ("--with", s.Families(), asked.Families())
	}
	differ("--module-index", s.ModuleIndex, asked.ModuleIndex)
	differ("--no-kube", !s.Kube, !asked.Kube)
	differ("--kubeconfig", s.Kubeconfig, asked.Kubeconfig)
	differ("--no-controller", s.NoController, asked.NoController)
	if len(diff) == 0 {
		return nil
	}
	return errors.New(strings.Join(diff, ", "))
}

const defaultProfile = "generic"

// Definition returns the rack definition that results from the settings.
func (s Settings) Definition() rack.Lab {
	l := rack.Default(s.Hosts)
	l.Hosts[0].Profile = cmp.Or(s.Profile, defaultProfile)
	if s.Rack != nil {
		l = *s.Rack
	}
	l.With = s.Families()
	l.Speed, l.Seed, l.Listen = rack.Speed(s.Speed), cmp.Or(s.Seed, l.Seed), cmp.Or(rack.Listen(s.Listen), l.Listen)
	return l
}

// LoadSettings reads the settings of the lab in dir; found is false when there is
// no lab.
func LoadSettings(dir string) (s Settings, found bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return Settings{}, false, damagedSettings(dir, err)
	}
	return s, true, nil
}

// AdoptState prepares a state directory that was restored to dir for the next start:
// it keeps the settings in it if they are of this rack, and else writes new ones.
func AdoptState(dir string, r rack.Lab, kube bool) error {
	s, found, err := LoadSettings(dir)
	if err == nil {
		err = CheckSettings(dir)
	}
	if err != nil { // a snapshot is restored because of damage, too
		if err := os.RemoveAll(filepath.Join(dir, settingsFile)); err != nil {
			return fmt.Errorf("world: %w", err)
		}
		_, statErr := os.Stat(filepath.Join(dir, KubeDir))
		s, found, kube = Settings{}, false, kube && statErr == nil
	}
	if found && len(rack.Diff(s.Definition(), r)) == 0 {
		return nil
	}
	if !found {
		s = Settings{Kube: kube}
	}
	s.Define(r)
	if err := s.save(dir); err != nil {
		return err
	}
	return integrity.Forget(dir, stateFiles[:1])
}

func (s Settings) save(dir string) error { return writeJSON(filepath.Join(dir, settingsFile), s) }

const portsFile = "ports.json"

// ports are the addresses of services whose URLs are in objects and on media. A lab
// that is started again uses the same ones if they are free.
type ports struct {
	Images string `json:"images"`
	Inband string `json:"inband"`
	Boot   string `json:"boot"`
	// Images and Boot by HTTPS.
	SecureImages string `json:"secureImages"`
	SecureBoot   string `json:"secureBoot"`
}

func loadPorts(dir string) (ports, error) {
	p := ports{Images: anyPort, Inband: anyPort, Boot: anyPort, SecureImages: anyPort, SecureBoot: anyPort}
	b, err := os.ReadFile(filepath.Join(dir, portsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return p, fmt.Errorf("world: %s: %w: remove it, and the lab uses free ports", filepath.Join(dir, portsFile), err)
	}
	return p, nil
}

func (p ports) save(dir string) error { return writeJSON(filepath.Join(dir, portsFile), p) }

// anyPort is an address with a free port on loopback.
const anyPort = "127.0.0.1:0"

func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("world: %s: %w", filepath.Base(name), err)
	}
	return writeFile(name, append(b, '\n'), 0o600)
}

// writeFile replaces a file atomically.
func writeFile(name string, b []byte, mode os.FileMode) error {
	if err := os.WriteFile(name+".new", b, mode); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	return nil
}
