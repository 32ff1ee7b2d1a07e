package main

import "testing"

// A shard that has died writes to another file: its first recording is kept.
func TestEachRunOfAShardHasARecording(t *testing.T) {
	for file, want := range map[string][2]string{
		"lab.json.gz":          {"lab.shard-0.json.gz", "lab.shard-0.2.json.gz"},
		"/var/tmp/v1.2/lab.gz": {"/var/tmp/v1.2/lab.shard-0.gz", "/var/tmp/v1.2/lab.shard-0.2.gz"},
		"lab":                  {"lab.shard-0", "lab.shard-0.2"},
	} {
		r := recordings{file: file, runs: map[string]int{"shard-1": 7}}
		if got := [2]string{r.next("shard-0"), r.next("shard-0")}; got != want {
			t.Errorf("recordings of %s = %q, want %q", file, got, want)
		}
	}
}
