package megarac

import "github.com/metalab-dev/metalab/emulator/dialect"

// own is what only a MegaRAC has.
var own = dialect.Own{}
