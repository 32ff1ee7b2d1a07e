package cloudinit

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// accounts writes the files of users and groups as the programs useradd and groupadd do: gshadow,
// subuid and subgid only where they are there.
type accounts struct{ root Root }

// Ranges of IDs (login.defs(5), UID_MIN, UID_MAX, SYS_UID_MIN, SYS_UID_MAX, and those of groups).
const (
	firstID, lastID             = 1000, 60000
	firstSystemID, lastSystemID = 101, 999
)

// records yields the fields of the lines of a file such as /etc/passwd.
func (a *accounts) records(file string) (out [][]string) {
	f, _ := a.root.Get(file)
	for line := range strings.Lines(string(f.Content)) {
		if fields := strings.Split(strings.TrimSuffix(line, "\n"), ":"); len(fields) > 2 {
			out = append(out, fields)
		}
	}
	return out
}

// ids returns the IDs of a file such as /etc/passwd, by name.
func (a *accounts) ids(file string) map[string]int {
	out := map[string]int{}
	for _, fields := range a.records(file) {
		if id, err := strconv.Atoi(fields[2]); err == nil {
			out[fields[0]] = id
		}
	}
	return out
}

// next returns the ID that a new account gets: one more than the largest, or of a system's the
// largest that is free.
func next(ids map[string]int, system bool) int {
	if !system {
		next := firstID
		for _, id := range ids {
			if id >= next && id < lastID {
				next = id + 1
			}
		}
		return next
	}
	used := slices.Collect(maps.Values(ids))
	for id := lastSystemID; id > firstSystemID; id-- {
		if !slices.Contains(used, id) {
			return id
		}
	}
	return firstSystemID
}

func (a *accounts) add(u user, r *Result) error {
	if u.name == "" || strings.ContainsAny(u.name+u.home()+u.shell+u.gecos, ":\n") {
		return fmt.Errorf("a name, home, shell or gecos has a colon or is empty")
	}
	if _, there := a.ids("etc/passwd")[u.name]; there {
		a.change(u)
	} else if _, err := strconv.Atoi(u.name); err == nil {
		return fmt.Errorf("a name of digits alone is that of no user")
	} else if _, there := a.ids("etc/group")[u.primaryGroup]; u.primaryGroup != "" && !there && len(u.groups) == 0 {
		return fmt.Errorf("its primary_group %s is not there: name it in groups", u.primaryGroup)
	} else {
		a.create(u)
	}
	if u.plainPasswd {
		r.ignore("plain_text_passwd of %s is not set: give hashed_passwd", u.name)
	}
	const rules = "etc/sudoers.d/90-cloud-init-users"
	f, _ := a.root.Get(rules)
	for _, rule := range u.sudo {
		if line := u.name + " " + rule + "\n"; !strings.Contains("\n"+string(f.Content), "\n"+line) {
			a.root.append(rules, 0o440, line)
		}
	}
	return nil
}

// known returns a user with the home and the group that it has.
func (a *accounts) known(u user) user {
	const home = 5 // passwd(5)
	for _, fields := range a.records("etc/passwd") {
		if fields[0] != u.name || len(fields) <= home {
			continue
		}
		u.homeDir = fields[home]
		for _, g := range a.records("etc/group") {
			if g[2] == fields[3] {
				u.primaryGroup = g[0]
			}
		}
	}
	return u
}

// change replaces the password of an existing user, or locks it.
func (a *accounts) change(u user) {
	a.shadow(u.name, func(fields []string) {
		fields[1] = cmp.Or(u.hashedPasswd, fields[1])
		if !u.unlocked && !strings.HasPrefix(fields[1], "!") {
			fields[1] = "!" + fields[1]
		}
	})
}

// shadow changes the fields of a user in /etc/shadow, if they are there: at least three.
func (a *accounts) shadow(name string, change func(fields []string)) {
	f, ok := a.root.Get("etc/shadow")
	if !ok {
		return
	}
	var out strings.Builder
	for line := range strings.Lines(string(f.Content)) {
		if fields := strings.Split(line, ":"); fields[0] == name && len(fields) > 2 {
			change(fields)
			line = strings.Join(fields, ":")
		}
		out.WriteString(line)
	}
	f.Content = []byte(out.String())
	a.root["etc/shadow"] = f
}

// create makes a user, with its groups and its home.
func (a *accounts) create(u user) {
	for _, g := range u.groups {
		a.group(g, 0, false)
	}
	id := u.uid
	if id == 0 {
		id = next(a.ids("etc/passwd"), u.system)
	}
	want := id
	if u.system && (id < firstSystemID || id > lastSystemID) {
		want = 0 // useradd looks for one of the range
	}
	gid := a.group(u.group(), want, u.system)
	for _, g := range u.groups {
		a.join(g, u.name)
	}
	a.root.append("etc/passwd", 0o644, fmt.Sprintf("%s:x:%d:%d:%s:%s:%s\n", u.name, id, gid, u.gecos, u.home(), cmp.Or(u.shell, "/bin/sh")))
	aging := "0:99999:7" // login.defs(5), PASS_MIN_DAYS, PASS_MAX_DAYS, PASS_WARN_AGE
	if u.system {
		aging = "::"
	}
	a.root.append("etc/shadow", 0o640, fmt.Sprintf("%s:%s:19000:%s:%s:%s:\n", u.name, u.password(), aging, u.inactive, u.expires))
	if !u.system {
		a.subordinate(u.name)
		a.home(u)
	}
}

// subordinate gives a user IDs for its user namespaces (subuid(5)).
func (a *accounts) subordinate(name string) {
	const first, count = 100000, 65536
	for _, file := range []string{"etc/subuid", "etc/subgid"} {
		if _, ok := a.root.Get(file); !ok {
			continue
		}
		start := first
		for _, fields := range a.records(file) {
			if n, err := strconv.Atoi(fields[1]); err == nil {
				start = max(start, n+count)
			}
		}
		a.root.append(file, 0o644, fmt.Sprintf("%s:%d:%d\n", name, start, count))
	}
}

// home makes the home of a user with the files of /etc/skel. An existing one stays as it is.
func (a *accounts) home(u user) {
	home := rel(u.home())
	if _, there := a.root.List(home); there || u.homeless {
		return
	}
	const skel = "etc/skel/"
	for _, name := range slices.Sorted(maps.Keys(a.root)) {
		if rest, ok := strings.CutPrefix(name, skel); ok {
			f := a.root[name]
			f.Owner, f.Group = u.name, u.group()
			a.root[home+"/"+rest] = f
		}
	}
	a.root[home] = File{Mode: fs.ModeDir | a.homeMode(), Owner: u.name, Group: u.group()}
}

// homeMode returns the mode of a new home (login.defs(5), HOME_MODE).
func (a *accounts) homeMode() fs.FileMode {
	f, _ := a.root.Get("etc/login.defs")
	for line := range strings.Lines(string(f.Content)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "HOME_MODE" {
			if mode, err := strconv.ParseUint(words[1], 8, 9); err == nil {
				return fs.FileMode(mode)
			}
		}
	}
	return 0o755
}

// password returns the second field of /etc/shadow: "!" before it locks the account.
func (u user) password() string {
	hash := cmp.Or(u.hashedPasswd, u.passwd)
	if !u.unlocked || hash == "" {
		return "!" + hash
	}
	return hash
}

// group creates a group unless it exists, and returns its ID. It gets the wanted ID if that is free;
// 0: any.
func (a *accounts) group(name string, want int, system bool) int {
	ids := a.ids("etc/group")
	if id, ok := ids[name]; ok {
		return id
	}
	id := want
	if id == 0 || slices.Contains(slices.Collect(maps.Values(ids)), id) {
		id = next(ids, system)
	}
	a.root.append("etc/group", 0o644, fmt.Sprintf("%s:x:%d:\n", name, id))
	if _, ok := a.root.Get("etc/gshadow"); ok {
		a.root.append("etc/gshadow", 0o640, name+":!::\n")
	}
	return id
}

// join adds a member to a group.
func (a *accounts) join(group, member string) {
	for _, file := range []string{"etc/group", "etc/gshadow"} {
		f, ok := a.root.Get(file)
		if !ok {
			continue
		}
		var out strings.Builder
		for line := range strings.Lines(string(f.Content)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, group+":") {
				members := line[strings.LastIndexByte(line, ':')+1:]
				if members != "" {
					line += ","
				}
				line += member
			}
			out.WriteString(line + "\n")
		}
		f.Content = []byte(out.String())
		a.root[file] = f
	}
}
