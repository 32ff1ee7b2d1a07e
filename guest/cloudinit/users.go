package cloudinit

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// user is an account (cloud-init, module "Users and groups").
type user struct {
	name, gecos, homeDir, shell, primaryGroup string
	groups, sudo, keys                        []string
	hashedPasswd, passwd                      string
	plainPasswd, unlocked, system, homeless   bool
	groupless                                 bool   // without a group of its own
	expires, inactive                         string // fields of shadow(5), in days; "": never
	uid                                       int    // 0: the next
	isDefault                                 bool
}

// settings are the keys of a user in users, by name.
type settings struct {
	name   string
	values map[string]yaml.Node
}

// configFile has cloud-init's settings of a distribution.
const configFile = "etc/cloud/cloud.cfg"

// defaultUser returns the account that "default" in users means, and that gets the public keys of
// the data source: the one that the settings of the distribution name (system_info.default_user),
// or that of Debian's images.
func defaultUser(root Root) user {
	u := user{
		name: "debian", gecos: "Debian", shell: "/bin/bash", sudo: []string{"ALL=(ALL) NOPASSWD:ALL"},
		groups: []string{"adm", "audio", "cdrom", "dialout", "dip", "floppy", "netdev", "plugdev", "sudo", "video"},
	}
	var c struct {
		SystemInfo struct {
			DefaultUser yaml.Node `yaml:"default_user"`
		} `yaml:"system_info"`
	}
	f, _ := root.Get(configFile)
	if err := yaml.Unmarshal(f.Content, &c); err == nil {
		if values, err := fields(&c.SystemInfo.DefaultUser); err == nil {
			name := values["name"]
			delete(values, "name")
			if of, err := userOf(settings{text(&name), values}, &Result{}); err == nil && name.Kind != 0 {
				u = of
			}
		}
	}
	u.isDefault = true
	return u
}

// users creates the accounts and writes the keys that may log in to them.
func (c *config) users(i Instance, root Root, r *Result) {
	users := []user{defaultUser(root)}
	if c.Users != nil {
		users = usersOf(c.Users, users[0], r)
	}
	accounts := accounts{root: root}
	for _, g := range groupsOf(c.Groups, r) {
		accounts.group(g.name, 0, false)
		for _, m := range g.members {
			if _, there := accounts.ids("etc/passwd")[m]; there {
				accounts.join(g.name, m)
			} else {
				r.ignore("groups: %s is no member of %s: groups are made before users, so name the group in the user's groups", m, g.name)
			}
		}
	}
	shared, instead := slices.Concat(i.PublicKeys, c.Keys), nobody
	for _, u := range users {
		if u.name == "root" {
			accounts.change(u)
			addKeys(root, rootUser, u.keys)
			continue
		}
		if err := accounts.add(u, r); err != nil {
			r.ignore("the user %q is not created: %v", u.name, err)
			continue
		}
		k := u.keys
		if u.isDefault {
			k = slices.Concat(shared, k)
			instead = u.name
		}
		addKeys(root, accounts.known(u), k)
	}
	if instead != nobody || !hasNamed(c.Users) {
		addRootKeys(root, shared, c.DisableRoot, instead)
	}
}

// nobody stands for the default user where there is none (cloud-init, module "SSH").
const nobody = "NONE"

// hasNamed reports whether users have an entry with a name. The keys of the superuser are lost then where
// there is no default user: cloud-init takes the entry's name away when it makes the users, and takes
// the entry for the default user, which is not there, when it writes keys.
func hasNamed(n *yaml.Node) bool {
	if n == nil || n.Kind != yaml.SequenceNode {
		return false
	}
	return slices.ContainsFunc(n.Content, func(e *yaml.Node) bool {
		values, err := fields(e)
		_, named := values["name"]
		return err == nil && named
	})
}

// usersOf reads users in the order in which cloud-init creates them: a text with commas, a mapping
// by name, or a list of names and mappings, of which several may be of one user: the first that has
// a setting decides. The default user, whatever its place, comes last. What cannot be read is lost
// alone.
func usersOf(n *yaml.Node, d user, r *Result) (out []user) {
	var all []settings
	add := func(name string, values map[string]yaml.Node) {
		i := slices.IndexFunc(all, func(s settings) bool { return s.name == name })
		if i < 0 {
			all = append(all, settings{name, map[string]yaml.Node{}})
			i = len(all) - 1
		}
		for k, v := range values {
			if k = strings.TrimSpace(strings.ReplaceAll(k, "-", "_")); k == "name" {
				continue
			}
			if _, set := all[i].values[k]; !set { // the first wins
				all[i].values[k] = v
			}
		}
	}
	switch v := value(n).(type) {
	case string:
		for _, name := range slices.Sorted(maps.Keys(setOf(words(n)))) {
			add(name, nil)
		}
	case *yaml.Node:
		if v.Kind == yaml.MappingNode {
			usersByName(v, r, add)
			break
		}
		for i, e := range v.Content {
			if _, isName := value(e).(string); isName || e.Kind == yaml.SequenceNode {
				for _, name := range words(e) {
					add(name, nil)
				}
				continue
			}
			values, err := fields(e)
			if err != nil {
				r.ignore("users[%d] is not created: %v", i, err)
				continue
			}
			name, named := values["name"]
			if !named {
				name = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "default"}
			}
			add(text(&name), values)
		}
	default:
		r.ignore("users is not applied: line %d: it is no list", n.Line)
	}
	isDefault := func(s settings) bool { return s.name == "default" }
	if at := slices.IndexFunc(all, isDefault); at >= 0 {
		named := slices.IndexFunc(all, func(s settings) bool { return s.name == d.name })
		last := settings{"default", all[at].values}
		if named >= 0 {
			add("default", all[named].values)
			all = slices.Delete(all, named, named+1)
		}
		all = append(slices.DeleteFunc(all, isDefault), last)
	}
	for _, s := range all {
		u, err := userOf(s, r)
		if err != nil {
			r.ignore("the user %q is not created: %v", s.name, err)
			continue
		}
		if isDefault(s) {
			u = u.orDefault(d)
		}
		out = append(out, u)
	}
	return out
}

// usersByName reads users that are a mapping: a name has settings, or is true.
func usersByName(n *yaml.Node, r *Result, add func(string, map[string]yaml.Node)) {
	for k := 0; k+1 < len(n.Content); k += 2 {
		name, v := text(n.Content[k]), n.Content[k+1]
		values, err := fields(v)
		switch {
		case err == nil:
			add(name, values)
		case v.Kind == yaml.ScalarNode && isTrue(v):
			add(name, nil)
		case v.Kind != yaml.ScalarNode || value(v) == nil:
			r.ignore("users.%s is not created: %v", name, err)
		}
	}
}

// orDefault returns the default user with what user data add to it. They replace nothing of it but
// its groups.
func (u user) orDefault(d user) user {
	if len(u.groups) > 0 {
		d.groups = u.groups
	}
	d.homeDir, d.primaryGroup, d.uid, d.system, d.homeless, d.keys = u.homeDir, u.primaryGroup, u.uid, u.system, u.homeless, u.keys
	d.hashedPasswd, d.passwd, d.plainPasswd, d.unlocked = u.hashedPasswd, u.passwd, u.plainPasswd, u.unlocked
	return d
}

// userOf reads the settings of a user. Texts must be texts, and booleans are what Python takes for
// true: lock_passwd "false" locks.
func userOf(s settings, r *Result) (u user, err error) {
	u.name = s.name
	texts := map[string]*string{
		"gecos": &u.gecos, "homedir": &u.homeDir, "shell": &u.shell, "primary_group": &u.primaryGroup, "passwd": &u.passwd, "hashed_passwd": &u.hashedPasswd,
	}
	for _, k := range slices.Sorted(maps.Keys(s.values)) {
		n := s.values[k]
		if to, is := texts[k]; is {
			v, isText := value(&n).(string)
			if !isText && value(&n) != nil {
				r.ignore("%s of %s is not set: line %d: it is no text", k, s.name, n.Line)
			}
			*to = v
			continue
		}
		switch k {
		case "groups":
			u.groups = groupNames(&n)
		case "sudo":
			if truth(&n) {
				u.sudo = scalars(&n)
			}
		case "ssh_authorized_keys":
			u.keys = scalars(&n)
		case "plain_text_passwd":
			u.plainPasswd = truth(&n)
		case "lock_passwd":
			u.unlocked = !truth(&n)
		case "system":
			u.system = truth(&n)
		case "uid":
			if u.uid, err = strconv.Atoi(strings.TrimSpace(text(&n))); err != nil || u.uid < 0 {
				return u, fmt.Errorf("uid %q: give a number", text(&n))
			}
		case "no_user_group":
			u.groupless = truth(&n)
		case "expiredate":
			if n.Tag == "!!timestamp" {
				r.ignore("expiredate of %s is not set: line %d: it is no text: quote it", s.name, n.Line)
			} else if u.expires, err = daysOf(&n); err != nil {
				return u, err
			}
		case "selinux_user":
			if truth(&n) {
				return u, fmt.Errorf("selinux_user: there is no SELinux here")
			}
		case "inactive": // as useradd gets it: texts alone
			if v, isText := value(&n).(string); isText && v != "" {
				if _, err := strconv.Atoi(v); err != nil {
					return u, fmt.Errorf("inactive %q: give a number of days as a text", v)
				}
				u.inactive = v
			} else if truth(&n) {
				r.ignore("inactive of %s is not set: line %d: it is no text", s.name, n.Line)
			}
		case "no_create_home":
			u.homeless = truth(&n)
		case "no_log_init": // there is no log
		default:
			r.ignore("%s of %s is not applied: there is no such setting here", k, s.name)
		}
	}
	return u, nil
}

// daysOf returns the day of an expiry date, as shadow(5) counts.
func daysOf(n *yaml.Node) (string, error) {
	text, isText := value(n).(string)
	if !isText || text == "" {
		return "", nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return "", fmt.Errorf("expiredate %q: give a date such as 2032-09-01", text)
	}
	return strconv.FormatInt(day.Unix()/(24*60*60), 10), nil
}

// groupNames returns the groups of a user: a text with commas, a list, or the keys of a mapping.
func groupNames(n *yaml.Node) (out []string) {
	if n.Kind != yaml.MappingNode {
		return words(n)
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		out = append(out, text(n.Content[k]))
	}
	return out
}

// group is an entry of groups.
type group struct {
	name    string
	members []string
}

// groupsOf reads groups: a text with commas, or a list of names, or of mappings from a name to its
// members. What cannot be read is lost alone.
func groupsOf(n *yaml.Node, r *Result) (out []group) {
	if n == nil {
		return nil
	}
	add := func(name string, members []string) {
		i := slices.IndexFunc(out, func(g group) bool { return g.name == name })
		if i < 0 {
			out = append(out, group{name: name})
			i = len(out) - 1
		}
		out[i].members = slices.Sorted(maps.Keys(setOf(slices.Concat(out[i].members, members))))
	}
	entries := n.Content
	if n.Kind != yaml.SequenceNode {
		entries = []*yaml.Node{n}
	}
	for _, e := range entries {
		_, isText := value(e).(string)
		switch {
		case e.Kind == yaml.MappingNode:
			for k := 0; k+1 < len(e.Content); k += 2 {
				add(text(e.Content[k]), words(e.Content[k+1]))
			}
		case isText:
			for name := range strings.SplitSeq(strings.TrimSpace(text(e)), ",") {
				if strings.TrimSpace(name) != name {
					r.ignore("groups: line %d: the group %q is not created: drop the blanks", e.Line, name)
				} else if name != "" {
					add(name, nil)
				}
			}
		default:
			r.ignore("groups: line %d is not created: it is no name", e.Line)
		}
	}
	return out
}

func setOf(words []string) map[string]bool {
	out := map[string]bool{}
	for _, w := range words {
		out[w] = true
	}
	return out
}

// words returns the names of a list, or of one text with commas.
func words(n *yaml.Node) (out []string) {
	for _, s := range scalars(n) {
		for w := range strings.SplitSeq(s, ",") {
			if w = strings.TrimSpace(w); w != "" {
				out = append(out, w)
			}
		}
	}
	return out
}

// commonGroup is the group of users that have none of their own (useradd(8), GROUP).
const commonGroup = "users"

// group returns the name of the primary group.
func (u user) group() string {
	if u.primaryGroup == "" && u.groupless {
		return commonGroup
	}
	return cmp.Or(u.primaryGroup, u.name)
}

func (u user) home() string {
	if u.homeDir != "" {
		return u.homeDir
	}
	return "/home/" + u.name
}

// rootUser is the superuser, who is there.
var rootUser = user{name: "root", homeDir: "/root"}

// addKeys lets the keys log in to an account.
func addKeys(root Root, u user, keys []string) {
	if len(keys) == 0 {
		return
	}
	dir := rel(u.home()) + "/.ssh"
	root[dir] = File{Mode: fs.ModeDir | 0o700, Owner: u.name, Group: u.group()}
	name := dir + "/authorized_keys"
	root.append(name, 0o600, strings.Join(keys, "\n")+"\n")
	f := root[name]
	f.Owner, f.Group = u.name, u.group()
	root[name] = f
}

// addRootKeys gives the superuser the shared keys. With disable_root, the default, a login
// with them ends with the name of the account to use instead.
func addRootKeys(root Root, keys []string, disable bool, instead string) {
	var out []string
	for _, k := range keys {
		if disable {
			k = fmt.Sprintf(`no-port-forwarding,no-agent-forwarding,no-X11-forwarding,command="echo 'log in as %s, not as root'; exit 142" %s`, instead, k)
		}
		out = append(out, k)
	}
	addKeys(root, rootUser, out)
}
