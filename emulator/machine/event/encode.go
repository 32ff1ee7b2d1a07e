package event

import (
	"encoding/json"
	"time"
)

// AppendText appends what json.Marshal makes of a text. What is not plain is
// left to that.
func AppendText[T ~string](b []byte, text T) []byte {
	s := string(text)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			whole, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string has no other form
			}
			return append(b, whole...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// AppendTime appends what json.Marshal makes of a time; false when that makes
// nothing of it.
func AppendTime(b []byte, t time.Time) ([]byte, bool) {
	if y := t.Year(); y < 0 || y > 9999 {
		return b, false
	}
	return append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"'), true
}
