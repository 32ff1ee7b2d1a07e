//go:build !linux

package crash

import "os"

func bootID() string { return "" }

func memoryEvents() string { return "" }

func outOfMemoryKills(string) int64 { return 0 }

func reserve(*os.File, int64) {}
