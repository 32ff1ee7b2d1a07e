package rack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is one thing that is wrong with a definition.
type Problem struct {
	File  string // "" of a definition that came from no file
	Line  int    // 0 when it is not known
	Field string // hosts[1].count
	Text  string // what is wrong with it, and what to write instead
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString("rack: ")
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Parse reads a definition and puts in the defaults. The error joins a Problem
// for each thing that is wrong; file is for these.
func Parse(file string, data []byte) (Lab, error) {
	var l Lab
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&l); err != nil {
		return Lab{}, syntax(file, data, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Lab{}, &Problem{File: file, Text: "holds more than one document: a lab has one rack"}
	}
	at := lines(data)
	for i := range l.Hosts {
		if _, said := at[fmt.Sprintf("hosts[%d].count", i)]; !said {
			l.Hosts[i].Count = 1
		}
	}
	l.fill()
	var errs []error
	for _, p := range l.problems() {
		p.File = file
		for f := p.Field; p.Line == 0 && f != ""; f = parent(f) {
			p.Line = at[f]
		}
		errs = append(errs, p)
	}
	return l, errors.Join(errs...)
}

// Validate says all that is wrong with a definition.
func (l *Lab) Validate() error {
	var errs []error
	for _, p := range l.problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// label is a DNS label (RFC 1123, §2.1): host names become resource names.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func (l *Lab) problems() (out []*Problem) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, &Problem{Field: field, Text: fmt.Sprintf(text, args...)})
		}
	}
	isLabel := func(s string, most int) bool { return len(s) <= most && label.MatchString(s) }
	need(l.Kind == Kind, "kind", "%q: must be %s", l.Kind, Kind)
	need(isLabel(l.Name, 63), "name", "%q: use up to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit", l.Name)
	_, _, err := l.Speed.Factor()
	need(err == nil, "speed", "%q: use a form like 1x, 60x or max", l.Speed)

	need(len(l.Accounts) > 0, "accounts", "must not be empty")
	seen := map[string]bool{}
	for i, a := range l.Accounts {
		at := fmt.Sprintf("accounts[%d]", i)
		// IPMI v2.0 rev 1.1, §22.28 and §22.30: 16 and 20 bytes. A colon ends
		// the name in HTTP's basic authentication (RFC 7617, §2).
		need(printable(a.Name, 16) && a.Name != "" && !strings.Contains(a.Name, ":"), at+".name", "%q: use 1 to 16 printable characters without a colon", a.Name)
		need(printable(a.Password, 20), at+".password", "use at most 20 printable characters: IPMI takes no more")
		need(slices.Contains(roles, a.Role), at+".role", "%q: must be one of %s", a.Role, strings.Join(roles, ", "))
		need(!seen[a.Name], at+".name", "%q: is there twice: give each account its own name", a.Name)
		seen[a.Name] = true
	}
	_, ok := l.Admin()
	need(len(l.Accounts) == 0 || ok, "accounts", "none is an Administrator: the lab's controllers need one")

	need(len(l.Hosts) > 0, "hosts", "must not be empty: add - {profile: generic, count: 1}")
	total := 0
	for i, g := range l.Hosts {
		at := fmt.Sprintf("hosts[%d]", i)
		need(g.Profile != "", at+".profile", "must not be empty")
		need(g.Count >= 1, at+".count", "%d: must be 1 or more", g.Count)
		need(isLabel(g.NamePrefix, 50), at+".namePrefix", "%q: use up to 50 of a-z, 0-9 and -, beginning and ending with a letter or digit", g.NamePrefix)
		if g.Count > 0 {
			total += min(g.Count, MaxHosts+1)
		}
	}
	need(total <= MaxHosts, "hosts", "%d: a rack has at most %d", total, MaxHosts)
	return out
}

func printable(s string, most int) bool {
	return len(s) <= most && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// parent is the field that a field is in: hosts[1], hosts, "".
func parent(field string) string {
	return field[:max(0, strings.LastIndexAny(field, ".["))]
}

// lines tells the line of every field.
func lines(data []byte) map[string]int {
	at := map[string]int{}
	var walk func(field string, n *yaml.Node)
	walk = func(field string, n *yaml.Node) {
		switch n.Kind {
		case yaml.DocumentNode:
			for _, c := range n.Content {
				walk(field, c)
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name := n.Content[i].Value
				if field != "" {
					name = field + "." + name
				}
				at[name] = n.Content[i].Line
				walk(name, n.Content[i+1])
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				name := fmt.Sprintf("%s[%d]", field, i)
				at[name] = c.Line
				walk(name, c)
			}
		}
	}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) == nil {
		walk("", &doc)
	}
	return at
}

var (
	lineOf  = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)`)
	unknown = regexp.MustCompile(`^field (\S+) not found in type rack\.(\w+)`)
	wrong   = regexp.MustCompile(`^cannot unmarshal !!\w+ (.*) into (.*)`)
)

// syntax turns what the YAML decoder says into Problems.
func syntax(file string, data []byte, err error) error {
	if errors.Is(err, io.EOF) {
		return &Problem{File: file, Text: "is empty: begin with kind: " + Kind}
	}
	texts := []string{err.Error()}
	if te := (*yaml.TypeError)(nil); errors.As(err, &te) {
		texts = te.Errors
	}
	fields := map[int]string{}
	for f, n := range lines(data) {
		if len(f) > len(fields[n]) || len(f) == len(fields[n]) && f < fields[n] { // the innermost of a line
			fields[n] = f
		}
	}
	var errs []error
	for _, text := range texts {
		p := &Problem{File: file, Text: strings.TrimPrefix(text, "yaml: ")}
		if m := lineOf.FindStringSubmatch(text); m != nil {
			p.Line, _ = strconv.Atoi(m[1])
			p.Text = m[2]
		}
		if m := unknown.FindStringSubmatch(p.Text); m != nil {
			p.Field, p.Text = m[1], fmt.Sprintf("there is no such field: use one of %s", known(m[2]))
		} else if m := wrong.FindStringSubmatch(p.Text); m != nil {
			p.Field, p.Text = fields[p.Line], fmt.Sprintf("%s is no %s", m[1], kinds[m[2]])
			if kinds[m[2]] == "" {
				p.Text = fmt.Sprintf("%s does not belong here", m[1])
			}
		}
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// kinds are Go's types in a user's words.
var kinds = map[string]string{
	"int": "whole number", "uint64": "whole number from 0 up", "string": "text", "rack.Speed": "speed",
	"[]rack.Group": "list of hosts", "[]rack.Account": "list of accounts",
	"rack.Group": "group of hosts, such as {profile: generic, count: 1}", "rack.Account": "account",
	"rack.Lab": "lab: begin with kind: " + Kind,
}

// known lists the fields of a type.
func known(name string) string {
	for _, v := range []any{Lab{}, Group{}, Account{}} {
		if t := reflect.TypeOf(v); t.Name() == name {
			var tags []string
			for i := range t.NumField() {
				tags = append(tags, t.Field(i).Tag.Get("yaml"))
			}
			return strings.Join(tags, ", ")
		}
	}
	return "those in the documentation"
}
