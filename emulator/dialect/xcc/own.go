package xcc

import "github.com/metalab-dev/metalab/emulator/dialect"

// own is what only an XCC has.
var own = dialect.Own{}
