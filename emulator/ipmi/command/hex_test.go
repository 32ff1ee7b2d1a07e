package command

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// unhex reads bytes as people write them: "00 08 5e".
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	must(t, err)
	return b
}

func tohex(b []byte) string { return fmt.Sprintf("% x", b) }
