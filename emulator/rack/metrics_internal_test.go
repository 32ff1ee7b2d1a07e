package rack

import "testing"

func TestIPMISessionsAreCountedOnce(t *testing.T) {
	var c sessionCounts
	for i, tt := range []struct {
		host    int
		session uint32
		want    uint64
	}{
		{0, 0, 0}, // outside of a session
		{0, 1, 1},
		{0, 1, 1}, // the next command of it
		{1, 1, 2}, // another BMC
		{0, 4, 5}, // two sessions without a command lie between
		{0, 3, 5}, // an older one goes on
		{0, 1, 6}, // the BMC has restarted
		{0, 2, 7},
	} {
		if c.note(tt.host, tt.session); c.total != tt.want {
			t.Errorf("step %d: note(%d, %d) = %d sessions, want %d", i, tt.host, tt.session, c.total, tt.want)
		}
	}
}
