package cloudinit

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// archive reads a #cloud-config-archive: a list of parts, each a text, or a mapping with content,
// type, filename and headers such as Merge-Type. An entry that cannot be read is lost alone. What
// an entry contains is not split further (cloud-init, "Cloud config archive").
func (s *splitter) archive(text []byte, label string) {
	n, err := loadYAML(text)
	if err == nil && n != nil && n.Kind != yaml.SequenceNode {
		err = fmt.Errorf("line %d: it is no list", n.Line)
	}
	if err != nil {
		s.r.ignore("%s is not applied: %v", label, err)
		return
	}
	if n == nil {
		return
	}
	for i, e := range n.Content {
		if s.full {
			return
		}
		p, err := entryOf(e)
		if err != nil {
			s.r.ignore("entry %d of %s is not applied: %v", i+1, label, err)
			continue
		}
		s.add(p)
	}
}

// binary is the tag of bytes in base64 (YAML's type "binary").
const binary = "!!binary"

// entryOf reads an entry of an archive.
func entryOf(n *yaml.Node) (part, error) {
	content := n
	values := map[string]*yaml.Node{}
	switch _, isText := value(n).(string); {
	case n.Kind == yaml.MappingNode:
		content = nil
		for k := 0; k+1 < len(n.Content); k += 2 {
			values[strings.ToLower(n.Content[k].Value)] = n.Content[k+1]
			if n.Content[k].Value == "content" {
				content = n.Content[k+1]
			}
		}
	case !isText || n.Tag == binary:
		return part{}, fmt.Errorf("line %d: it is no text or mapping", n.Line)
	}
	p := part{kind: cloudConfig}
	if content != nil {
		body, isText := value(content).(string)
		if !isText {
			return part{}, fmt.Errorf("line %d: content: %w", content.Line, errNoText)
		}
		p.content = []byte(body)
		if content.Tag == binary {
			p.kind = "application/octet-stream"
		}
	}
	if known := kindOf(p.content); known != "" {
		p.kind = known
	}
	for key, to := range map[string]*string{"type": &p.kind, "filename": &p.name, "merge-type": &p.merge, "launch-index": &p.launch} {
		v := values[key]
		if key == "merge-type" && (v == nil || !truth(v)) {
			v = values["x-merge-type"]
		}
		if v == nil || key == "type" && !truth(v) {
			continue
		}
		given, err := aText(v)
		if err != nil {
			return part{}, fmt.Errorf("%s: %w", key, err)
		}
		*to = given
	}
	if strings.Count(p.kind, "/") == 0 {
		return part{}, fmt.Errorf("type %q is no MIME type: give one such as %s", p.kind, cloudConfig)
	}
	p.kind = strings.ToLower(p.kind)
	return p, nil
}
