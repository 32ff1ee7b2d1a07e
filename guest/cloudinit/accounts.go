package cloudinit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// accounts writes /etc/passwd, /etc/shadow and /etc/group.
type accounts struct {
	root       Root
	nextSystem int
}

// firstUID is the least ID of an account that is no system's (login.defs(5), UID_MIN).
const firstUID = 1000

// nextUID returns the ID that useradd(8) gives: one more than the largest of a range.
func (a *accounts) nextUID() int {
	const last = 60000 // UID_MAX
	f, _ := a.root.Get("etc/passwd")
	next := firstUID
	for line := range strings.Lines(string(f.Content)) {
		if fields := strings.Split(line, ":"); len(fields) > 2 {
			if id, err := strconv.Atoi(fields[2]); err == nil && id >= next && id < last {
				next = id + 1
			}
		}
	}
	return next
}

func (a *accounts) add(u user, r *Result) error {
	if u.name == "" || strings.ContainsAny(u.name+u.home()+u.shell+u.gecos, ":\n") {
		return fmt.Errorf("a name, home, shell or gecos has a colon or is empty")
	}
	id := u.uid
	switch {
	case id != 0:
	case u.system:
		id = a.nextSystem
		a.nextSystem--
	default:
		id = a.nextUID()
	}
	gid := a.group(cmp.Or(u.primaryGroup, u.name), id)
	for _, g := range u.groups {
		a.group(g, 0)
		a.join(g, u.name)
	}
	a.root.append("etc/passwd", 0o644, fmt.Sprintf("%s:x:%d:%d:%s:%s:%s\n", u.name, id, gid, u.gecos, u.home(), cmp.Or(u.shell, "/bin/sh")))
	a.root.append("etc/shadow", 0o640, fmt.Sprintf("%s:%s:19000:0:99999:7:::\n", u.name, u.password()))
	if u.plainPasswd {
		r.ignore("plain_text_passwd of %s is not set: give hashed_passwd", u.name)
	}
	for _, rule := range u.sudo {
		a.root.append("etc/sudoers.d/90-cloud-init-users", 0o440, u.name+" "+rule+"\n")
	}
	return nil
}

// password returns the second field of /etc/shadow: "!" before it locks the account.
func (u user) password() string {
	hash := cmp.Or(u.hashedPasswd, u.passwd)
	if !u.unlocked || hash == "" {
		return "!" + hash
	}
	return hash
}

// group creates a group unless it exists, and returns its ID.
func (a *accounts) group(name string, id int) int {
	f, _ := a.root.Get("etc/group")
	most := 0
	for line := range strings.Lines(string(f.Content)) {
		var n int
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 4 {
			continue
		}
		if _, err := fmt.Sscan(fields[2], &n); err != nil {
			continue
		}
		if fields[0] == name {
			return n
		}
		most = max(most, n)
	}
	if id == 0 {
		id = max(most+1, 2000)
	}
	a.root.append("etc/group", 0o644, fmt.Sprintf("%s:x:%d:\n", name, id))
	return id
}

// join adds a member to a group.
func (a *accounts) join(group, member string) {
	f, _ := a.root.Get("etc/group")
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
	a.root["etc/group"] = f
}
