package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// machineInfo has the pretty host name (machine-info(5)).
const machineInfo = "etc/machine-info"

// hostnamectlOptions are the names that a call is about, and options that change nothing here.
var hostnamectlOptions = []string{"--static", "--transient", "--pretty", "--no-ask-password", "--no-pager"}

// hostnamectl shows or sets the host name (hostnamectl(1)): the static one, which is stored, the
// transient one, which commands see until the boot ends, and the pretty one.
func hostnamectl(s *System, args []string) (string, int) {
	var names, words []string
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a, "-"):
			words = append(words, a)
		case !slices.Contains(hostnamectlOptions, a):
			return printed("", fmt.Sprintf("hostnamectl: unrecognized option '%s': use --static, --transient and --pretty\n", a)), 1
		case !strings.HasPrefix(a, "--no-"):
			names = append(names, a)
		}
	}
	verb := "status"
	if len(words) > 0 {
		verb = words[0]
	}
	set := verb == "set-hostname" || verb == "hostname" || verb == "set"
	switch {
	case set && len(words) == 2:
		return s.setHostname(words[1], names)
	case len(words) > 1 || set && verb != "hostname":
		return printed("", fmt.Sprintf("Unknown command verb %s: use status, or hostname [NAME].\n", verb)), 1
	case verb != "status" && !set:
		return printed("", fmt.Sprintf("Unknown command verb %s: use status, or hostname [NAME].\n", verb)), 1
	}
	b, err := s.readAtMost("etc/hostname", maxConfig)
	if err != nil {
		return fail("hostnamectl", err)
	}
	static, pretty := strings.TrimSpace(string(b)), ""
	_ = s.files(func(f files) error { // else there is none
		for line := range strings.Lines(readIf(f, machineInfo)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_HOSTNAME="); ok {
				pretty = strings.Trim(v, `"`)
			}
		}
		return nil
	})
	s.values.Lock()
	transient := s.values.hostname
	s.values.Unlock()
	if transient == "" {
		transient = static
	}
	switch {
	case slices.Contains(names, "--pretty"):
		return pretty + "\n", 0
	case slices.Contains(names, "--transient"):
		return transient + "\n", 0
	case len(names) > 0 || set:
		return static + "\n", 0
	}
	out := " Static hostname: " + static + "\n"
	if transient != static {
		out += "Transient hostname: " + transient + "\n"
	}
	if pretty != "" && pretty != static {
		out += " Pretty hostname: " + pretty + "\n"
	}
	return out, 0
}

// setHostname sets the names that are asked for; none: all.
func (s *System) setHostname(name string, names []string) (string, int) {
	asked := func(n string) bool { return len(names) == 0 || slices.Contains(names, n) }
	plain := name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == ""
	if !plain && (asked("--static") || asked("--transient")) {
		return printed("", fmt.Sprintf("Could not set static hostname: Invalid hostname '%s'\n", name)), 1
	}
	if strings.ContainsAny(name, "\"\\\n$`") {
		return printed("", "Could not set pretty hostname: Invalid pretty hostname\n"), 1
	}
	put := Tree{}
	if asked("--static") {
		put["etc/hostname"] = File(0o644, name+"\n")
	}
	if len(names) > 0 && slices.Contains(names, "--pretty") {
		put[machineInfo] = File(0o644, "PRETTY_HOSTNAME=\""+name+"\"\n")
	}
	if err := s.Put(put); err != nil {
		return fail("hostnamectl", err)
	}
	if asked("--static") || asked("--transient") { // the kernel has the name that was set last
		s.values.Lock()
		s.values.hostname = name
		s.values.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.session != nil {
			s.session.rename(name)
		}
	}
	return "", 0
}
