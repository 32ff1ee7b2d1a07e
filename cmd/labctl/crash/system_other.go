//go:build !linux

package crash

import "os"

func bootID() string { return "" }

func outOfMemoryKills() int64 { return 0 }

func reserve(*os.File, int64) {}
