//go:build !unix

package rack

import "time"

// busy is not known here.
func busy() time.Duration { return 0 }
