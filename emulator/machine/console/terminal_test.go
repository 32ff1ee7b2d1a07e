package console

import "testing"

func TestPressDecodesKeySequences(t *testing.T) {
	for in, want := range map[string]Key{
		"\x1bOQ": KeySetup, "\x1b[12~": KeySetup, "\x7f": KeySetup, "\x1b[24~": KeyNetwork, "\x1b@": KeyNetwork,
		"\x1b[21~": KeyLeave, "\r": KeyEnter, "\x1b[99~": "", "x": "", "\x1b\x1bOQ": KeySetup,
	} {
		var term Terminal
		var got Key
		for _, b := range []byte(in) {
			next, key, changed := term.Press(b)
			if !changed && len(next.Escape) != len(term.Escape) {
				t.Errorf("Press(% x): changed = false, but Escape is % x", b, next.Escape)
			}
			term = next
			if key != "" {
				got = key
			}
		}
		if got != want {
			t.Errorf("keys of %q = %q, want %q", in, got, want)
		}
	}
}

func TestTypeEditsTheLine(t *testing.T) {
	tests := []struct {
		name, in, echo, line string
		asks                 Prompt
		last                 Input
	}{
		{name: "characters", in: "ab", echo: "ab", line: "ab"},
		{name: "backspace", in: "ab\x7f", echo: "ab\b \b", line: "a"},
		{name: "backspace over a control character", in: "\x01\x7f", echo: "^A\b \b\b \b"},
		{name: "backspace over a rune", in: "é\x7f", echo: "é\b \b"},
		{name: "kill", in: "ab\x15", echo: "ab\b \b\b \b"},
		{name: "enter", in: "ab\r", echo: "ab\r\n", last: Line},
		{name: "carriage return and line feed are one", in: "\r\n", echo: "\r\n"},
		{name: "interrupt", in: "a\x03", echo: "a^C\r\n", line: "a", last: Interrupt},
		{name: "end of file", in: "\x04", echo: "\r\n", last: EndOfFile},
		{name: "end of file in a shell", in: "\x04", echo: "logout\r\n", asks: AskCommand, last: EndOfFile},
		{name: "no end of file in a line", in: "a\x04", echo: "a", line: "a", last: Ignored},
		{name: "password", in: "ab\x7f", line: "a", asks: AskPassword},
	}
	for _, tt := range tests {
		term := Terminal{Asks: tt.asks}
		var echo, text string
		var in Input
		for _, b := range []byte(tt.in) {
			term, text, in = term.Type(b)
			echo += text
		}
		if echo != tt.echo || string(term.Line) != tt.line || in != tt.last {
			t.Errorf("%s: Type(%q): echo %q, line %q, input %d, want %q, %q, %d", tt.name, tt.in, echo, term.Line, in, tt.echo, tt.line, tt.last)
		}
	}
}
