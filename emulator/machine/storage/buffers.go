package storage

// buffers holds the slices that rows are read into and computed in. They are
// reused from row to row, because allocating them costs more than the
// arithmetic. They belong to one goroutine.
type buffers struct {
	all   [][]byte
	taken int
	rows  [][]byte
}

// release makes all slices available again.
func (b *buffers) release() { b.taken = 0 }

// take returns a slice of n bytes with arbitrary content.
func (b *buffers) take(n int64) []byte {
	if b.taken == len(b.all) {
		b.all = append(b.all, nil)
	}
	if int64(cap(b.all[b.taken])) < n {
		b.all[b.taken] = make([]byte, n)
	}
	b.taken++
	return b.all[b.taken-1][:n]
}

// row returns a list of n columns. There is only one.
func (b *buffers) row(n int) [][]byte {
	if cap(b.rows) < n {
		b.rows = make([][]byte, n)
	}
	b.rows = b.rows[:n]
	clear(b.rows)
	return b.rows
}
