package firmware

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// maxParts is the largest number of parts of one kind in a machine. It bounds the
// length of a registry.
const maxParts = 256

// ParseRegistry reads an attribute registry from YAML. parts has how many of each
// part a machine has: a row with "each: nic" is repeated for each, with {n}
// replaced by the number of the part, counted from 1. file stands in messages; the
// error joins a yamlfile.Error for each mistake.
func ParseRegistry(file string, b []byte, parts map[string]int) (*Registry, error) {
	f, err := yamlfile.Read(file, b, "id: NAME.v1_0_0")
	if err != nil {
		return nil, err
	}
	r := new(Registry)
	if err := f.Decode(r); err != nil {
		return nil, err
	}
	if err := r.repeat(parts); err != nil {
		return nil, f.Locate(err)
	}
	if err := r.validate(); err != nil {
		return nil, f.Locate(err)
	}
	r.number()
	return r, nil
}

// repeat replaces each row that is there for a part by one row for each of these
// parts.
func (r *Registry) repeat(parts map[string]int) error {
	var errs []error
	count := func(field string, i int, each string) int {
		n, ok := parts[each]
		if !ok || n < 0 || n > maxParts {
			errs = append(errs, yamlfile.Errorf(fmt.Sprintf("%s[%d].each", field, i), "%q: must be a part of which a machine has up to %d: one of %s",
				each, maxParts, strings.Join(slices.Sorted(maps.Keys(parts)), ", ")))
			return 0
		}
		return n
	}
	r.Attributes = repeat(r.Attributes, func(i int, a *Attribute) int {
		a.row = i
		if a.Each == "" {
			return 1
		}
		return count("attributes", i, a.Each)
	}, func(a *Attribute, n string) {
		if a.Each == "" {
			return
		}
		for _, s := range []*string{&a.Name, &a.Display, &a.Help, &a.Warning} {
			*s = strings.ReplaceAll(*s, "{n}", n)
		}
		a.Each = ""
	})
	r.Dependencies = repeat(r.Dependencies, func(i int, d *Dependency) int {
		d.row = i
		if d.Each == "" {
			return 1
		}
		return count("dependencies", i, d.Each)
	}, func(d *Dependency, n string) {
		if d.Each == "" {
			return
		}
		d.For = strings.ReplaceAll(d.For, "{n}", n)
		d.Set.Attribute = strings.ReplaceAll(d.Set.Attribute, "{n}", n)
		d.If = slices.Clone(d.If)
		for i := range d.If {
			d.If[i].Attribute = strings.ReplaceAll(d.If[i].Attribute, "{n}", n)
		}
		d.Each = ""
	})
	r.Effects = repeat(r.Effects, func(i int, e *Effect) int {
		e.row = i
		if e.Each == "" {
			return 1
		}
		return count("effects", i, e.Each)
	}, func(e *Effect, n string) {
		if e.Each == "" {
			return
		}
		e.Attribute = strings.ReplaceAll(e.Attribute, "{n}", n)
		e.On = strings.ReplaceAll(e.On, "{n}", n)
		e.Each = ""
	})
	return errors.Join(errs...)
}

// repeat returns the rows, each as often as count says; fill puts the number of the
// copy into it.
func repeat[T any](rows []T, count func(i int, row *T) int, fill func(row *T, n string)) []T {
	var out []T
	for i, row := range rows {
		for n := range count(i, &row) {
			one := row
			fill(&one, strconv.Itoa(n+1))
			out = append(out, one)
		}
	}
	return out
}

// number gives menus and attributes without an order their place in the file.
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
