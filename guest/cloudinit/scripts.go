package cloudinit

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
)

// RunScript is where the commands of runcmd are stored as a script.
const RunScript = "/" + instanceDir + "/scripts/runcmd"

// script is a script of the user data.
type script struct {
	path    string // without the leading slash
	content string
}

// byKind are the places of scripts that each have a kind of their own (cloud-init,
// "User-data scripts"). Those without are the scripts of an instance.
var byKind = map[string]string{
	scriptPerBoot: "var/lib/cloud/scripts/per-boot",
	scriptPerInst: "var/lib/cloud/scripts/per-instance",
	scriptOnce:    "var/lib/cloud/scripts/per-once",
	boothook:      instanceDir + "/boothooks",
}

// handled is what parts of user data or vendor data give.
type handled struct {
	doc     document
	scripts map[string][]script // by kind
}

// add adds the scripts of other parts behind those that are there.
func (h handled) add(others handled) {
	for kind, scripts := range others.scripts {
		h.scripts[kind] = append(h.scripts[kind], scripts...)
	}
}

// handle reads parts. dir is the place of scripts below the instance's, and vars gives the variables of
// templates.
func handle(parts []part, dir string, vars func() dict, r *Result) handled {
	h, work := handled{doc: document{}, scripts: map[string][]script{}}, 0
	for _, p := range parts {
		if p.kind == jinja {
			var ok bool
			if p, ok = p.rendered(vars(), &work, r); !ok {
				continue
			}
		}
		h.part(p, dir, r)
	}
	return h
}

// rendered renders a template. The result must be a cloud-config or a script: cloud-init knows no other
// templates (JinjaTemplatePartHandler).
func (p part) rendered(vars dict, work *int, r *Result) (part, bool) {
	text, missing, err := render(string(p.content), vars, work)
	if err != nil {
		r.ignore("%s is not applied: its template: %v", p.label, err)
		return p, false
	}
	for _, name := range missing {
		r.ignore("%s: its template has a variable that there is not: %s", p.label, name)
	}
	if p.content = []byte(text); text == "" {
		return p, false
	}
	if p.kind = kindOf(p.content); p.kind != cloudConfig && p.kind != shellScript {
		r.ignore("%s is not applied: a template makes a cloud-config or a script, and this begins with neither's header", p.label)
		return p, false
	}
	return p, true
}

func (h handled) part(p part, dir string, r *Result) {
	switch {
	case p.kind == cloudConfig:
		h.doc.merge(p, r)
	case len(p.content) == 0: // cloud-init overlooks it
	case applied[p.kind]:
		name := cleanName(p.name)
		if strings.Trim(name, ".") == "" {
			r.ignore("%s is not applied: %q is no name for a file", p.label, p.name)
			return
		}
		s := script{path: path.Join(cmp.Or(byKind[p.kind], instanceDir+"/"+dir), name), content: withoutCR(p.content)}
		if p.kind == boothook {
			s.content = strings.TrimLeft(strings.TrimPrefix(s.content, "#cloud-boothook"), " \t\r\n\v\f")
		}
		h.scripts[p.kind] = append(h.scripts[p.kind], s)
	default:
		r.ignore("%s is not applied: %s", p.label, unapplied[p.kind])
	}
}

// cleanName returns the name of a file for that of a part (cloud-init, util.clean_filename).
func cleanName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '/':
			return '_'
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_-.()", c):
			return c
		}
		return -1
	}, name)
}

// withoutCR returns a text with the line ends of Unix, if the first is one of DOS.
func withoutCR(text []byte) string {
	if first := bytes.IndexByte(text, '\n'); first > 0 && text[first-1] == '\r' {
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	return string(text)
}

// commands stores the scripts and the commands of runcmd where cloud-init does, and lists
// those to execute in its order: those of a directory by their names.
func (c *config) commands(user, vendor handled, i Instance, root Root, r *Result) {
	r.Boot, r.Run = c.Boot, c.Run
	put := func(scripts []script) (paths []string) {
		for _, s := range scripts {
			root.write(s.path, 0o700, s.content)
			if name := "/" + s.path; !slices.Contains(paths, name) {
				paths = append(paths, name)
			}
		}
		return paths
	}
	of := func(kind string) []string {
		return slices.Sorted(slices.Values(put(slices.Concat(user.scripts[kind], vendor.scripts[kind]))))
	}
	if r.Hooks = put(slices.Concat(user.scripts[boothook], vendor.scripts[boothook])); len(r.Hooks) > 0 {
		r.HookEnv = []string{"INSTANCE_ID=" + i.ID}
	}
	r.BootScripts = of(scriptPerBoot)
	r.Scripts = slices.Concat(slices.Sorted(slices.Values(put(vendor.scripts[shellScript]))), of(scriptOnce), of(scriptPerInst))
	own := put(user.scripts[shellScript])
	if len(c.Run) > 0 {
		root.write(RunScript[1:], 0o700, "#!/bin/sh\n"+strings.Join(c.Run, "\n")+"\n")
		if !slices.Contains(own, RunScript) {
			own = append(own, RunScript)
		}
	}
	r.Scripts = append(r.Scripts, slices.Sorted(slices.Values(own))...)
}
