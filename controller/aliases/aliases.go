// Package aliases bounds the values that aliases of a user's YAML repeat. A decoder shares the values
// of anchors, and a program that writes the value again, as JSON or as text, does not: a kilobyte of text
// becomes gigabytes. The package knows no document.
package aliases

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxBytes is the size of a document whose aliases are replaced by their values: its scalars,
// and 16 bytes for each value.
const maxBytes = 4 << 20

// Check returns an error when the aliases of the first document of a text make it large or endless, and
// when a text that may have aliases is no YAML: another decoder may take what this one does not. The
// error quotes nothing of the text.
func Check(text []byte) error {
	if !bytes.ContainsRune(text, '*') { // which is in front of each alias (YAML 1.2.2, §7.1)
		return nil
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return errors.New("it is no YAML")
	}
	return sizes{}.add(&doc)
}

// sizes are the sizes of nodes; that of a node that is being measured is negative.
type sizes map[*yaml.Node]int

func (s sizes) add(n *yaml.Node) error {
	if size, known := s[n]; known {
		if size < 0 {
			return fmt.Errorf("line %d: the value of an anchor contains its alias: write it out", n.Line)
		}
		return nil
	}
	s[n] = -1
	parts := n.Content
	if n.Alias != nil {
		parts = []*yaml.Node{n.Alias}
	}
	size := 16 + len(n.Value)
	for _, p := range parts {
		if err := s.add(p); err != nil {
			return err
		}
		if size += s[p]; size > maxBytes {
			return fmt.Errorf("line %d: with its aliases the document has more than %d bytes: repeat less", n.Line, maxBytes)
		}
	}
	s[n] = size
	return nil
}
