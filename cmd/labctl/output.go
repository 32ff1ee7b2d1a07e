package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// format is the output format of a command.
type format string

const (
	table      format = "table"
	jsonFormat format = "json"
	yamlFormat format = "yaml"
)

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch v := format(s); v {
	case table, jsonFormat, yamlFormat:
		*f = v
		return nil
	}
	return fmt.Errorf("use table, json or yaml")
}

// print writes v as JSON or YAML, or the rows as a table.
func (f format) print(w io.Writer, v any, rows [][]string) error {
	switch f {
	case jsonFormat:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case yamlFormat:
		b, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}
