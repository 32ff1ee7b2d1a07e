package rack

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// place is where a field is said.
type place struct {
	line  int
	value string // of a scalar
}

// maxPlaces bounds how many fields are looked at: aliases let a short text have
// very many.
const maxPlaces = 1 << 16

// places tells where every field is.
func places(data []byte) map[string]place {
	at := map[string]place{}
	var walk func(field string, n *yaml.Node, depth int)
	walk = func(field string, n *yaml.Node, depth int) {
		if len(at) >= maxPlaces || depth > 100 {
			return
		}
		switch n.Kind {
		case yaml.DocumentNode:
			for _, c := range n.Content {
				walk(field, c, depth+1)
			}
		case yaml.AliasNode:
			walk(field, n.Alias, depth+1)
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name := n.Content[i].Value
				if name == "<<" {
					walk(field, n.Content[i+1], depth+1)
					continue
				}
				if field != "" {
					name = field + "." + name
				}
				at[name] = place{n.Content[i].Line, n.Content[i+1].Value}
				walk(name, n.Content[i+1], depth+1)
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				name := fmt.Sprintf("%s[%d]", field, i)
				at[name] = place{c.Line, c.Value}
				walk(name, c, depth+1)
			}
		}
	}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) == nil {
		walk("", &doc, 0)
	}
	return at
}

// innermost is the field of a line that holds a value as the decoder quotes it,
// or else the innermost field of the line.
func innermost(at map[string]place, line int, quoted string) string {
	best, fits := "", false
	value, cut := strings.CutSuffix(strings.Trim(quoted, "`"), "...")
	for f, p := range at {
		if p.line != line {
			continue
		}
		fit := p.value != "" && (p.value == value || cut && strings.HasPrefix(p.value, value))
		longer := len(f) > len(best) || len(f) == len(best) && f < best
		if fit && !fits || fit == fits && longer {
			best, fits = f, fit
		}
	}
	return best
}

var (
	lineOf  = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)`)
	unknown = regexp.MustCompile(`^field (\S+) not found in type (\w+\.\w+)`)
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
	at := places(data)
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
			p.Field, p.Text = innermost(at, p.Line, m[1]), fmt.Sprintf("%s is no %s", m[1], kinds[m[2]])
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
	"int": "whole number", "uint64": "whole number from 0 up", "float64": "number", "bool": "yes or no: write true or false",
	"string": "text", "rack.Speed": "speed", "rack.Listen": "address",
	"fault.Duration": "duration, such as 90s or 2m, at most a year",
	"fault.Latency":  "latency, such as 200ms", "fault.Limit": "rate, such as 10/s", "fault.Cut": "part of a body, such as 50%",
	"[]rack.Group": "list of hosts", "[]rack.Account": "list of accounts", "[]rack.Rack": "list of racks", "[]fault.Rule": "list of faults",
	"[]string":   "list of texts",
	"[]int":      "list of whole numbers",
	"rack.IPMI":  "IPMI, such as {suites: [17, 3]}",
	"rack.Group": "group of hosts, such as {profile: generic, count: 1}", "rack.Account": "account",
	"rack.Rack": "rack, such as {name: r1, hosts: [{count: 1}]}", "fault.Rule": "fault, such as {bmc: node-0, status: 503}",
	"rack.Timings": "timings, such as {post: 20s}", "fault.Values": "values by their places, such as {/Status/Health: null}",
	"rack.Lab": "lab: begin with kind: " + Kind,
}

// known lists the fields of a type.
func known(name string) string {
	for _, v := range []any{Lab{}, Group{}, Account{}, Rack{}, Timings{}, IPMI{}, fault.Rule{}} {
		if t := reflect.TypeOf(v); t.String() == name {
			var tags []string
			for i := range t.NumField() {
				tags = append(tags, t.Field(i).Tag.Get("yaml"))
			}
			return strings.Join(tags, ", ")
		}
	}
	return "those in the documentation"
}
