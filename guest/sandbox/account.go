package sandbox

import (
	"fmt"
	"hash/fnv"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// account is a user of a system (passwd(5)).
type account struct {
	name, home, shell string
	uid, gid          int
}

// accountOf finds a user in a passwd file by name or number.
func accountOf(passwd, user string) (account, bool) {
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 7 || f[0] != user && f[2] != user {
			continue
		}
		uid, err := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err == nil && err2 == nil && uid >= 0 && gid >= 0 {
			return account{f[0], f[5], f[6], uid, gid}, true
		}
	}
	return account{}, false
}

// groupOf finds a group in a group file (group(5)) by name or number.
func groupOf(group, name string) (int, bool) {
	for line := range strings.Lines(group) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 4 && (f[0] == name || f[2] == name) {
			gid, err := strconv.Atoi(f[2])
			return gid, err == nil && gid >= 0
		}
	}
	if gid, err := strconv.Atoi(name); err == nil && gid >= 0 {
		return gid, true
	}
	return 0, false
}

// groupsOf returns the groups that have a user as their member.
func groupsOf(group, user string) (out []int) {
	for line := range strings.Lines(group) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 4 || !slices.Contains(strings.Split(f[3], ","), user) {
			continue
		}
		if gid, err := strconv.Atoi(f[2]); err == nil && gid >= 0 {
			out = append(out, gid)
		}
	}
	return out
}

// Numbers of users that DynamicUser= makes (systemd, "Users, Groups, UIDs and GIDs on systemd
// Systems"), and of those that a namespace has.
const (
	firstDynamic = 61184
	lastDynamic  = 65519
	lastMapped   = 1<<16 - 1
)

// credential is as whom the processes of a service run.
type credential struct {
	account
	set    bool  // false: as root, whose name and home they do not get
	groups []int // beside the account's
}

// credential reads User=, Group= and SupplementaryGroups= (systemd.exec(5)).
func (u unit) credential(f files) (c credential, err error) {
	passwd, group := readIf(f, "etc/passwd"), readIf(f, "etc/group")
	user, dynamic := u.get("Service.User"), u.is("Service.DynamicUser")
	if user == "" && dynamic {
		user, _, _ = strings.Cut(strings.TrimSuffix(u.name, ".service"), "@")
	}
	c = credential{account: account{"root", "/root", "/bin/sh", 0, 0}}
	if user != "" {
		a, ok := accountOf(passwd, user)
		if n, err := strconv.Atoi(user); !ok && err == nil && n >= 0 {
			a, ok = account{user, "/", "/bin/sh", n, n}, true
		}
		if !ok && dynamic {
			h := fnv.New32a()
			_, _ = h.Write([]byte(user)) // it does not fail
			n := firstDynamic + int(h.Sum32()%(lastDynamic-firstDynamic+1))
			a, ok = account{user, "/", "/usr/sbin/nologin", n, n}, true
		}
		if !ok {
			return c, fmt.Errorf("User=%s: /etc/passwd has no such user", user)
		}
		c.account, c.set, c.groups = a, true, groupsOf(group, a.name)
	}
	if g := u.get("Service.Group"); g != "" {
		gid, ok := groupOf(group, g)
		if !ok {
			return c, fmt.Errorf("Group=%s: /etc/group has no such group", g)
		}
		c.gid = gid
	}
	for _, g := range u.words("Service.SupplementaryGroups") {
		gid, ok := groupOf(group, g)
		if !ok {
			return c, fmt.Errorf("SupplementaryGroups=%s: /etc/group has no such group", g)
		}
		c.groups = append(c.groups, gid)
	}
	highest := max(c.uid, c.gid)
	for _, g := range c.groups {
		highest = max(highest, g)
	}
	if highest > 0 && os.Getuid() != 0 {
		return c, fmt.Errorf("User=%s, Group=%s: servers of a lab without privileges have root alone: run the lab as root", u.get("Service.User"), u.get("Service.Group"))
	}
	if highest > lastMapped {
		return c, fmt.Errorf("User=%s, Group=%s: servers of a lab have the numbers to %d", u.get("Service.User"), u.get("Service.Group"), lastMapped)
	}
	return c, nil
}

// variables are those of a service that names its user (systemd.exec(5), "Environment Variables in
// Spawned Processes").
func (c credential) variables() []string {
	if !c.set {
		return nil
	}
	out := []string{"LOGNAME=" + c.name, "USER=" + c.name}
	if base := path.Base(c.shell); c.shell != "" && base != "nologin" && base != "false" {
		out = append(out, "SHELL="+c.shell)
	}
	if c.home != "" && c.home != "/" {
		out = append(out, "HOME="+c.home)
	}
	return out
}
