package clock

// Due is a heap of future events, earliest first, for container/heap.
type Due[T Dated[T]] []T

// Dated is an element of a Due.
type Dated[T any] interface {
	Before(T) bool
	Place() *int // index in the heap; -1 when it is in none
}

// Len implements heap.Interface.
func (d Due[T]) Len() int { return len(d) }

// Less implements heap.Interface.
func (d Due[T]) Less(i, j int) bool { return d[i].Before(d[j]) }

// Swap implements heap.Interface.
func (d Due[T]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	*d[i].Place(), *d[j].Place() = i, j
}

// Push implements heap.Interface.
func (d *Due[T]) Push(x any) {
	one := x.(T)
	*one.Place() = len(*d)
	*d = append(*d, one)
}

// Pop implements heap.Interface.
func (d *Due[T]) Pop() any {
	old := *d
	last := len(old) - 1
	one := old[last]
	*one.Place() = -1
	clear(old[last:]) // so that it can be freed
	*d = old[:last]
	return one
}
