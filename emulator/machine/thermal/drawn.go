package thermal

import (
	"slices"
	"time"
)

// Window is how far back the input power is recorded.
const Window = time.Minute

// Drawn is the input power up to a time, since the previous one.
type Drawn struct {
	Until time.Time `json:"until"`
	Watts float64   `json:"watts"`
}

// drawnBefore returns the recorded input power before now, when it changes.
func (v View) drawnBefore(now time.Time) []Drawn {
	old := slices.DeleteFunc(slices.Clone(v.state().Drawn), func(d Drawn) bool { return now.Sub(d.Until) >= Window })
	last, is := len(old)-1, v.Watts()
	if last >= 0 && old[last].Watts == is {
		old[last].Until = now
		return old
	}
	return append(old, Drawn{now, is})
}

// Usage holds the present, lowest, highest and mean input power over a period,
// in W.
type Usage struct{ Is, Least, Most, Mean float64 }

// Usage returns the input power over a period before now, of at most Window.
func (v View) Usage(now time.Time, over time.Duration) Usage {
	is := v.Watts()
	u := Usage{is, is, is, is}
	over = min(over, Window)
	if v.st == nil || over <= 0 {
		return u
	}
	from, joules := now.Add(-over), 0.0
	for _, d := range v.st.Drawn {
		if d.Until.After(from) {
			joules += d.Watts * d.Until.Sub(from).Seconds()
			u.Least, u.Most, from = min(u.Least, d.Watts), max(u.Most, d.Watts), d.Until
		}
	}
	joules += is * max(0, now.Sub(from).Seconds())
	u.Mean = joules / over.Seconds()
	return u
}
