package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// rackFile is as much of a rack file as describes one server with quirks.
type rackFile struct {
	Kind  string     `json:"kind"`
	Hosts []rackHost `json:"hosts"`
}

type rackHost struct {
	Profile string   `json:"profile,omitempty"`
	Count   int      `json:"count"`
	Quirks  []string `json:"quirks"`
}

// Quirks writes a rack file for labctl up -f with one server that has the quirks of
// the report. The profile is the model of a capture, or empty.
func Quirks(w io.Writer, d *Document, profile string) error {
	host := rackHost{Profile: profile, Count: 1, Quirks: []string{}}
	for _, q := range d.Quirks {
		text := q.Name
		for _, name := range slices.Sorted(maps.Keys(q.Values)) {
			text += " " + name + "=" + q.Values[name]
		}
		host.Quirks = append(host.Quirks, text)
	}
	b, err := yaml.Marshal(rackFile{Kind: "Lab", Hosts: []rackHost{host}})
	if err != nil {
		return fmt.Errorf("quirks: %w", err)
	}
	title := strings.NewReplacer("\n", " ", "\r", " ").Replace(d.Target.Title)
	_, err = fmt.Fprintf(w, "# One server with the quirks of %s, for labctl up -f.\n%s", title, b)
	return err
}
