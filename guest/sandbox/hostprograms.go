package sandbox

import (
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/guest/sandbox/hostprograms"
)

// This file makes package hostprograms' programs those of a system.

// calling identifies the caller of a program, and its directory and input.
type calling struct {
	Dir   string
	UID   int
	Input []byte
}

// program runs a program of this package or of hostprograms. ok is false when there is none of the
// name.
func (s *System) program(name string, args []string, by calling) (out string, code int, ok bool) {
	if run, ok := programs[name]; ok {
		if by.UID != 0 && !onlyReads(name, args) {
			return printed("", name+": Access denied: only the superuser may do this\n"), 1, true
		}
		out, code = run(s, args)
		return out, code, true
	}
	if !slices.Contains(hostPrograms, name) {
		return "", CodeNotFound, false
	}
	c := hostprograms.Call{Server: s.server(), Name: name, Args: args, Dir: path.Join("/root", by.Dir), UID: by.UID, Input: by.Input}
	if path.IsAbs(by.Dir) {
		c.Dir = by.Dir
	}
	out, problems, code := c.Run()
	return printed(out, problems), code, true
}

// onlyReads reports whether a program of this package changes nothing.
func onlyReads(name string, args []string) bool {
	words := withoutOptions(args)
	switch name {
	case "hostnamectl":
		return len(words) == 0 || len(words) == 1 && (words[0] == "status" || words[0] == "hostname")
	case "systemctl":
		c := &ctl{options: map[string][]string{}}
		return !c.parse(args) || c.verb == "" || slices.Contains([]string{"is-active", "is-failed", "is-enabled", "show", "status", "cat", "help", "get-default", "is-system-running", "show-environment"}, c.verb) || strings.HasPrefix(c.verb, "list-")
	}
	return false
}

// hostPrograms are the names of the programs of hostprograms.
var hostPrograms = hostprograms.Names()

// withoutProcess reports whether a program runs without a process that calls it.
func withoutProcess(name string) bool {
	_, ok := programs[name]
	return ok || slices.Contains(hostPrograms, name) && !hostprograms.NeedsProcess(name)
}

// callingOf returns how a command calls a program without a process.
func (s *System) callingOf(c Command) (calling, error) {
	by := calling{Dir: c.Dir}
	if c.service != nil && c.service.As {
		by.UID = c.service.UID
	}
	var stdin io.Reader = strings.NewReader("")
	if c.Stdin != nil {
		stdin = c.Stdin
	}
	read := func(name string) ([]byte, error) {
		if !path.IsAbs(name) {
			name = path.Join("/root", c.Dir, name)
		}
		return s.readAtMost(Clean(name), maxConfig)
	}
	var err error
	by.Input, err = hostprograms.Input(path.Base(c.Args[0]), c.Args[1:], stdin, read)
	return by, err
}

// server is the system as its programs see it.
func (s *System) server() *hostprograms.Server {
	return &hostprograms.Server{
		Host: s.Host(), Kernel: &s.kernel, Release: kernelRelease(), Cmdline: s.cmdline, Disks: s.disks, Boot: s.c.Boot, Now: s.now,
		Active:  func(unit string) bool { return s.units.state(s.canonical(unit)) == stateActive },
		Changed: s.modulesChanged,
	}
}

// hardwareOfFile returns the content of a file that describes the hardware.
func (s *System) hardwareOfFile(name string) string {
	all, err := s.readHardware()
	if err != nil {
		return ""
	}
	for _, f := range all {
		if f.Name == name {
			return string(f.Content)
		}
	}
	return ""
}

// cmdline returns the kernel's command line.
func (s *System) cmdline() string {
	s.mu.Lock()
	n, ok := s.own[cmdlineFile]
	s.mu.Unlock()
	if ok {
		return strings.TrimSpace(string(n.Content))
	}
	return strings.TrimSpace(s.hardwareOfFile(cmdlineFile))
}

// bootOfGrub takes the command line that update-grub has written for this boot: a file of the
// installation alone says nothing of it. The caller holds s.mu.
func (s *System) bootOfGrub(stored []byte) error {
	layer, err := s.decoded.decode(stored)
	if err != nil {
		return err
	}
	line := hostprograms.Cmdline(string(layer[hostprograms.GrubConfig].Content))
	if line == "" {
		return nil
	}
	own := maps.Clone(s.own)
	if own == nil {
		own = Tree{}
	}
	own[cmdlineFile] = File(0o444, line+"\n")
	s.own = own
	return nil
}

// disks returns the disks of the hardware: those below /sys/class/block, of which a partition's
// directory is in that of its disk.
func (s *System) disks() (out []hostprograms.Disk) {
	all, err := s.readHardware()
	if err != nil {
		return nil
	}
	partitions := map[string][]string{}
	for _, f := range all {
		if dir, name := path.Split(f.Name); dir != "sys/class/block/" || f.Link == "" {
			continue
		} else if disk := path.Base(path.Dir(f.Link)); disk != "block" {
			partitions[disk] = append(partitions[disk], name)
		} else if !strings.Contains(f.Link, "/virtual/") {
			out = append(out, hostprograms.Disk{Name: name})
		}
	}
	for i := range out {
		out[i].Partitions = partitions[out[i].Name]
		slices.Sort(out[i].Partitions)
	}
	slices.SortFunc(out, func(a, b hostprograms.Disk) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// bridgeDefaults are the values that br_netfilter brings (Linux, ip-sysctl.rst, "/proc/sys/net/bridge/*").
var bridgeDefaults = map[string]string{
	"bridge-nf-call-arptables": "1\n", "bridge-nf-call-iptables": "1\n", "bridge-nf-call-ip6tables": "1\n", "bridge-nf-filter-vlan-tagged": "0\n",
	"bridge-nf-filter-pppoe-tagged": "0\n", "bridge-nf-pass-vlan-input-dev": "0\n",
}

// modulesChanged shows other modules to the commands of this boot, with the values that one brings.
func (s *System) modulesChanged() error {
	added := Tree{}
	s.values.Lock()
	if s.kernel.Has("br_netfilter") {
		values := map[string]string{}
		for key, v := range s.values.sysctl {
			values[key] = v
		}
		for key, v := range bridgeDefaults {
			if _, ok := values[bridgeKeys+key]; !ok {
				values[bridgeKeys+key] = v
				added["proc/sys/"+bridgeKeys+key] = File(0o644, v)
			}
		}
		s.values.sysctl = values
	}
	s.values.Unlock()
	return s.use(func(r *session) error {
		if err := r.showModules(s.kernel.ProcModules()); err != nil {
			return err
		}
		return r.put(added)
	}, func(view) error { return nil })
}
