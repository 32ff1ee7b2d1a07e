package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// findRules lists the rules of a file of manifests in the order of their places: those of CEL in a
// CustomResourceDefinition (x-kubernetes-validations) and the validations of a
// ValidatingAdmissionPolicy. The mutation of a rule is that all objects fulfil it: a policy
// without validations is invalid, which is no test's merit.
func findRules(name string, src []byte) ([]Mutation, error) {
	f := &ruleFinder{name: name, lines: bytes.SplitAfter(src, []byte("\n"))}
	for d := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var document yaml.Node
		if err := d.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.visit(&document)
	}
	return f.found, f.err
}

type ruleFinder struct {
	name  string
	lines [][]byte // with their ends
	found []Mutation
	err   error
}

func (f *ruleFinder) visit(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch key := n.Content[i]; key.Value {
			case "x-kubernetes-validations":
				f.each(n.Content[i+1], "rule")
			case "validations":
				f.each(n.Content[i+1], "expression")
			}
		}
	}
	for _, c := range n.Content {
		f.visit(c)
	}
}

// each adds the rules of a list, which are the values of a key.
func (f *ruleFinder) each(list *yaml.Node, key string) {
	for _, item := range list.Content {
		for i := 0; i+1 < len(item.Content); i += 2 {
			if item.Content[i].Value == key {
				f.add(item, item.Content[i], item.Content[i+1])
			}
		}
	}
}

// add adds the rule whose text is the value of a key of a mapping. The text ends before the first
// line that is indented no more than the key.
func (f *ruleFinder) add(item, key, value *yaml.Node) {
	if item.Style&yaml.FlowStyle != 0 {
		f.err = errors.Join(f.err, fmt.Errorf("%s:%d: a rule on one line with braces: write each key on a line of its own", f.name, key.Line))
		return
	}
	end := value.Line // index of the line behind that of the value's beginning
	for end < len(f.lines) {
		text := bytes.TrimLeft(f.lines[end], " ")
		if len(bytes.TrimSpace(text)) > 0 && len(f.lines[end])-len(text) < key.Column {
			break
		}
		end++
	}
	from := f.offset(key.Line-1) + key.Column - 1
	f.found = append(f.found, Mutation{
		File: f.name, Line: key.Line, Column: key.Column,
		Change: fmt.Sprintf("%s %s is left out", key.Value, shorten(strings.Join(strings.Fields(value.Value), " "))),
		edits: []edit{{
			at: from, until: f.offset(end),
			text: key.Value + `: "true"` + strings.Repeat("\n", end-key.Line+1), // lines keep their numbers
		}},
	})
}

// offset returns the offset of a line, counted from 0, in the file.
func (f *ruleFinder) offset(line int) (at int) {
	for _, l := range f.lines[:line] {
		at += len(l)
	}
	return at
}

// rules lists the rules below the folders of a family.
func (t *tester) rules(f Family, only string) (all []candidate, err error) {
	for _, folder := range f.Rules {
		err := filepath.WalkDir(filepath.Join(t.root, folder), func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(at) != ".yaml" {
				return err
			}
			src, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(t.root, at)
			if err != nil {
				return err
			}
			found, err := findRules(filepath.ToSlash(name), src)
			for _, m := range found {
				if m.is(only) {
					all = append(all, candidate{m, f.RuleSuites})
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("rules of the family %s: %w", f.Name, err)
		}
	}
	return all, nil
}

// ruleShare says how many mutations of rules are drawn: one of so many.
const ruleShare = 5

// mix merges two orders of candidates: each ruleShare-th is a rule, as long as there are both.
func mix(code, rules []candidate) (all []candidate) {
	for len(code) > 0 && len(rules) > 0 {
		n := min(ruleShare-1, len(code))
		all = append(append(all, code[:n]...), rules[0])
		code, rules = code[n:], rules[1:]
	}
	return slices.Concat(all, code, rules)
}
