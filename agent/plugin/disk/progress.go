package disk

// progress combines the parts of the work into one percentage.
type progress struct {
	report   func(percent int)
	from, to int // range of the current part in percent
	reported int
	begun    bool
}

// next begins a part that ends at this percentage.
func (b *progress) next(to int) { b.from, b.to = b.to, to }

// part reports the progress of the current part; an unknown total is 0 or less.
func (b *progress) part(done, total int64) {
	percent := b.from
	if total > 0 {
		percent += int(float64(b.to-b.from) * float64(done) / float64(total))
	}
	if b.report == nil || (b.begun && percent <= b.reported) {
		return
	}
	b.reported, b.begun = percent, true
	b.report(percent)
}
