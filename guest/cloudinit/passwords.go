package cloudinit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// password is an entry of chpasswd.
type password struct{ user, hash string }

// passwords are chpasswd, and ssh_pwauth (cloud-init, module "Set Passwords"). Passwords as text are not
// set: a hash is made of them by a server's own programs alone.
type passwords struct {
	of     []password
	expire bool   // they must be changed at the first login
	auth   string // PasswordAuthentication of sshd_config(5); "": it stays
}

// hashed matches an entry of the old form with a hash.
var hashed = regexp.MustCompile(`^\$(1|2a|2y|5|6)(\$.+){2}`)

// chpasswd reads the key chpasswd. An entry that is wrong is lost alone.
func (p *passwords) chpasswd(n *yaml.Node, r *Result) error {
	values, err := fields(n)
	if err != nil {
		return err
	}
	p.expire = true
	if v, is := values["expire"]; is {
		p.expire = isTrue(&v)
	}
	users, list := values["users"], values["list"]
	for _, e := range users.Content {
		if err := p.entry(e); err != nil {
			r.ignore("chpasswd.users: line %d: no password is set: %v", e.Line, err)
		}
	}
	lines := scalars(&list)
	if list.Kind == yaml.ScalarNode {
		lines = strings.Split(text(&list), "\n")
	}
	for _, line := range lines {
		user, word, is := strings.Cut(line, ":")
		switch {
		case line == "" || list.Tag == "!!null":
		case !is:
			r.ignore("chpasswd.list: no password is set: %q has no colon", line)
		case !hashed.MatchString(word) || strings.Contains(word, ":"):
			r.ignore("chpasswd.list: the password of %s is not set: it is a text: give a hash such as $6$...", user)
		default:
			p.of = append(p.of, password{user, word})
		}
	}
	return nil
}

// entry reads an entry of chpasswd.users.
func (p *passwords) entry(n *yaml.Node) error {
	values, err := fields(n)
	if err != nil {
		return err
	}
	name, word, kind := values["name"], values["password"], values["type"]
	switch {
	case name.Kind == 0:
		return fmt.Errorf("it has no name")
	case text(&kind) != "hash":
		return fmt.Errorf("that of %s is a text: give type: hash", text(&name))
	case word.Kind == 0:
		return fmt.Errorf("%s has no password", text(&name))
	}
	p.of = append(p.of, password{text(&name), text(&word)})
	return nil
}

// ssh reads the key ssh_pwauth: a boolean, or "unchanged".
func (p *passwords) ssh(n *yaml.Node, r *Result) error {
	word := strings.ToLower(strings.TrimSpace(text(n)))
	switch v := value(n).(type) {
	case nil:
		return nil
	case *yaml.Node:
		return fmt.Errorf("line %d: it is no boolean", v.Line)
	}
	switch {
	case slices.Contains([]string{"true", "1", "on", "yes"}, word):
		p.auth = "yes"
	case slices.Contains([]string{"false", "0", "off", "no"}, word):
		p.auth = "no"
	case word != "unchanged":
		r.ignore("ssh_pwauth is not applied: line %d: %q is not one of true, false, unchanged", n.Line, text(n))
	}
	return nil
}

// Files of sshd's configuration (sshd_config(5)).
const (
	sshConfig     = "etc/ssh/sshd_config"
	ownSSHConfig  = "etc/ssh/sshd_config.d/50-cloud-init.conf"
	sshConfigDirs = "/etc/ssh/sshd_config.d/*.conf"
)

// apply sets the passwords and what sshd does with them.
func (p *passwords) apply(root Root, r *Result) {
	a := accounts{root: root}
	for _, x := range p.of {
		if _, there := a.ids("etc/passwd")[x.user]; !there {
			r.ignore("chpasswd: the password of %s is not set: there is no such user", x.user)
			continue
		}
		a.shadow(x.user, func(fields []string) {
			const hash, changed = 1, 2 // shadow(5)
			fields[hash], fields[changed] = x.hash, "19000"
			if p.expire {
				fields[changed] = "0"
			}
		})
	}
	if p.auth == "" {
		return
	}
	f, _ := root.Get(sshConfig)
	name, mode := sshConfig, f.Mode
	for line := range strings.Lines(string(f.Content)) {
		if words := strings.Fields(line); len(words) == 2 && strings.EqualFold(words[0], "Include") && words[1] == sshConfigDirs {
			name, mode = ownSSHConfig, 0o600
		}
	}
	var there bool
	if f, there = root.Get(name); there {
		mode = f.Mode
	}
	const key = "PasswordAuthentication"
	var out strings.Builder
	found := false
	for line := range strings.Lines(string(f.Content)) {
		if words := strings.Fields(line); len(words) > 1 && strings.EqualFold(words[0], key) {
			line, found = words[0]+" "+p.auth+"\n", true
		}
		out.WriteString(line)
	}
	if !found {
		if text := out.String(); text != "" && !strings.HasSuffix(text, "\n") {
			out.WriteString("\n")
		}
		out.WriteString(key + " " + p.auth + "\n")
	}
	if mode == 0 {
		mode = 0o600
	}
	root.write(name, mode, out.String())
}
