package sdr

import "math"

// Factors convert between a sensor's raw byte x and its reading y = (M·x +
// B·10^BExp)·10^Exp (IPMI v2.0 rev 1.1, §36.3). B is always 0 here.
type Factors struct {
	M      int16 // 10 bits
	Exp    int8  // 4 bits
	Signed bool  // the raw byte is in two's complement
}

// step returns the reading of one count.
func (f Factors) step() float64 { return scale(float64(f.M), int(f.Exp)) }

// scale returns x·10^exp, exactly where possible.
func scale(x float64, exp int) float64 {
	if exp < 0 {
		return x / math.Pow10(-exp)
	}
	return x * math.Pow10(exp)
}

// bounds returns the lowest and the highest raw value.
func (f Factors) bounds() (least, most float64) {
	if f.Signed {
		return math.MinInt8, math.MaxInt8
	}
	return 0, math.MaxUint8
}

// Raw returns the raw byte nearest to a reading, limited to the range.
func (f Factors) Raw(y float64) byte {
	least, most := f.bounds()
	return byte(int(math.Round(min(most, max(least, y/f.step())))))
}

// Value returns the reading of a raw byte.
func (f Factors) Value(raw byte) float64 {
	x := float64(raw)
	if f.Signed {
		x = float64(int8(raw))
	}
	return scale(float64(f.M)*x, int(f.Exp))
}

// Counts returns a difference of readings in raw counts.
func (f Factors) Counts(difference float64) byte {
	return byte(min(math.MaxUint8, math.Round(difference/f.step())))
}

// Difference is the inverse of Counts.
func (f Factors) Difference(counts byte) float64 {
	return scale(float64(f.M)*float64(counts), int(f.Exp))
}

// roundSteps are the leading digits of a step that no exact value determines.
var roundSteps = []int{10, 20, 25, 30, 40, 50, 60, 80}

// Fit returns factors for readings from 0 to most that the sensor gives in
// steps. They are as fine as the sensor when a byte can be; otherwise as fine
// as the exact values, for example thresholds, remain whole counts; otherwise a
// round step.
func Fit(most, step float64, exact ...float64) Factors {
	if f, ok := stepFactors(step); ok && most <= step*math.MaxUint8 {
		return f
	}
	least := most / math.MaxUint8
	exp := int(math.Floor(math.Log10(least))) - 1
	try := func(m, exp int) (Factors, bool) {
		for m%10 == 0 { // 0.060 is 6·10^-2
			m, exp = m/10, exp+1
		}
		f := Factors{M: int16(m), Exp: int8(exp)}
		return f, f.step() >= least*(1-1e-9)
	}
	if len(exact) > 0 {
		for m := 10; m < 200; m++ {
			if f, ok := try(m, exp); ok && f.step() <= 1.5*least && f.fits(exact) {
				return f
			}
		}
	}
	for e := exp; ; e++ {
		for _, m := range roundSteps {
			if f, ok := try(m, e); ok {
				return f
			}
		}
	}
}

// stepFactors returns a step as factors; false when it has more than two
// digits.
func stepFactors(step float64) (Factors, bool) {
	exp := int(math.Floor(math.Log10(step))) - 1
	m := math.Round(scale(step, -exp))
	if math.Abs(scale(m, exp)-step) > step*1e-9 || m < 1 {
		return Factors{}, false
	}
	n := int(m)
	for n%10 == 0 {
		n, exp = n/10, exp+1
	}
	return Factors{M: int16(n), Exp: int8(exp)}, true
}

// fits reports whether all readings are whole counts.
func (f Factors) fits(readings []float64) bool {
	for _, y := range readings {
		n := y / f.step()
		if math.Abs(n-math.Round(n)) > 1e-6 {
			return false
		}
	}
	return true
}
