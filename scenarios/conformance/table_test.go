package conformance

import (
	"regexp"
	"slices"
	"testing"
)

// The table has 125 checks, and each has all that a report shows.
func TestTableIsComplete(t *testing.T) {
	all := Checks()
	if len(all) != 125 {
		t.Errorf("Checks() has %d checks, want 125", len(all))
	}
	order := map[string]int{}
	for i, c := range all {
		if !regexp.MustCompile(`^[A-Z0-9]+-\d{3}$`).MatchString(c.ID) {
			t.Errorf("check %q: the ID is not like PWR-001", c.ID)
		}
		if _, twice := order[c.ID]; twice {
			t.Errorf("%s is there twice", c.ID)
		}
		order[c.ID] = i
		if c.Title == "" || c.Predicts == "" || c.Remedy == "" || c.Protocol == "" || !slices.Contains(Steps, c.Step) || !slices.Contains(Levels, c.Level) {
			t.Errorf("%s lacks a field: %+v", c.ID, c)
		}
	}
}

// A check is at no lower level than one that it needs, or a run at its level would
// skip it.
func TestPrerequisitesAreAtNoHigherLevel(t *testing.T) {
	for _, c := range Checks() {
		for _, id := range c.After {
			before, err := Find(id)
			if err != nil {
				t.Errorf("%s: After: %v", c.ID, err)
				continue
			}
			if !c.Level.Allows(before.Level) {
				t.Errorf("%s is %s, but needs %s, which is %s", c.ID, c.Level, id, before.Level)
			}
		}
	}
}

// Checks run after the checks that they need.
func TestPrerequisitesComeFirst(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		for _, id := range c.After {
			if !seen[id] {
				t.Errorf("%s runs before %s, which it needs", c.ID, id)
			}
		}
		seen[c.ID] = true
	}
}

// A selected check brings those that it needs.
func TestSelectAddsPrerequisites(t *testing.T) {
	got, err := Select([]string{"pwr-001"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range got {
		ids = append(ids, c.ID)
	}
	if want := []string{"NET-001", "AUTH-001", "SYS-001", "PWR-001"}; !slices.Equal(ids, want) {
		t.Errorf("Select(pwr-001) = %v, want %v", ids, want)
	}
	if _, err := Select([]string{"PWR-999"}); err == nil {
		t.Error("Select(PWR-999) succeeds")
	}
}

// unbuilt are the checks that have no function. Whoever builds one removes it here.
var unbuilt []string

func TestUnbuiltChecksAreListed(t *testing.T) {
	var got []string
	for _, c := range Checks() {
		if c.Run == nil {
			got = append(got, c.ID)
		}
	}
	for _, id := range got {
		if !slices.Contains(unbuilt, id) {
			t.Errorf("%s has no function and is not listed as unbuilt", id)
		}
	}
	for _, id := range unbuilt {
		if !slices.Contains(got, id) {
			t.Errorf("%s is listed as unbuilt", id)
		}
	}
}
