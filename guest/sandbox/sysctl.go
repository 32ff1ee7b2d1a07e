package sandbox

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/guest/sandbox/hostprograms"
)

// sysctlDirs have files of sysctl.d(5), the first wins.
var sysctlDirs = []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d"}

// Bounds of reading sysctl.d and modules-load.d.
const (
	maxSettingFiles = 256
	maxSettings     = 4096
)

// setting is a line of sysctl.d.
type setting struct {
	key, value string // key with slashes; it may be a pattern
	optional   bool   // that it fails is no matter
	except     bool   // patterns do not set it
}

// parseSettings reads a file of sysctl.d.
func parseSettings(text string) (out []setting) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		s := setting{value: strings.TrimSpace(value)}
		key, s.optional = strings.CutPrefix(strings.TrimSpace(key), "-")
		if s.except = !ok; !ok && !s.optional {
			continue
		}
		key = strings.TrimSpace(key)
		if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' { // the first separator says which one it is
			key = strings.NewReplacer(".", "/", "/", ".").Replace(key)
		}
		key = strings.TrimPrefix(path.Clean("/"+key), "/")
		if key != "" && len(out) < maxSettings {
			s.key = key
			out = append(out, s)
		}
	}
	return out
}

// settings returns the lines of all files of sysctl.d in their order, and at last those of
// sysctl.conf, as sysctl --system has them.
func settings(f files) (out []setting) {
	for _, file := range append(ordered(f, sysctlDirs), "etc/sysctl.conf") {
		out = append(out, parseSettings(readIf(f, file))...)
	}
	return out[:min(len(out), maxSettings)]
}

// ordered returns the files *.conf of directories by their names: of those with one name, that of the
// first directory.
func ordered(f files, dirs []string) (out []string) {
	at := map[string]string{}
	var names []string
	for _, dir := range dirs {
		entries, err := f.names(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if at[e] == "" && strings.HasSuffix(e, ".conf") {
				at[e] = path.Join(dir, e)
				names = append(names, e)
			}
		}
	}
	slices.Sort(names)
	for _, n := range names[:min(len(names), maxSettingFiles)] {
		out = append(out, at[n])
	}
	return out
}

// sharedSettings shares equal values between systems: a thousand have those of this machine's
// /usr/lib/sysctl.d. Nobody changes a map that is in use.
var sharedSettings shared

type shared struct {
	mu   sync.Mutex
	last map[string]string // the values of the last system
}

// of returns a map that is equal to another.
func (s *shared) of(values map[string]string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.last, values) {
		s.last = values
	}
	return s.last
}

// bridgeKeys are those that the module br_netfilter adds.
const bridgeKeys = "net/bridge/"

// applySettings sets the values of sysctl.d, as a boot does. No process is needed: they are what
// /proc/sys shows when one runs.
func (s *System) applySettings() error {
	var all []setting
	err := s.files(func(f files) error {
		all = settings(f)
		for _, file := range ordered(f, []string{"etc/modules-load.d", "run/modules-load.d", "usr/local/lib/modules-load.d", "usr/lib/modules-load.d"}) {
			for _, m := range hostprograms.ModulesOf(readIf(f, file)) {
				s.kernel.Load(m)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	bridge := s.kernel.Has("br_netfilter")
	set := map[string]string{}
	if bridge {
		for key, value := range bridgeDefaults {
			set[bridgeKeys+key] = strings.TrimSpace(value)
		}
	}
	there := func(key string) bool {
		if strings.HasPrefix(key, bridgeKeys) {
			return bridge
		}
		if nic := ofNIC(key); nic != "" && !slices.Contains([]string{"all", "default", "lo"}, nic) {
			return false // it is this machine's
		}
		st, err := os.Lstat(path.Join(kernelValues, key))
		return err == nil && st.Mode().IsRegular() && st.Mode()&0o200 != 0
	}
	named := map[string]bool{}
	for _, x := range all {
		named[x.key] = named[x.key] || !strings.ContainsAny(x.key, "*?[")
	}
	for _, x := range all {
		switch {
		case x.except:
		case strings.ContainsAny(x.key, "*?["):
			for _, key := range matching(x.key) {
				if !named[key] && there(key) {
					set[key] = x.value
				}
			}
		case there(x.key):
			set[x.key] = x.value
		case !x.optional && !strings.HasPrefix(x.key, "kernel/core_"):
			s.report("systemd-sysctl: Couldn't write '%s' to '%s', ignoring: No such file or directory", x.value, x.key)
		}
	}
	values := maps.Clone(s.sysctl()) // a session reads the map that it was given
	if values == nil {
		values = map[string]string{}
	}
	for key, value := range set {
		values[key] = value + "\n"
	}
	s.setSysctl(sharedSettings.of(values))
	return nil
}

// ofNIC returns the NIC of a key such as net/ipv4/conf/eth0/rp_filter; "": it has none.
func ofNIC(key string) string {
	words := strings.Split(key, "/")
	if len(words) == 5 && words[0] == "net" && (words[2] == "conf" || words[2] == "neigh") {
		return words[3]
	}
	return ""
}

// kernelValues are those of this machine's kernel, whose names servers have.
const kernelValues = "/proc/sys"

// matching returns the keys of the kernel that match a pattern.
func matching(pattern string) (out []string) {
	found := []string{""}
	for element := range strings.SplitSeq(pattern, "/") {
		var next []string
		for _, dir := range found {
			entries, err := os.ReadDir(path.Join(kernelValues, dir))
			if err != nil {
				continue
			}
			for _, e := range entries {
				if ok, _ := path.Match(element, e.Name()); ok && len(next) < maxSettings {
					next = append(next, path.Join(dir, e.Name()))
				}
			}
		}
		found = next
	}
	return found
}
