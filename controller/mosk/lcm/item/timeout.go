package item

import (
	"fmt"
	"time"
)

// TimeoutAnnotation of a HostOSConfiguration is the deadline of its playbooks, a duration of Go
// such as 90m. The specification has no field for it.
const TimeoutAnnotation = "metalab.dev/item-timeout"

// Timeout returns the deadline that the annotations of a HostOSConfiguration set, as ParamTimeout
// has it; "" when they set none.
func Timeout(annotations map[string]string) (string, error) {
	text, given := annotations[TimeoutAnnotation]
	if !given {
		return "", nil
	}
	if d, err := time.ParseDuration(text); err != nil || d <= 0 {
		return "", fmt.Errorf("annotation %s %q: give a duration above zero, like 90m or 2h30m", TimeoutAnnotation, text)
	}
	return text, nil
}
