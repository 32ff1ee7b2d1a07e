package natural

import "testing"

func TestCompareTakesDigitsByValue(t *testing.T) {
	for _, tt := range []struct {
		less, more string
	}{
		{"1.2.3", "1.2.4"}, {"1.2.9", "1.2.10"}, {"1.2", "1.2.0"}, {"ML01", "ML02"}, {"U46 v1.10", "U46 v2.0"}, {"", "0"},
		{"1.0", "1.0-hotfix1"}, {"2.9", "10.0"}, {"1.a", "1.b"},
	} {
		if Compare(tt.less, tt.more) >= 0 || Compare(tt.more, tt.less) <= 0 {
			t.Errorf("Compare(%q, %q) = %d and back %d, want less and more", tt.less, tt.more, Compare(tt.less, tt.more), Compare(tt.more, tt.less))
		}
	}
	for _, same := range [][2]string{{"1.2.3", "1.2.3"}, {"1.02", "1.2"}, {"", ""}, {"0", "00"}} {
		if Compare(same[0], same[1]) != 0 {
			t.Errorf("Compare(%q, %q) = %d, want 0", same[0], same[1], Compare(same[0], same[1]))
		}
	}
}
