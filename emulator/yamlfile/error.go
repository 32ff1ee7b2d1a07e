package yamlfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is one mistake in a file. A package that checks values returns it with
// Field and Text alone; File.Locate adds the rest.
type Error struct {
	File  string // "" when the value came from no file
	Line  int    // counted from 1; 0 when it is not known
	Field string // path from the top of the file: "hosts[1].count"; "" for the whole file
	Text  string // the value, what is allowed, and the fix
}

// Errorf returns an Error for a field.
func Errorf(field, text string, args ...any) *Error {
	return &Error{Field: field, Text: fmt.Sprintf(text, args...)}
}

// Error returns "rack.yaml:12: hosts[1].count: 0: must be 1 or more".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Text)
	return b.String()
}

// Within puts a field of a part into the whole: Within("faults[2]", "status") is
// "faults[2].status".
func Within(path, field string) string {
	switch {
	case path == "":
		return field
	case field == "", field[0] == '[':
		return path + field
	}
	return path + "." + field
}

// unlisted is how many mistakes a file has beyond those that are listed.
type unlisted struct {
	file  string
	count int
}

// Error returns "rack.yaml: and 12 more mistakes".
func (e *unlisted) Error() string {
	noun := "mistakes"
	if e.count == 1 {
		noun = "mistake"
	}
	return fmt.Sprintf("%s: and %d more %s", e.file, e.count, noun)
}
