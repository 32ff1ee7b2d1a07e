// Package natural orders texts with numbers in them, such as versions and URIs, as
// people do. It knows nothing of what the texts name.
package natural

import "strings"

// Compare compares two texts: runs of digits by value, everything else by byte; a
// prefix is less. It returns a negative number, 0 or a positive number.
func Compare(a, b string) int {
	for a != "" && b != "" {
		x, restA := leadingRun(a)
		y, restB := leadingRun(b)
		if digit(x[0]) && digit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
		}
		if n := strings.Compare(x, y); n != 0 {
			return n
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// leadingRun splits a text after its first run of digits or of other characters.
func leadingRun(s string) (head, rest string) {
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}
