package sandbox

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errQuote is the error for a quotation mark without its second.
var errQuote = errors.New("unbalanced quotation marks")

// splitWords splits a value into words: quotation marks group, and a backslash begins an escape
// of C (systemd.syntax(7), "Quoting").
func splitWords(text string) ([]string, error) {
	words, err := splitQuoted(text)
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out, err
}

// word is a word of a value, and how it was written: a semicolon that stands alone is another one
// than "\;".
type word struct{ text, raw string }

func splitQuoted(text string) (out []word, err error) {
	var b strings.Builder
	quote, in, from := byte(0), false, 0
	end := func(i int) {
		if in {
			out = append(out, word{b.String(), text[from:i]})
		}
		b.Reset()
		in = false
	}
	for i := 0; i < len(text); {
		c := text[i]
		blank := c == ' ' || c == '\t' || c == '\n' || c == '\r'
		if !in && !blank {
			from = i
		}
		switch {
		case quote != 0 && c == quote:
			quote = 0
			i++
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
			i++
		case c == '\\' && i+1 < len(text):
			n := unescapeC(&b, text[i+1:])
			in = true
			i += 1 + n
		case quote == 0 && blank:
			end(i)
			i++
		default:
			b.WriteByte(c)
			in = true
			i++
		}
	}
	end(len(text))
	if quote != 0 {
		return out, errQuote
	}
	return out, nil
}

// simpleEscapes are those of one character (systemd.syntax(7), table "Supported escapes").
var simpleEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"', '\'': '\'', 's': ' ',
}

// unescapeC writes what an escape means, whose text begins behind the backslash, and returns how
// long that text is. An escape that is none stays as it is written.
func unescapeC(b *strings.Builder, text string) int {
	if c, ok := simpleEscapes[text[0]]; ok {
		b.WriteByte(c)
		return 1
	}
	number := func(from, digits, base int) (uint64, bool) {
		if len(text) < from+digits {
			return 0, false
		}
		n, err := strconv.ParseUint(text[from:from+digits], base, 32)
		return n, err == nil && n != 0
	}
	switch text[0] {
	case 'x':
		if n, ok := number(1, 2, 16); ok {
			b.WriteByte(byte(n))
			return 3
		}
	case 'u', 'U':
		digits := map[byte]int{'u': 4, 'U': 8}[text[0]]
		if n, ok := number(1, digits, 16); ok && n <= utf8.MaxRune {
			b.WriteRune(rune(n))
			return 1 + digits
		}
	default:
		if n, ok := number(0, 3, 8); ok && n < 256 {
			b.WriteByte(byte(n))
			return 3
		}
	}
	b.WriteByte('\\')
	_, size := utf8.DecodeRuneInString(text)
	b.WriteString(text[:size])
	return size
}
