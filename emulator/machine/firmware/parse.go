package firmware

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxParts bounds how many of a part a machine may have, and so how long a
// registry gets.
const maxParts = 256

// ParseRegistry reads an attribute registry from YAML for machines that have so
// many of each part: what says "each: nic" is there once for each, with {n}
// counting from 1. Its errors name each field that is wrong and what it must
// be.
func ParseRegistry(b []byte, parts map[string]int) (*Registry, error) {
	var doc any
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("firmware: registry: %w", err)
	}
	// By way of JSON, whose names the fields have.
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("firmware: registry: %w", err)
	}
	r := new(Registry)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, fmt.Errorf("firmware: registry: %w", err)
	}
	if err := r.spread(parts); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	r.number()
	return r, nil
}

// spread writes out what is there for each part.
func (r *Registry) spread(parts map[string]int) error {
	var err error
	count := func(field string, i int, each string) int {
		if each == "" {
			return 0
		}
		n, ok := parts[each]
		if (!ok || n < 0 || n > maxParts) && err == nil {
			err = fmt.Errorf("firmware: registry %s: %s[%d].each: must be a part that is counted, up to %d: not %q", r.ID, field, i, maxParts, each)
			return 0
		}
		return n
	}
	r.Attributes = spread(r.Attributes, func(i int, a Attribute) int { return count("attributes", i, a.Each) }, func(a *Attribute, n string) {
		for _, s := range []*string{&a.Name, &a.Display, &a.Help, &a.Warning} {
			*s = strings.ReplaceAll(*s, "{n}", n)
		}
		a.Each = ""
	})
	r.Dependencies = spread(r.Dependencies, func(i int, d Dependency) int { return count("dependencies", i, d.Each) }, func(d *Dependency, n string) {
		d.For = strings.ReplaceAll(d.For, "{n}", n)
		d.Set.Attribute = strings.ReplaceAll(d.Set.Attribute, "{n}", n)
		d.If = slices.Clone(d.If)
		for i := range d.If {
			d.If[i].Attribute = strings.ReplaceAll(d.If[i].Attribute, "{n}", n)
		}
		d.Each = ""
	})
	r.Effects = spread(r.Effects, func(i int, e Effect) int { return count("effects", i, e.Each) }, func(e *Effect, n string) {
		e.Attribute = strings.ReplaceAll(e.Attribute, "{n}", n)
		e.On = strings.ReplaceAll(e.On, "{n}", n)
		e.Each = ""
	})
	return err
}

// spread is rows with those that are there for each part repeated; those that
// are there once have a count of 0 and no {n}.
func spread[T interface{ once() bool }](rows []T, count func(int, T) int, fill func(*T, string)) []T {
	var out []T
	for i, row := range rows {
		if row.once() {
			out = append(out, row)
			continue
		}
		for n := range count(i, row) {
			one := row
			fill(&one, strconv.Itoa(n+1))
			out = append(out, one)
		}
	}
	return out
}

func (a Attribute) once() bool  { return a.Each == "" }
func (d Dependency) once() bool { return d.Each == "" }
func (e Effect) once() bool     { return e.Each == "" }

// number gives what has no order of its own that in which it is written.
func (r *Registry) number() {
	for i := range r.Menus {
		if r.Menus[i].Order == 0 {
			r.Menus[i].Order = i + 1
		}
	}
	for i := range r.Attributes {
		if r.Attributes[i].Order == 0 {
			r.Attributes[i].Order = i + 1
		}
	}
}
