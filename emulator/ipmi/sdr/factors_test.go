package sdr

import (
	"math"
	"testing"
)

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name       string
		most, step float64
		exact      []float64
		want       Factors
	}{
		{"as fine as the sensor", 255, 1, nil, Factors{M: 1}},
		{"a step of 60", 12000, 60, nil, Factors{M: 6, Exp: 1}},
		{"a fan with a threshold", 17661, 60, []float64{1740}, Factors{M: 87}},
		{"12 V", 13.2, 0.01, []float64{10.8, 13.2, 12}, Factors{M: 6, Exp: -2}},
		{"5 V", 5.5, 0.01, []float64{4.5, 5.5, 5}, Factors{M: 25, Exp: -3}},
		{"3.3 V", 3.63, 0.01, []float64{2.97, 3.63, 3.3}, Factors{M: 15, Exp: -3}},
		{"1.8 V", 1.98, 0.01, []float64{1.62, 1.98}, Factors{M: 1, Exp: -2}},
		{"watts", 715, 1, nil, Factors{M: 3}},
		{"kilowatts", 2500, 1, nil, Factors{M: 1, Exp: 1}},
		{"what fits no round step", 300, 1, []float64{math.Pi, math.E}, Factors{M: 2}},
	} {
		if got := Fit(tt.most, tt.step, tt.exact...); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestBytesAndReadings(t *testing.T) {
	celsius, volts := Factors{M: 1, Signed: true}, Factors{M: 6, Exp: -2}
	for _, tt := range []struct {
		f     Factors
		y     float64
		raw   byte
		value float64
	}{
		{celsius, 22, 22, 22}, {celsius, -5, 0xfb, -5}, {celsius, 22.5, 23, 23}, {celsius, 500, 0x7f, 127}, {celsius, -500, 0x80, -128},
		{volts, 12, 200, 12}, {volts, 13.2, 220, 13.2}, {volts, -1, 0, 0}, {volts, 99, 255, 15.3}, {volts, 11.91, 199, 11.94},
	} {
		raw := tt.f.Raw(tt.y)
		if value := tt.f.Value(raw); raw != tt.raw || value != tt.value {
			t.Errorf("%+v: %v is %#02x, %v; want %#02x, %v", tt.f, tt.y, raw, value, tt.raw, tt.value)
		}
	}
	if n := volts.Counts(0.12); n != 2 || volts.Difference(n) != 0.12 {
		t.Errorf("0.12 V is %d counts, which are %v V", n, volts.Difference(n))
	}
	if n := celsius.Counts(1e6); n != 255 {
		t.Errorf("very much is %d counts", n)
	}
}

// Raw and the conversion back agree: a reading in range is within half a step of
// that of its byte, and each byte survives the round trip.
func FuzzFactors(f *testing.F) {
	f.Add(13.2, 0.01, 12.0)
	f.Add(17661.0, 60.0, 1740.0)
	f.Add(3e6, 1.0, 4096.0)
	f.Fuzz(func(t *testing.T, most, step, y float64) {
		if !(most >= 0.1 && most <= 1e6 && step >= 0.001 && step <= most && y >= 0 && y <= most) {
			t.Skip()
		}
		fit := Fit(most, step, y)
		if fit.M < 1 || fit.M > 511 || fit.Exp < -8 || fit.Exp > 7 {
			t.Fatalf("Fit(%v, %v, %v) = %+v", most, step, y, fit)
		}
		if d := math.Abs(fit.Value(fit.Raw(y)) - y); d > fit.step()*0.5000001 {
			t.Errorf("%+v: %v is met within %v", fit, y, d)
		}
		for raw := range 256 {
			if again := fit.Raw(fit.Value(byte(raw))); again != byte(raw) {
				t.Errorf("%+v: byte %d becomes %d", fit, raw, again)
			}
		}
	})
}
