package disk

// progress turns the parts of the work into one percentage.
type progress struct {
	report   func(percent int)
	from, to int // percentages that the current part spans
	said     int
	begun    bool
}

// next begins a part that ends at the given percentage.
func (b *progress) next(to int) { b.from, b.to = b.to, to }

// part says how much of the current part is done; a total that is unknown is
// not above zero.
func (b *progress) part(done, total int64) {
	percent := b.from
	if total > 0 {
		percent += int(float64(b.to-b.from) * float64(done) / float64(total))
	}
	if b.report == nil || (b.begun && percent <= b.said) {
		return
	}
	b.said, b.begun = percent, true
	b.report(percent)
}
