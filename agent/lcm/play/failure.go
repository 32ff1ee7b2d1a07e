package play

import "fmt"

// Failure is the failure that has ended a play, as the callback writes it to FailureFile.
type Failure struct {
	Task    string `json:"task"`
	Item    string `json:"item"` // of a loop, the first that has failed
	More    int    `json:"more"` // other items that have failed
	Message string `json:"message"`
	Stderr  string `json:"stderr"`
}

// String returns the failure in one text.
func (f Failure) String() string {
	out := f.Task + ": "
	if f.Item != "" {
		out += "item " + f.Item + ": "
	}
	out += f.Message
	if f.Stderr != "" {
		out += ": " + f.Stderr
	}
	if f.More > 0 {
		out += fmt.Sprintf(" (%d items have failed)", f.More+1)
	}
	return out
}
