package supermicro

import "github.com/metalab-dev/metalab/emulator/dialect"

// ownOfX11 and ownOfX13 are what only these have.
var (
	ownOfX11 = dialect.Own{}
	ownOfX13 = dialect.Own{}
)
