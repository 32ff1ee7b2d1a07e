package sandbox

import (
	"maps"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// architectures are systemd's names of Go's architectures (systemd.unit(5),
// "ConditionArchitecture=").
var architectures = map[string]string{"amd64": "x86-64", "arm64": "arm64", "riscv64": "riscv64", "ppc64le": "ppc64-le", "s390x": "s390x", "386": "x86"}

// specifiers returns the specifiers that are the same for all units of a system (systemd.unit(5),
// "Specifiers"). The manager of the system is root's.
func (s *System) specifiers(f files) map[byte]string {
	hostname, _, _ := strings.Cut(strings.TrimSpace(readIf(f, "etc/hostname")), "\n")
	if hostname == "" {
		hostname = "localhost"
	}
	short, _, _ := strings.Cut(hostname, ".")
	release := assignments(readIf(f, "etc/os-release"))
	pretty := assignments(readIf(f, "etc/machine-info"))["PRETTY_HOSTNAME"]
	if pretty == "" {
		pretty = hostname
	}
	shell := "/bin/sh"
	if a, ok := accountOf(readIf(f, "etc/passwd"), "root"); ok && a.shell != "" {
		shell = a.shell
	}
	return map[byte]string{
		'H': hostname, 'l': short, 'q': pretty, 'm': strings.TrimSpace(readIf(f, "etc/machine-id")), 'b': strings.ReplaceAll(s.c.Boot.ID, "-", ""),
		'v': kernelRelease(), 'a': architectures[runtime.GOARCH],
		'o': release["ID"], 'w': release["VERSION_ID"], 'W': release["VARIANT_ID"], 'B': release["BUILD_ID"], 'M': release["IMAGE_ID"], 'A': release["IMAGE_VERSION"],
		't': "/run", 'S': "/var/lib", 'C': "/var/cache", 'L': "/var/log", 'E': "/etc", 'T': "/tmp", 'V': "/var/tmp",
		'h': "/root", 'u': "root", 'U': "0", 'g': "root", 'G': "0", 's': shell, '%': "%",
	}
}

// specifier returns the value of a specifier of a unit.
func (l *loader) specifier(u *unit, c byte) (string, bool) {
	full := u.names[0]
	if len(u.names) > 1 && !strings.Contains(full, "@") {
		full = u.name
	}
	bare := strings.TrimSuffix(full, path.Ext(full))
	prefix, inst, _ := strings.Cut(bare, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	switch c {
	case 'n':
		return full, true
	case 'N':
		return bare, true
	case 'p':
		return prefix, true
	case 'P':
		return unescapeUnit(prefix), true
	case 'i':
		return inst, true
	case 'I':
		return unescapeUnit(inst), true
	case 'j':
		return last, true
	case 'J':
		return unescapeUnit(last), true
	case 'f':
		if inst == "" {
			inst = prefix
		}
		return "/" + strings.TrimPrefix(unescapeUnit(inst), "/"), true
	case 'y':
		return "/" + u.file, true
	case 'Y':
		return "/" + path.Dir(u.file), true
	case 'c':
		return "/system.slice/" + full, true
	case 'R':
		return "/system.slice", true
	case 'd':
		return "/run/credentials/" + full, true
	}
	v, ok := l.about[c]
	return v, ok
}

// resolve replaces the specifiers of a text. Other text stays as it is written.
func (l *loader) resolve(u *unit, text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+1 < len(text) {
			if v, ok := l.specifier(u, text[i+1]); ok {
				b.WriteString(v)
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// unescapeUnit undoes the escapes of unit names (systemd.unit(5), "String Escaping for Inclusion in
// Unit Names").
func unescapeUnit(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '-':
			b.WriteByte('/')
		case strings.HasPrefix(text[i:], `\x`) && i+4 <= len(text):
			if n, err := strconv.ParseUint(text[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// maxExpanded is how many bytes the values of a unit have after its specifiers.
const maxExpanded = 4 << 20

// expand replaces the specifiers of a unit. Commands and Environment= are split into words first,
// when they are used: a value is never several words.
func (l *loader) expand(u *unit) {
	left := maxExpanded
	for _, key := range slices.Sorted(maps.Keys(u.keys)) {
		values := u.keys[key]
		out := make([]string, len(values))
		for i, v := range values {
			if out[i] = v; left > 0 && !strings.HasPrefix(key, "Service.Exec") && key != "Service.Environment" {
				out[i] = l.resolve(u, v)
				left -= len(out[i])
			}
		}
		u.keys[key] = out
	}
	for _, key := range slices.Sorted(maps.Keys(u.keys)) {
		switch {
		case strings.HasPrefix(key, "Service.Exec"):
			for _, v := range u.keys[key] {
				commands, err := parseCommands(v)
				if err != nil {
					u.commands = append(u.commands, command{key: key, err: err})
				}
				for _, c := range commands {
					for i := range c.args {
						c.args[i] = l.resolve(u, c.args[i])
						left -= len(c.args[i])
					}
					if c.key = key; left > 0 {
						u.commands = append(u.commands, c)
					}
				}
			}
		case key == "Service.Environment":
			for _, w := range u.words(key) {
				if w = l.resolve(u, w); left > 0 {
					u.environment = append(u.environment, w)
				}
				left -= len(w)
			}
		}
	}
}
