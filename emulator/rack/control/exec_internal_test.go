package control

import (
	"bytes"
	"io"
	"testing"
)

// A terminal gets the last size of a window that changes faster than anybody takes the sizes.
func TestLastSizeOfAWindowWins(t *testing.T) {
	var in bytes.Buffer
	to := &frames{w: &in}
	for rows := range uint16(3) {
		if err := to.sendJSON(frameSize, Size{Rows: rows, Columns: 80}); err != nil {
			t.Fatal(err)
		}
	}
	sizes := make(chan Size, 1)
	_, typed := io.Pipe()
	receiveInput(&in, typed, sizes)
	if got, want := <-sizes, (Size{Rows: 2, Columns: 80}); got != want {
		t.Errorf("the size = %+v, want %+v", got, want)
	}
}
