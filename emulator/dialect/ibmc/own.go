package ibmc

import "github.com/metalab-dev/metalab/emulator/dialect"

// own is what only this vendor's service has.
func own() dialect.Own {
	return dialect.Own{}
}
