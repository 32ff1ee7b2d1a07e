package idrac

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// profile is a server configuration profile [V: dell, omsdk; sushy, samples of
// exports].
type profile struct {
	XMLName    xml.Name    `xml:"SystemConfiguration"`
	Model      string      `xml:"Model,attr"`
	Tag        string      `xml:"ServiceTag,attr"`
	Time       string      `xml:"TimeStamp,attr"`
	Components []component `xml:"Component"`
}

// component is a part of the server, by its FQDD, with its settings.
type component struct {
	FQDD       string      `xml:"FQDD,attr" json:"FQDD"`
	Attributes []setting   `xml:"Attribute" json:"Attributes"`
	Components []component `xml:"Component" json:"Components,omitempty"`
}

// setting is an attribute of a component.
type setting struct {
	Name  string `xml:"Name,attr" json:"Name"`
	Value string `xml:",chardata" json:"Value"`
	Set   string `xml:"-" json:"Set On Import"` // "False": an import skips it
	Note  string `xml:"-" json:"Comment"`
}

func (c *component) set(name, value string) {
	c.Attributes = append(c.Attributes, setting{Name: name, Value: value, Set: "True", Note: "Read and Write"})
}

// json returns the profile in its JSON form.
func (p *profile) json() map[string]any {
	var all []any
	raw, _ := json.Marshal(p.Components) // cannot fail: all fields are strings
	_ = json.Unmarshal(raw, &all)
	return map[string]any{"SystemConfiguration": map[string]any{
		"Model": p.Model, "ServiceTag": p.Tag, "TimeStamp": p.Time, "Components": all,
		"Comments": []any{map[string]any{"Comment": "Export type is Normal,JSON"}},
	}}
}

// xml returns the profile in its XML form, without whitespace between elements.
func (p *profile) xml() string {
	raw, _ := xml.Marshal(p) // cannot fail: all fields are strings
	return string(raw)
}

// parseProfile reads a profile in JSON or XML.
func parseProfile(text string) (*profile, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		var in struct {
			SystemConfiguration *profile
		}
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			return nil, fmt.Errorf("idrac: profile: %w", err)
		}
		if in.SystemConfiguration == nil {
			return nil, errors.New("idrac: profile: SystemConfiguration is missing")
		}
		for i := range in.SystemConfiguration.Components {
			in.SystemConfiguration.Components[i].prune()
		}
		return in.SystemConfiguration, nil
	}
	if err := dense(text); err != nil {
		return nil, err
	}
	var p profile
	if err := xml.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("idrac: profile: %w", err)
	}
	return &p, nil
}

// prune removes the settings that an import skips.
func (c *component) prune() {
	left := c.Attributes[:0]
	for _, a := range c.Attributes {
		if !strings.EqualFold(a.Set, "False") {
			left = append(left, a)
		}
	}
	c.Attributes = left
	for i := range c.Components {
		c.Components[i].prune()
	}
}

// dense returns an error for whitespace between elements, with which an import
// fails [V: sushy, oem/dell].
func dense(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	var open []string
	blank := false
	for {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("idrac: profile: %w", err)
		}
		switch x := t.(type) {
		case xml.StartElement:
			if blank {
				return fmt.Errorf("idrac: profile: whitespace before %s: it must have none between its elements", x.Name.Local)
			}
			open, blank = append(open, x.Name.Local), false
		case xml.EndElement:
			open, blank = open[:len(open)-1], false
		case xml.CharData:
			blank = len(open) > 0 && open[len(open)-1] != "Attribute" && strings.TrimSpace(string(x)) == "" && len(x) > 0
		}
	}
}
