package irmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// own is what only this vendor's service has.
func own(n names) dialect.Own {
	return dialect.Own{}
}
