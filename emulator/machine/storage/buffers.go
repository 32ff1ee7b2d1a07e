package storage

// buffers are what rows are read into and computed in, used again from row to
// row: to make them anew costs more than the arithmetic. They are one
// goroutine's.
type buffers struct {
	all   [][]byte
	taken int
	rows  [][]byte
}

// release takes everything back.
func (b *buffers) release() { b.taken = 0 }

// take gives a slice of n bytes that holds anything.
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

// row gives a list of n columns. There is but one.
func (b *buffers) row(n int) [][]byte {
	if cap(b.rows) < n {
		b.rows = make([][]byte, n)
	}
	b.rows = b.rows[:n]
	clear(b.rows)
	return b.rows
}
