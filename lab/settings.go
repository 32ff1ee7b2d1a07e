package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/fixtures"
)

const settingsFile = "settings.json"

// Settings are what `labctl up` creates a lab with. They are stored in its state
// directory; a lab that is started again has the same.
type Settings struct {
	Hosts int    `json:"hosts"`
	Speed string `json:"speed"` // as rackfile.Speed
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

	Profile string `json:"profile,omitempty"` // the hosts' profile; "" is the default
	Seed    uint64 `json:"seed,omitempty"`    // 0 is the default
	Listen  string `json:"listen,omitempty"`  // as rackfile.Listen
	// CustomProfiles are the names of the profiles that are not built in. The lab stores them
	// with its state.
	CustomProfiles []string `json:"own,omitempty"`
	// Models are profile files, with the files that they name.
	Models rack.Files `json:"-"`
	// Shards is how many processes run the hosts of a lab that was made with several; 0 is a
	// lab in one process. ShardSize is how many hosts each has, and Made how many shards
	// there have ever been.
	Shards    int `json:"shards,omitempty"`
	ShardSize int `json:"shardSize,omitempty"`
	Made      int `json:"made,omitempty"`
	// Part is the part of the hosts that a shard runs.
	Part *rackfile.Part `json:"part,omitempty"`
	// Rack is the definition from a file; nil is a rack of Hosts hosts. Speed,
	// Seed and Listen, where set, override the definition.
	Rack *rackfile.Lab `json:"rack,omitempty"`
}

// DefaultSettings returns the settings of `labctl up` without flags.
func DefaultSettings() Settings {
	return Settings{Hosts: 4, Speed: string(rackfile.DefaultSpeed), Kube: true}
}

// AddModels adds profiles that are not built in.
func (s *Settings) AddModels(models rack.Files) {
	s.Models = models
	for _, name := range models.Profiles() {
		if !slices.Contains(s.CustomProfiles, name) {
			s.CustomProfiles = append(s.CustomProfiles, name)
		}
	}
}

// Define sets the rack to a definition.
func (s *Settings) Define(r rackfile.Lab) {
	s.Rack, s.Hosts, s.Speed, s.Seed, s.Listen, s.Profile = &r, r.Len(), string(r.Speed), 0, "", ""
}

// Validate returns an error that names each wrong flag, its value and the allowed
// values.
func (s Settings) Validate() error {
	var errs []error
	if most := rackfile.MaxHosts; s.Part == nil && (s.Hosts < 1 || s.Hosts > most) {
		errs = append(errs, fmt.Errorf("--hosts %d: use 1 to %d", s.Hosts, most))
	}
	errs = append(errs, s.shardProblems()...)
	if _, _, err := rackfile.Speed(s.Speed).Factor(); err != nil {
		errs = append(errs, fmt.Errorf("--speed: %w", err))
	}
	if _, err := rackfile.Listen(s.Listen).Parse(); err != nil {
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

// shardProblems returns the errors in the settings of shards, and of a lab in several.
func (s Settings) shardProblems() (errs []error) {
	need := func(ok bool, text string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	if s.Part != nil || s.Shards != 0 {
		need(rackfile.Speed(s.Speed) != rackfile.Max, "--speed max and shards exclude each other, because shards have no common clock: use a factor, such as --speed 1000x")
	}
	if s.Shards == 0 {
		return errs
	}
	need(s.Shards > 0 && s.Shards <= maxShards, "--shards %d: use 1 to %d", s.Shards, maxShards)
	need(len(s.Families()) == 0, "--with and --shards exclude each other: the controllers of %s need the lab's servers in their process", strings.Join(s.Families(), ", "))
	if all := s.Complete(); len(errs) == 0 && s.ShardSize > 0 {
		need((s.Shards-1)*s.ShardSize < all.Total(), "--shards %d: the file defines %d servers, and a shard of this lab has %d of them: use up to %d shards", s.Shards, all.Total(), s.ShardSize, (all.Total()+s.ShardSize-1)/s.ShardSize)
	}
	return errs
}

// maxShards is how many processes of one computer a lab may have.
const maxShards = 64

// Divide makes the lab one of several shards, each with as many hosts.
func (s *Settings) Divide(shards int) error {
	switch {
	case shards < 1 || shards > maxShards:
		return fmt.Errorf("--shards %d: use 1 to %d", shards, maxShards)
	case s.Rack == nil && s.Hosts%shards != 0:
		return fmt.Errorf("--hosts %d: use a multiple of --shards %d, so that all shards have as many servers", s.Hosts, shards)
	}
	s.Shards, s.Made, s.ShardSize = shards, shards, (s.Hosts+shards-1)/shards
	return nil
}

// Scale changes how many shards run. A lab without a rack file gets more hosts with more
// shards. The hosts of shards that do not run are kept.
func (s *Settings) Scale(shards int) error {
	s.Shards, s.Made = shards, max(s.Made, shards)
	if s.Rack == nil {
		s.Hosts = s.Made * s.ShardSize
	}
	return s.Validate()
}

// Complete returns the definition of all hosts of a lab in shards.
func (s Settings) Complete() rackfile.Lab {
	s.Part, s.Shards = nil, 0
	return s.Definition()
}

// PrepareShard writes the settings of a shard into its state directory.
func (s Settings) PrepareShard(dir string, part rackfile.Part, listen string) error {
	s.Part, s.Shards, s.Kube, s.Kubeconfig, s.NoController, s.Listen = &part, 0, false, "", false, listen
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if old, found, err := LoadSettings(dir); err == nil && found && reflect.DeepEqual(old, s) {
		return nil
	}
	if err := errors.Join(rack.KeepModels(dir, s.Models), s.save(dir)); err != nil {
		return err
	}
	return integrity.Forget(dir, stateFiles[:1])
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

// AddFamilies adds families to those of the flags. Those of the rack file are not repeated.
func (s *Settings) AddFamilies(families []string) {
	have := s.Families()
	for _, f := range families {
		if !slices.Contains(have, f) {
			s.With = append(slices.Clone(s.With), f)
		}
	}
	slices.Sort(s.With)
}

// FamiliesBeyond returns the families of s that other settings lack.
func (s Settings) FamiliesBeyond(other Settings) []string {
	return slices.DeleteFunc(s.Families(), func(f string) bool { return slices.Contains(other.Families(), f) })
}

// installed returns the families whose kinds an embedded API serves: a lab has no Cluster API, so
// Elemental brings the kinds of Cluster API's core with it.
func (s Settings) installed() []string {
	out := s.Families()
	if s.Kubeconfig == "" && slices.Contains(out, config.Elemental) && !slices.Contains(out, config.ClusterAPI) {
		out = append(out, config.ClusterAPI)
	}
	return out
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
// settings that the lab was created with; nil when there are none. Families that are only in
// asked are none: the lab gets them.
func (s Settings) Differences(asked Settings) error {
	var diff []string
	differ := func(flag string, have, want any) {
		if have, want := fmt.Sprint(have), fmt.Sprint(want); have != want {
			diff = append(diff, fmt.Sprintf("%s is %v there, not %v", flag, have, want))
		}
	}
	if s.Rack == nil && asked.Rack == nil { // else rackfile.Diff compares them
		differ("--hosts", s.Hosts, asked.Hosts)
		differ("--profile", cmp.Or(s.Profile, defaultProfile), cmp.Or(asked.Profile, defaultProfile))
		differ("--seed", cmp.Or(s.Seed, 1), cmp.Or(asked.Seed, 1))
	} else {
		diff = rackfile.Diff(s.Definition(), asked.Definition())
	}
	if s.Rack == nil && asked.Rack == nil { // a file can say another speed each time
		differ("--speed", s.Speed, asked.Speed)
		if len(s.FamiliesBeyond(asked)) > 0 { // families come, and do not go
			differ("--with", s.Families(), asked.Families())
		}
	}
	if (s.Shards > 0) != (asked.Shards > 0) { // else shards come and go
		differ("--shards", s.Shards, asked.Shards)
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
func (s Settings) Definition() rackfile.Lab {
	l := rackfile.Default(s.Hosts)
	l.Hosts[0].Profile = cmp.Or(s.Profile, defaultProfile)
	if s.Rack != nil {
		l = *s.Rack
	}
	l.With, l.Part = s.Families(), s.Part
	if s.Shards > 0 { // the hosts are those of its shards
		l.Part = new(rackfile.Part)
	}
	l.Speed, l.Seed, l.Listen = rackfile.Speed(s.Speed), cmp.Or(s.Seed, l.Seed), cmp.Or(rackfile.Listen(s.Listen), l.Listen)
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
// it keeps the settings in it if they are of this rack, and else writes new ones, which are
// fresh but for the rack.
func AdoptState(dir string, r rackfile.Lab, fresh Settings) error {
	s, found, err := LoadSettings(dir)
	if err == nil {
		err = CheckSettings(dir)
	}
	if err != nil { // a snapshot is restored because of damage, too
		if err := os.RemoveAll(filepath.Join(dir, settingsFile)); err != nil {
			return err
		}
		_, statErr := os.Stat(filepath.Join(dir, KubeDir))
		s, found, fresh.Kube = Settings{}, false, fresh.Kube && statErr == nil
	}
	if found && len(rackfile.Diff(s.Definition(), r)) == 0 && len(r.With) == len(s.Families()) { // Diff lets families be added
		return nil
	}
	if !found {
		s = fresh
	}
	s.Define(r)
	if err := s.save(dir); err != nil {
		return err
	}
	return integrity.Forget(dir, stateFiles[:1])
}

func (s Settings) save(dir string) error { return writeJSON(filepath.Join(dir, settingsFile), s) }

func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return writeFile(name, append(b, '\n'), 0o600)
}

// writeFile replaces a file atomically.
func writeFile(name string, b []byte, mode os.FileMode) error {
	if err := os.WriteFile(name+".new", b, mode); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return nil
}
