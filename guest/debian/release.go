package debian

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// family is what releases have in common.
type family int

const (
	other family = iota
	debian
	ubuntu
)

// release is a distribution that the tree follows.
type release struct {
	family        family
	version       float64 // 12, 22.04
	codename      string
	debianVersion string // text of /etc/debian_version
	kernel        string // version of the kernel, without what stands for the processors

	fields map[string]string // fields of os-release
}

// releases are those whose trees are here.
var releases = []release{
	{family: debian, version: 12, codename: "bookworm", debianVersion: "12.11", kernel: "6.1.0-37-"},
	{family: debian, version: 13, codename: "trixie", debianVersion: "13.1", kernel: "6.12.43+deb13-"},
	{family: ubuntu, version: 22.04, codename: "jammy", debianVersion: "bookworm/sid", kernel: "5.15.0-151-generic"},
	{family: ubuntu, version: 24.04, codename: "noble", debianVersion: "trixie/sid", kernel: "6.8.0-79-generic"},
}

// codenames are the versions of releases that a derivative may name.
var codenames = map[family]map[string]float64{
	debian: {"buster": 10, "bullseye": 11, "bookworm": 12, "trixie": 13, "forky": 14, "sid": 14, "daedalus": 12, "excalibur": 13},
	ubuntu: {"focal": 20.04, "jammy": 22.04, "mantic": 23.10, "noble": 24.04, "oracular": 24.10, "plucky": 25.04, "questing": 25.10},
}

func (r release) isDebian() bool { return r.family != other }

// atLeast reports whether the release is one of Debian from a version on, or of Ubuntu from
// another.
func (r release) atLeast(ofDebian, ofUbuntu float64) bool {
	return r.family == debian && r.version >= ofDebian || r.family == ubuntu && r.version >= ofUbuntu
}

// id returns ID, whose default is linux (os-release(5)).
func (r release) id() string { return cmp.Or(r.fields["ID"], "linux") }

// prettyName returns how the system is called.
func (r release) prettyName() string { return PrettyName(r.fields) }

// PrettyName returns how fields of os-release(5) call the system.
func PrettyName(fields map[string]string) string {
	return cmp.Or(fields["PRETTY_NAME"], strings.TrimSpace(fields["ID"]+" "+fields["VERSION_ID"]), "Linux")
}

// architecture returns Debian's name of this machine's architecture, whose programs a server runs.
func architecture() string {
	if name, ok := map[string]string{"386": "i386", "ppc64le": "ppc64el", "arm": "armhf"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}

// kernelVersion returns the version of the kernel that is installed, as "uname -r" would have it.
func (r release) kernelVersion() string {
	if strings.HasSuffix(r.kernel, "-") {
		return r.kernel + architecture()
	}
	return r.kernel
}

// Fields returns the fields of a text of os-release(5), which a shell could read.
func Fields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			out[name] = unquote(value)
		}
	}
	return out
}

// unquote returns a value as a shell reads it.
func unquote(s string) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			out.WriteByte(s[i])
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// releaseOf returns the release that a text of os-release names, or the nearest one.
func releaseOf(text string) release {
	fields := Fields(text)
	of := familyOf(fields)
	if of == other {
		return release{fields: fields}
	}
	return nearest(of, versionOf(of, fields), fields)
}

func familyOf(fields map[string]string) family {
	for _, name := range append([]string{fields["ID"]}, strings.Fields(fields["ID_LIKE"])...) { // the closest comes first
		if is, ok := map[string]family{"debian": debian, "ubuntu": ubuntu}[name]; ok {
			return is
		}
	}
	return other
}

// versionOf returns the version of Debian or Ubuntu that a system is, or is derived from. A system
// that names none is newer than all: so is Debian's testing.
func versionOf(of family, fields map[string]string) float64 {
	for _, key := range []string{"UBUNTU_CODENAME", "DEBIAN_CODENAME", "VERSION_CODENAME"} {
		if v, ok := codenames[of][fields[key]]; ok {
			return v
		}
	}
	if v, err := strconv.ParseFloat(fields["VERSION_ID"], 64); err == nil && !math.IsNaN(v) {
		return v
	}
	return math.Inf(1)
}

// nearest returns the release of a family whose version is the nearest, of two the older.
func nearest(of family, version float64, fields map[string]string) release {
	known := slices.DeleteFunc(slices.Clone(releases), func(r release) bool { return r.family != of })
	version = max(known[0].version, min(version, known[len(known)-1].version))
	r := slices.MinFunc(known, func(a, b release) int {
		return cmp.Compare(math.Abs(a.version-version), math.Abs(b.version-version))
	})
	r.fields = fields
	return r
}
