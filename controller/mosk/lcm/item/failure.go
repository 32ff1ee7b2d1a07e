package item

import (
	"fmt"
	"strings"
	"unicode/utf8"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// MaxLine limits the text of Line, in bytes.
const MaxLine = 256

// Line returns the first line of a text that is not empty, of at most MaxLine bytes: a column
// of kubectl and the message of an Event have room for one.
func Line(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if len(line) <= MaxLine {
		return line
	}
	cut := MaxLine - len("…")
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}

// FailureMessage returns why an execution of an item has failed, in one line.
func FailureMessage(s lcmv1.StateItemStatus) string {
	if line := Line(s.Message); line != "" {
		return line
	}
	return fmt.Sprintf("exit code %d", s.ExitCode)
}

// FailureText names an item, the attempt that has failed, counted from 1, and the reason.
func FailureText(name string, attempt int, message string) string {
	return fmt.Sprintf("item %s, attempt %d: %s", name, attempt, message)
}
