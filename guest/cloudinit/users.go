package cloudinit

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DefaultUser is the account that "default" in users means, and that gets the public keys
// of the data source.
const DefaultUser = "debian"

// user is an entry of users (cloud-init, module "Users and groups").
type user struct {
	Name         string    `yaml:"name"`
	Gecos        string    `yaml:"gecos"`
	HomeDir      string    `yaml:"homedir"`
	Shell        string    `yaml:"shell"`
	PrimaryGroup string    `yaml:"primary_group"`
	Groups       yaml.Node `yaml:"groups"`
	Sudo         yaml.Node `yaml:"sudo"`
	Keys         yaml.Node `yaml:"ssh_authorized_keys"`
	HashedPasswd string    `yaml:"hashed_passwd"`
	Passwd       string    `yaml:"passwd"`
	PlainPasswd  string    `yaml:"plain_text_passwd"`
	LockPasswd   *bool     `yaml:"lock_passwd"`
	NoHome       bool      `yaml:"no_create_home"`
	System       bool      `yaml:"system"`
	UID          int       `yaml:"uid"`
	isDefault    bool
}

// defaultUser is the account of Debian's images.
func defaultUser() user {
	u := user{Name: DefaultUser, Gecos: "Debian", Shell: "/bin/bash", isDefault: true}
	u.Groups = yaml.Node{Kind: yaml.ScalarNode, Value: "adm, sudo"}
	u.Sudo = yaml.Node{Kind: yaml.ScalarNode, Value: "ALL=(ALL) NOPASSWD:ALL"}
	return u
}

// users creates the accounts and writes the keys that may log in to them.
func (c *config) users(i Instance, root Root, r *Result) {
	users := []user{defaultUser()}
	if c.Users != nil {
		var err error
		if users, err = usersOf(c.Users); err != nil {
			r.ignore("users is not applied: %v", err)
			return
		}
	}
	accounts := accounts{root: root, nextUID: 1000, nextSystem: 999}
	for name, members := range groupsOf(c.Groups) {
		accounts.group(name, 0)
		for _, m := range members {
			accounts.join(name, m)
		}
	}
	shared := slices.Concat(i.PublicKeys, c.Keys)
	for _, u := range users {
		if u.Name == "root" {
			addKeys(root, "root", "root", scalars(&u.Keys))
			continue
		}
		if err := accounts.add(u, r); err != nil {
			r.ignore("the user %q is not created: %v", u.Name, err)
			continue
		}
		k := scalars(&u.Keys)
		if u.isDefault {
			k = slices.Concat(shared, k)
			addRootKeys(root, shared, c.DisableRoot, u.Name)
		}
		addKeys(root, u.Name, rel(u.home()), k)
	}
}

// usersOf decodes users: "default", names, or mappings.
func usersOf(n *yaml.Node) (out []user, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: it is no list", n.Line)
	}
	for _, e := range n.Content {
		switch {
		case e.Kind == yaml.ScalarNode && e.Value == "default":
			out = append(out, defaultUser())
		case e.Kind == yaml.ScalarNode:
			out = append(out, user{Name: e.Value})
		default:
			var u user
			if err := e.Decode(&u); err != nil {
				return nil, err
			}
			out = append(out, u)
		}
	}
	return out, nil
}

// groupsOf decodes groups: a list of names, or of mappings from a name to its members.
func groupsOf(n *yaml.Node) map[string][]string {
	out := map[string][]string{}
	if n == nil {
		return out
	}
	entries := n.Content
	if n.Kind != yaml.SequenceNode {
		entries = []*yaml.Node{n}
	}
	for _, e := range entries {
		if e.Kind == yaml.MappingNode {
			for k := 0; k+1 < len(e.Content); k += 2 {
				out[e.Content[k].Value] = words(e.Content[k+1])
			}
			continue
		}
		for _, name := range words(e) {
			out[name] = nil
		}
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

func (u user) home() string {
	if u.HomeDir != "" {
		return u.HomeDir
	}
	return "/home/" + u.Name
}

// accounts writes /etc/passwd, /etc/shadow and /etc/group.
type accounts struct {
	root                Root
	nextUID, nextSystem int
}

func (a *accounts) add(u user, r *Result) error {
	if u.Name == "" || strings.ContainsAny(u.Name+u.home()+u.Shell+u.Gecos, ":\n") {
		return fmt.Errorf("a name, home, shell or gecos has a colon or is empty")
	}
	id := u.UID
	switch {
	case id != 0:
	case u.System:
		id = a.nextSystem
		a.nextSystem--
	default:
		id = a.nextUID
		a.nextUID++
	}
	primary := u.PrimaryGroup
	if primary == "" {
		primary = u.Name
	}
	gid := a.group(primary, id)
	for _, g := range words(&u.Groups) {
		a.group(g, 0)
		a.join(g, u.Name)
	}
	shell := u.Shell
	if shell == "" {
		shell = "/bin/sh"
	}
	a.root.append("etc/passwd", 0o644, fmt.Sprintf("%s:x:%d:%d:%s:%s:%s\n", u.Name, id, gid, u.Gecos, u.home(), shell))
	a.root.append("etc/shadow", 0o640, fmt.Sprintf("%s:%s:19000:0:99999:7:::\n", u.Name, u.password()))
	if u.PlainPasswd != "" {
		r.ignore("plain_text_passwd of %s is not set: give hashed_passwd", u.Name)
	}
	for _, rule := range scalars(&u.Sudo) {
		if rule != "" && rule != "false" {
			a.root.append("etc/sudoers.d/90-cloud-init-users", 0o440, u.Name+" "+rule+"\n")
		}
	}
	return nil
}

// password returns the second field of /etc/shadow: "!" before it locks the account.
func (u user) password() string {
	hash := u.HashedPasswd
	if hash == "" {
		hash = u.Passwd
	}
	if u.LockPasswd == nil || *u.LockPasswd || hash == "" {
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

// addKeys lets the keys log in to an account.
func addKeys(root Root, owner, home string, keys []string) {
	if len(keys) == 0 {
		return
	}
	name := home + "/.ssh/authorized_keys"
	root.append(name, 0o600, strings.Join(keys, "\n")+"\n")
	f := root[name]
	f.Owner, f.Group = owner, owner
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
	addKeys(root, "root", "root", out)
}
