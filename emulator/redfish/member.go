package redfish

import "bytes"

// member is a property of a body as it is written: its name without quotes, and
// its value.
type member struct{ name, value []byte }

// members are those of an object without its braces, appended to others; false
// when it is written as encode writes none: with spaces, or with names that need
// escapes.
func members(all []member, text []byte) ([]member, bool) {
	for rest := text; len(rest) > 0; {
		if rest[0] != '"' {
			return all, false
		}
		end := 1 + bytes.IndexByte(rest[1:], '"')
		if end == 0 || len(rest) < end+3 || rest[end+1] != ':' || bytes.IndexByte(rest[:end], '\\') >= 0 {
			return all, false
		}
		name := rest[1:end]
		rest = rest[end+2:]
		size := extent(rest)
		if size == 0 {
			return all, false
		}
		all = append(all, member{name, rest[:size:size]})
		if rest = rest[size:]; len(rest) == 1 || len(rest) > 0 && rest[0] != ',' {
			return all, false
		} else if len(rest) > 0 {
			rest = rest[1:]
		}
	}
	return all, true
}

// extent is the size of the value that a text begins with; 0 when it begins
// with none.
func extent(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			size := extentOfText(text[i:])
			if i += size - 1; size == 0 {
				return 0
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return 0
			} else if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	if depth > 0 {
		return 0
	}
	return len(text)
}

// extentOfText is the size of the string that a text begins with, with its
// quotes; 0 when it does not end.
func extentOfText(text []byte) int {
	for i := 1; ; i++ {
		next := bytes.IndexByte(text[i:], '"')
		if next < 0 {
			return 0
		}
		i += next
		escapes := 0
		for text[i-1-escapes] == '\\' { // the quote that it begins with stops this
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// plainText is a string that has no escapes; false for any other value.
func plainText(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return "", false
	}
	return string(value[1 : len(value)-1]), true
}
